/** launch - the launcher in a small project of its own: compiles when needed, and then runs in its own process. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'

const WAIT_MS = 30_000
/** Whoever is not root. */
const NOBODY = 65_534
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
const PARTS = [
  'sendwright',
  'tsconfig.service.json',
  ...['launch', 'compiled', 'compile'].map((name) => `src/service/${name}.mjs`),
]

interface Start {
  /** NODE_OPTIONS of the command. */
  readonly options?: string
  readonly uid?: number
}

function project(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-launch-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const folder of ['schemas', 'cluster', 'src/cli', 'src/service'])
    mkdirSync(join(dir, folder), { recursive: true })
  writeFileSync(join(dir, 'package.json'), '{"type": "module", "engines": {"node": ">=20.18.1"}}')
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, include: ['src', 'schemas'] }))
  for (const part of PARTS) copyFileSync(join(ROOT, part), join(dir, part))
  const modules = join(dir, 'node_modules')
  symlinkSync(join(ROOT, 'node_modules'), modules)
  // Through a link and from another directory, as npx calls it.
  const link = join(dir, 'link')
  symlinkSync(join(dir, 'sendwright'), link)
  const main = join(dir, 'src', 'cli', 'main.ts')
  const build = join(dir, 'build')
  let writes = 0
  const begin = (args: readonly string[], { options = '', uid }: Start = {}) =>
    spawn('/usr/bin/env', [`NODE_OPTIONS=${options}`, link, ...args], {
      cwd: tmpdir(),
      ...(uid !== undefined && { uid, gid: uid }),
    })
  const launchAs = async (start: Start, ...args: string[]) => {
    const child = begin(args, start)
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { out, err, code: code as number, pid: child.pid }
  }
  return {
    dir,
    build,
    main,
    lock: join(build, '.compiling'),
    built: join(build, 'src', 'cli', 'main.js'),
    write(source: string) {
      writeFileSync(main, source)
      // Later than whatever was built before, however fast the test runs.
      const at = Date.now() / 1000 + ++writes
      utimesSync(main, at, at)
    },
    forgetModules: () => unlinkSync(modules),
    begin,
    launchAs,
    launch: (...args: string[]) => launchAs({}, ...args),
    /** What a compilation leaves in build/ besides what it compiled. */
    left: () => readdirSync(build).filter((name) => name.startsWith('.compil') || name.startsWith('.launched.')),
  }
}

/** Types of the few names that are used, so that TypeScript has little to read. */
const NAMES = `declare const console: { log(...words: unknown[]): void }\ndeclare const process: { pid: number; argv: string[] }\n`
const SAY = (word: string) =>
  `${NAMES}const word: string = '${word}'\nconsole.log(word, process.pid, process.argv.slice(2).join())\n`

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
  write(`${NAMES}const word: number = 'text'\nconsole.log('ran')\n`)
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
  const { write, launch, lock, build, left } = project(t)
  write(SAY('first'))
  const two = await Promise.all([launch('a'), launch('b')])
  for (const one of two) t.match(one, { code: 0, out: /^first / })
  t.equal(two.filter(({ err }) => err.endsWith('Compiling, this once ...\n')).length, 1)
  rmSync(build, { recursive: true })
  mkdirSync(build)
  // No process has the highest pid that there may be.
  writeFileSync(lock, '4194304')
  const four = await Promise.all(['a', 'b', 'c', 'd'].map((name) => launch(name)))
  for (const one of four) t.match(one, { code: 0, out: /^first / })
  t.same(left(), [])
})

t.test(
  'launch: a lock that says nothing, or names another process by now, is nobody’s after five seconds',
  async (t) => {
    const locks = ['', `${process.pid}`, 'x', `${process.pid} of before`]
    const ran = await Promise.all(
      locks.map(async (text) => {
        const { write, launch, lock, build, left } = project(t)
        write(SAY('first'))
        mkdirSync(build)
        writeFileSync(lock, text)
        const one = await launch()
        t.same(left(), [])
        return one
      }),
    )
    const err = 'Another process compiles: waiting for it ...\nCompiling, this once ...\n'
    for (const one of ran) t.match(one, { code: 0, out: /^first /, err })
  },
)

t.test('launch: what is missing of what was compiled is compiled again, and what was cut short', async (t) => {
  const { write, launch, dir, build, built, left } = project(t)
  write(`${NAMES}import { WORD } from '../../../schemas/word.ts'\nconsole.log(WORD)\n`)
  writeFileSync(join(dir, 'schemas', 'word.ts'), `export const WORD = 'first'\n`)
  spawnSync(process.execPath, [join(dir, 'node_modules', '.bin', 'tsc')], { cwd: dir, stdio: 'inherit' })
  t.ok(existsSync(join(build, '.tsbuildinfo')))
  await launch()
  for (const path of [join(build, 'src'), join(build, 'schemas', 'word.js')]) {
    rmSync(path, { recursive: true })
    t.match(await launch(), { code: 0, out: 'first\n', err: /^Compiling/ }, path)
    t.match(await launch(), { code: 0, out: 'first\n', err: '' })
  }
  // Killed while files were moved: no stamp, and of the files some are old.
  rmSync(join(build, '.launched'))
  writeFileSync(built, 'throw new Error()')
  t.match(await launch(), { code: 0, out: 'first\n' })
  t.same(left(), [])
})

