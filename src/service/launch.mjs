/** launch - `./sendwright`, `npx sendwright` and `npm start`: compiles what has changed, then runs the command in this very process.
 *
 *  The same process, so that a command costs no second Node and signals arrive where they are handled. One of several that
 *  begin together compiles; the others wait for it.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const MAIN = join(ROOT, 'build', 'src', 'cli', 'main.js')
/** Its time is the time of the newest source that has been compiled. */
const STAMP = join(ROOT, 'build', '.started')
/** Holds the pid of the process that compiles. */
const LOCK = join(ROOT, 'build', '.compiling')
const LOCK_STEP_MS = 100
const LOCK_STEPS_MAX = 1200
const SOURCES = ['schemas', 'cluster', 'src', 'tsconfig.json', 'package.json'].map((name) => join(ROOT, name))

const newestMs = Math.max(...SOURCES.map(changedAtMs))
if (!isBuilt()) await build()
process.argv[1] = MAIN
await import(pathToFileURL(MAIN).href)

function isBuilt() {
  return existsSync(MAIN) && existsSync(STAMP) && statSync(STAMP).mtimeMs >= Math.floor(newestMs)
}

/** Newest change of a file, or of a folder and all in it (a folder's own time tells of removed files). */
function changedAtMs(path) {
  const status = statSync(path)
  if (!status.isDirectory()) return status.mtimeMs
  const inside = readdirSync(path, { withFileTypes: true }).map((entry) => changedAtMs(join(path, entry.name)))
  return Math.max(status.mtimeMs, ...inside)
}

async function build() {
  const compiler = findCompiler()
  if (compiler === null) {
    if (!existsSync(MAIN)) fail('The service is not compiled and TypeScript is not installed: run npm install first')
    console.error('TypeScript is not installed: running what was compiled last')
    return
  }
  await lock()
  const isDone = isBuilt() || compile(compiler)
  rmSync(LOCK, { force: true })
  if (!isDone) fail('The service does not compile')
}

/** Out: whether it compiles. */
function compile(compiler) {
  console.error(existsSync(MAIN) ? 'Compiling what has changed ...' : 'Compiling, this once ...')
  // What a command answers stands alone on standard output.
  const { status } = spawnSync(process.execPath, [compiler], { cwd: ROOT, stdio: ['ignore', 2, 2] })
  if (status !== 0) return false
  chmodSync(MAIN, 0o755)
  writeFileSync(STAMP, '')
  utimesSync(STAMP, new Date(), new Date(Math.ceil(newestMs)))
  return true
}

/** Waits until no living process compiles, and says that this one does. */
async function lock() {
  mkdirSync(dirname(LOCK), { recursive: true })
  for (let step = 0; step < LOCK_STEPS_MAX; step += 1) {
    try {
      writeFileSync(LOCK, String(process.pid), { flag: 'wx' })
      return
    } catch (error) {
      if (error.code !== 'EEXIST') throw error
    }
    if (!isCompiling()) rmSync(LOCK, { force: true })
    else await pause(LOCK_STEP_MS)
  }
  fail(`Another process compiles and does not end: see ${LOCK}`)
}

/** Whether the process of the lock lives; an empty lock is being written. */
function isCompiling() {
  try {
    const pid = Number(readFileSync(LOCK, 'utf8'))
    return pid === 0 || process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The compiler's script in node_modules, or null. */
function findCompiler() {
  try {
    const manifest = createRequire(import.meta.url).resolve('typescript/package.json')
    return join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.tsc)
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return null
    throw error
  }
}

function fail(sentence) {
  console.error(sentence)
  process.exit(1)
}
