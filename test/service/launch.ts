/** launch - the launcher in a small project of its own: builds when needed, and then runs in its own process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ROOT } from '../support/machine/root.ts'

const OPTIONS = { target: 'es2022', module: 'nodenext', outDir: 'build', rootDir: '.', types: ['node'] }

function project(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-launch-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const folder of ['schemas', 'cluster', 'src/cli', 'src/service'])
    mkdirSync(join(dir, folder), { recursive: true })
  writeFileSync(join(dir, 'package.json'), '{"type": "module"}')
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, include: ['src'] }))
  copyFileSync(join(ROOT, 'src', 'service', 'launch.mjs'), join(dir, 'src', 'service', 'launch.mjs'))
  copyFileSync(join(ROOT, 'sendwright'), join(dir, 'sendwright'))
  const modules = join(dir, 'node_modules')
  symlinkSync(join(ROOT, 'node_modules'), modules)
  const main = join(dir, 'src', 'cli', 'main.ts')
  const built = join(dir, 'build', 'src', 'cli', 'main.js')
  let writes = 0
  return {
    built,
    write(source: string) {
      writeFileSync(main, source)
      // Later than whatever was built before, however fast the test runs.
      const at = Date.now() / 1000 + ++writes
      utimesSync(main, at, at)
    },
    forgetModules: () => unlinkSync(modules),
    dir,
    async launch(...args: string[]) {
      // Through a link and from another directory, as npx calls it.
      const link = join(dir, 'link')
      if (!existsSync(link)) symlinkSync(join(dir, 'sendwright'), link)
      const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', link, ...args], { cwd: tmpdir() })
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { out, err, code: code as number, pid: child.pid }
    },
  }
}

const SAY = (word: string) =>
  `const word: string = '${word}'\nconsole.log(word, process.pid, process.argv.slice(2).join())\n`

t.test('launch: builds, runs the command line in the same process, and builds again only after a change', async (t) => {
  const { write, launch, built } = project(t)
  write(SAY('first'))
  const first = await launch('send', '--flag')
  t.match(first, { code: 0, out: `first ${first.pid} send,--flag\n`, err: 'Compiling, this once ...\n' })
  t.ok(statSync(built).mode & 0o100, 'it can be run by itself')
  const builtAt = statSync(built).mtimeMs
  const again = await launch('start')
  t.match(again, { out: `first ${again.pid} start\n`, err: '' })
  t.equal(statSync(built).mtimeMs, builtAt)
  write(SAY('second'))
  const changed = await launch('start')
  t.match(changed, { out: `second ${changed.pid} start\n`, err: 'Compiling what has changed ...\n' })
})

t.test('launch: what does not compile is not run', async (t) => {
  const { write, launch } = project(t)
  write(`const word: number = 'text'\nconsole.log('ran')\n`)
  t.match(await launch(), { code: 1, out: '', err: /TS2322.*does not compile/s })
  t.match(await launch(), { code: 1, out: '', err: /does not compile/ })
})

t.test('launch: without TypeScript it runs what is built, and says what is missing when nothing is', async (t) => {
  const { write, launch, forgetModules } = project(t)
  write(SAY('first'))
  await launch()
  forgetModules()
  t.match(await launch(), { code: 0, out: /^first /, err: '' })
  write(SAY('second'))
  t.match(await launch(), { code: 0, out: /^first /, err: /TypeScript is not installed/ })
  const bare = project(t)
  bare.write(SAY('first'))
  bare.forgetModules()
  t.match(await bare.launch(), { code: 1, out: '', err: /npm install/ })
})

t.test('launch: of two that begin together one builds; a lock of a process that is gone holds up nobody', async (t) => {
  const { write, launch, dir } = project(t)
  write(SAY('first'))
  mkdirSync(join(dir, 'build'))
  // No process has the highest pid that there may be.
  writeFileSync(join(dir, 'build', '.compiling'), '4194304')
  const both = await Promise.all([launch('a'), launch('b')])
  for (const one of both) t.match(one, { code: 0, out: /^first / })
  t.equal(both.filter(({ err }) => err === 'Compiling, this once ...\n').length, 1)
  t.notOk(existsSync(join(dir, 'build', '.compiling')))
})