t.test('launch: after it has compiled other sources, tsc knows that it must write again', async (t) => {
  const { write, launch, dir, built } = project(t)
  const tsc = () =>
    spawnSync(process.execPath, [join(dir, 'node_modules', '.bin', 'tsc')], { cwd: dir, stdio: 'inherit' })
  write(SAY('first'))
  tsc()
  write(SAY('second'))
  await launch()
  t.match(readFileSync(built, 'utf8'), 'second')
  write(SAY('first'))
  tsc()
  t.match(readFileSync(built, 'utf8'), 'first')
})

t.test('launch: what counts is what the sources say, not when they were written', async (t) => {
  const { write, launch, main } = project(t)
  write(SAY('first'))
  await launch()
  write(SAY('first'))
  t.match(await launch(), { out: /^first /, err: '' }, 'written anew, and the same')
  // As an archive brings it, with its own time.
  writeFileSync(main, SAY('older'))
  utimesSync(main, 1, 1)
  t.match(await launch(), { out: /^older /, err: /^Compiling/ })
})

t.test('launch: links that lead nowhere or in a circle are no sources', async (t) => {
  const { write, launch, dir } = project(t)
  write(SAY('first'))
  symlinkSync('ada@laptop.1234', join(dir, 'src', 'cli', '.#main.ts'))
  symlinkSync('gone.md', join(dir, 'src', 'notes.md'))
  symlinkSync('..', join(dir, 'src', 'again'))
  symlinkSync('itself.ts', join(dir, 'src', '.itself.ts'))
  t.match(await launch(), { code: 0, out: /^first /, err: 'Compiling, this once ...\n' })
  t.match(await launch(), { code: 0, out: /^first /, err: '' })
})

/** The compilers that write into a folder of this name, without the shell that watches them. */
function compilersOf(folder: string): number[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' })
  const rows = stdout.split('\n').filter((row) => row.includes(folder) && !row.includes('cat <&3'))
  return rows.map((row) => Number.parseInt(row, 10))
}

/** A launcher whose compiler stands still in the middle of its work. */
async function launchHalfway(t: Test) {
  const made = project(t)
  const { write, begin, build } = made
  write(SAY('first'))
  const child = begin([])
  const err = text(child.stderr)
  const folderOf = () =>
    existsSync(build) ? readdirSync(build).find((name) => name.startsWith('.compile-')) : undefined
  await until(() => folderOf() !== undefined && compilersOf(folderOf() as string).length > 0, WAIT_MS)
  const folder = folderOf() as string
  for (const pid of compilersOf(folder)) process.kill(pid, 'SIGSTOP')
  t.ok(existsSync(join(build, folder)) && !existsSync(made.built), 'it is halfway')
  return { ...made, child, err, folder }
}

t.test('launch: killed while it compiles, it leaves no compiler, and the next one does not wait', async (t) => {
  const { child, folder, launch, left, build } = await launchHalfway(t)
  child.kill('SIGKILL')
  const next = await launch()
  t.match(next, { code: 0, out: /^first /, err: 'Compiling, this once ...\n' })
  await until(() => compilersOf(folder).length === 0, WAIT_MS)
  t.same(left(), [folder], 'what was begun lies there')
  const long = Date.now() / 1000 - 3600
  utimesSync(join(build, folder), long, long)
  rmSync(join(build, '.launched'))
  t.match(await launch(), { code: 0 })
  t.same(left(), [], 'and is cleared away by the next one, later')
})

t.test('launch: stopped while it compiles, it leaves nothing', async (t) => {
  const { child, folder, left } = await launchHalfway(t)
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  t.equal(code, 143)
  await until(() => compilersOf(folder).length === 0, WAIT_MS)
  t.same(left(), [])
})

const cannotBeNobody =
  process.getuid?.() !== 0 ? 'only root can become another user' : !isOpen(ROOT) && 'the checkout is closed to others'
t.test(
  'launch: where nothing may be written it runs what is there, or says so',
  { skip: cannotBeNobody },
  async (t) => {
    const { write, launch, launchAs, dir, main, build } = project(t)
    chmodSync(dir, 0o755)
    const launchAsNobody = () => launchAs({ uid: NOBODY })
    write(SAY('first'))
    t.match(await launchAsNobody(), {
      code: 1,
      out: '',
      err: `The service is not compiled and ${build} cannot be written (EACCES): run it once as a user who may write there\n`,
    })
    await launch()
    t.match(await launchAsNobody(), { code: 0, out: /^first /, err: '' })
    utimesSync(main, 1, 1)
    t.match(await launchAsNobody(), { code: 0, out: /^first /, err: '' }, 'other times alone')
    write(SAY('second'))
    t.match(await launchAsNobody(), {
      code: 0,
      out: /^first /,
      err: `${build} cannot be written (EACCES): running what was compiled last\n`,
    })
  },
)

function isOpen(path: string): boolean {
  accessSync(path, constants.R_OK)
  const mayPass = (statSync(path).mode & 0o005) === 0o005
  return mayPass && (dirname(path) === path || isOpen(dirname(path)))
}

t.test('launch: a Node.js that is too old is named', async (t) => {
  const { write, launchAs } = project(t)
  write(SAY('first'))
  for (const [version, code] of [
    ['v20.18.0', 1],
    ['v18.99.99', 1],
    ['v20.18.1', 0],
    ['v22.0.0', 0],
  ] as const) {
    const script = `Object.defineProperty(process,'version',{value:'${version}'})`
    const ran = await launchAs({ options: `--import=data:text/javascript,${encodeURIComponent(script)}` })
    t.equal(ran.code, code, version)
    if (code === 1) t.equal(ran.err, `Node.js >=20.18.1 is needed, and this is ${version}\n`)
  }
})
