/** launch - the launcher and the build in a small separate project: it runs compiled code, or prints the next step. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ROOT } from '../../support/machine/root.ts'

const OPTIONS = {
  target: 'es2022',
  module: 'nodenext',
  outDir: 'build',
  rootDir: '.',
  types: [],
  lib: ['es2022'],
  rewriteRelativeImportExtensions: true,
  incremental: true,
  tsBuildInfoFile: 'build/.tsbuildinfo',
}
const PARTS = ['sendwright', ...['launch', 'built', 'build'].map((name) => `src/service/${name}.mjs`)]
const PROJECT = 'tsconfig.service.json'
/** The pages and the client have their own tests. */
const BUNDLE = `export async function bundle() {}\n`
const CLIENT = `export async function makeClientPackage() {}\n`

function project(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-launch-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const folder of ['schemas', 'cluster', 'src/cli', 'src/client', 'src/service'])
    mkdirSync(join(dir, folder), { recursive: true })
  writeFileSync(join(dir, 'package.json'), '{"type": "module", "engines": {"node": ">=20.18.1 <27"}}')
  for (const name of ['tsconfig.json', PROJECT])
    writeFileSync(join(dir, name), JSON.stringify({ compilerOptions: OPTIONS, include: ['src', 'schemas'] }))
  for (const part of PARTS) copyFileSync(join(ROOT, part), join(dir, part))
  writeFileSync(join(dir, 'src/service/bundle.mjs'), BUNDLE)
  writeFileSync(join(dir, 'src/client/make.mjs'), CLIENT)
  const modules = join(dir, 'node_modules')
  symlinkSync(join(ROOT, 'node_modules'), modules)
  // Through a link and from another directory, as npx calls it.
  const link = join(dir, 'link')
  symlinkSync(join(dir, 'sendwright'), link)
  const main = join(dir, 'src', 'cli', 'main.ts')
  let writes = 0
  const run = async (args: readonly string[], options = '') => {
    const child = spawn('/usr/bin/env', [`NODE_OPTIONS=${options}`, ...args], { cwd: tmpdir() })
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { out, err, code: code as number, pid: child.pid }
  }
  return {
    dir,
    built: join(dir, 'build', 'src', 'cli', 'main.js'),
    write(source: string) {
      writeFileSync(main, source)
      // Later than any earlier build, however fast the test runs.
      const at = Date.now() / 1000 - 600 + ++writes
      utimesSync(main, at, at)
    },
    touch() {
      const at = Date.now() / 1000 + 60
      utimesSync(main, at, at)
    },
    forgetModules: () => rmSync(modules),
    forget: (...path: string[]) => rmSync(join(dir, ...path), { recursive: true }),
    launch: (...args: string[]) => run([link, ...args]),
    launchWith: (options: string) => run([link], options),
    build: (...args: string[]) => run([process.execPath, join(dir, 'src/service/build.mjs'), ...args]),
    buildWith: (options: string) => run([process.execPath, join(dir, 'src/service/build.mjs'), '--stale'], options),
  }
}

/** Types of the few names that are used, so that TypeScript has little to read. */
const NAMES = `declare const console: { log(...words: unknown[]): void }\ndeclare const process: { pid: number; argv: string[] }\n`
const SAY = (word: string) =>
  `${NAMES}const word: string = '${word}'\nconsole.log(word, process.pid, process.argv.slice(2).join())\n`
const NOT_COMPILED = 'The service is not compiled: run npm install, then npm run build\n'

t.test('launch: without a build one sentence names the command, with one it runs in the same process', async (t) => {
  const { write, launch, build, built } = project(t)
  write(SAY('first'))
  t.match(await launch('send'), { code: 1, out: '', err: NOT_COMPILED })
  t.match(await build(), { code: 0, err: 'Compiling ...\n' })
  const first = await launch('send', '--flag')
  t.match(first, { code: 0, out: `first ${first.pid} send,--flag\n`, err: '' })
  const builtAt = statSync(built).mtimeMs
  t.match(await build('--stale'), { code: 0, out: '', err: '' })
  t.equal(statSync(built).mtimeMs, builtAt, 'a second start does not compile')
})

