/** start - `npm start`'s script in a small project of its own: builds when needed, and then runs in its own process. */
import { once } from 'node:events'
import {
  copyFileSync,
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
import { spawnNode } from './support/node.ts'
import { ROOT } from './support/root.ts'

const OPTIONS = { target: 'es2022', module: 'nodenext', outDir: 'build', rootDir: '.', types: ['node'] }

function project(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-start-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const folder of ['schemas', 'cluster', 'src/cli', 'src/service'])
    mkdirSync(join(dir, folder), { recursive: true })
  writeFileSync(join(dir, 'package.json'), '{"type": "module"}')
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, include: ['src'] }))
  copyFileSync(join(ROOT, 'src', 'service', 'start.mjs'), join(dir, 'src', 'service', 'start.mjs'))
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
    async start(...args: string[]) {
      const child = spawnNode([join(dir, 'src', 'service', 'start.mjs'), ...args])
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      return { out, err, code: code as number, pid: child.pid }
    },
  }
}

const SAY = (word: string) =>
  `const word: string = '${word}'\nconsole.log(word, process.pid, process.argv.slice(2).join())\n`

t.test('start: builds, runs the command line in the same process, and builds again only after a change', async (t) => {
  const { write, start, built } = project(t)
  write(SAY('first'))
  const first = await start('--flag')
  t.match(first, { code: 0, out: `first ${first.pid} start,--flag\n`, err: '' })
  t.ok(statSync(built).mode & 0o100, 'it can be run by itself')
  const builtAt = statSync(built).mtimeMs
  const again = await start()
  t.equal(again.out, `first ${again.pid} start\n`)
  t.equal(statSync(built).mtimeMs, builtAt)
  write(SAY('second'))
  const changed = await start()
  t.equal(changed.out, `second ${changed.pid} start\n`)
})

t.test('start: what does not compile is not run', async (t) => {
  const { write, start } = project(t)
  write(`const word: number = 'text'\nconsole.log('ran')\n`)
  t.match(await start(), { code: 1, out: /TS2322/, err: /does not compile/ })
  t.notMatch((await start()).out, /^ran/m)
})

t.test('start: without TypeScript it runs what is built, and says what is missing when nothing is', async (t) => {
  const { write, start, forgetModules } = project(t)
  write(SAY('first'))
  await start()
  forgetModules()
  t.match(await start(), { code: 0, out: /^first /, err: '' })
  write(SAY('second'))
  t.match(await start(), { code: 0, out: /^first /, err: /TypeScript is not installed/ })
  const bare = project(t)
  bare.write(SAY('first'))
  bare.forgetModules()
  t.match(await bare.start(), { code: 1, out: '', err: /npm install/ })
})