t.test('launch: a build older than its sources is not run, and is repeated if a start allows it', async (t) => {
  const { write, touch, launch, build } = project(t)
  write(SAY('first'))
  await build()
  write(SAY('second'))
  touch()
  const err = 'src/cli/main.ts is newer than the compiled service: run npm run build\n'
  t.match(await launch(), { code: 1, out: '', err })
  write(SAY('third'))
  t.match(await build('--stale'), { code: 0 })
  touch()
  t.match(await build('--stale'), { code: 0, err: 'Compiling ...\n' })
  write(SAY('third'))
  t.match(await launch(), { code: 0, out: /^third /, err: '' })
})

t.test('launch: code that does not compile is not run', async (t) => {
  const { write, launch, build } = project(t)
  write(SAY('first'))
  await build()
  write(`${NAMES}const word: number = 'text'\nconsole.log('ran')\n`)
  t.match(await build(), { code: 1, out: /TS2322/ })
  t.match(await launch(), { code: 1, out: '', err: NOT_COMPILED })
})

t.test('launch: without TypeScript it runs the existing build, and names what is missing without one', async (t) => {
  const { write, launch, build, forget, forgetModules } = project(t)
  write(SAY('first'))
  await build()
  forgetModules()
  t.match(await build('--stale'), { code: 0, err: '' })
  t.match(await launch(), { code: 0, out: /^first /, err: '' })
  forget('build')
  t.match(await launch(), { code: 1, out: '', err: NOT_COMPILED })
  t.match(await build('--stale'), { code: 1, out: '', err: 'TypeScript is not installed: run npm install\n' })
})

t.test('launch: an interrupted build does not count', async (t) => {
  const { write, launch, build, forget } = project(t)
  write(SAY('first'))
  for (const gone of [
    ['build', '.built'],
    ['build', 'src'],
  ]) {
    await build()
    forget(...gone)
    t.match(await launch(), { code: 1, out: '', err: NOT_COMPILED }, gone.join('/'))
    t.match(await build('--stale'), { code: 0, err: 'Compiling ...\n' })
    t.match(await launch(), { code: 0, out: /^first /, err: '' })
  }
})

t.test('launch: links that lead nowhere or in a circle are no sources', async (t) => {
  const { write, launch, build, dir } = project(t)
  write(SAY('first'))
  symlinkSync('ada@laptop.1234', join(dir, 'src', 'cli', '.#main.ts'))
  symlinkSync('gone.md', join(dir, 'src', 'notes.md'))
  symlinkSync('..', join(dir, 'src', 'again'))
  symlinkSync('itself.ts', join(dir, 'src', '.itself.ts'))
  t.match(await build(), { code: 0 })
  t.match(await launch(), { code: 0, out: /^first /, err: '' })
})

t.test('launch: an archive has no sources and runs', async (t) => {
  const { write, launch, build, forget } = project(t)
  write(SAY('first'))
  await build()
  for (const gone of [PROJECT, 'schemas', 'src/cli', 'build/.built']) forget(gone)
  t.match(await launch(), { code: 0, out: /^first /, err: '' })
})

t.test('launch: a Node.js outside the range is named', async (t) => {
  const { write, build, buildWith, launchWith } = project(t)
  write(SAY('first'))
  await build()
  for (const [version, code] of [
    ['v20.18.0', 1],
    ['v18.99.99', 1],
    ['v20.18.1', 0],
    ['v20.19.0', 0],
    ['v22.0.0', 0],
    ['v24.11.0', 0],
    ['v26.99.0', 0],
    ['v27.0.0', 1],
  ] as const) {
    const script = `Object.defineProperty(process,'version',{value:'${version}'})`
    const options = `--import=data:text/javascript,${encodeURIComponent(script)}`
    for (const ran of [await launchWith(options), await buildWith(options)]) {
      t.equal(ran.code, code, version)
      if (code === 1) t.equal(ran.err, `Node.js >=20.18.1 <27 is required, but this is ${version}\n`)
    }
  }
})
