/**
 * compile - compiles the service into build/, for the launcher.
 *
 * States of one run: waiting (for another's lock) | compiling (into a folder of its own) | moving (files into build/,
 * each at once whole) | stamped.
 *
 * Guarantees: whoever is killed, stopped or overtaken at any point leaves nothing behind that another would run as if
 * it were whole: the stamp goes before the first file is moved, and is written after the last. The lock spares double
 * work and nothing hangs on it: where it is empty, of a process that is gone, or not renewed for 5 s, another compiles.
 * TypeScript ends with the process that started it, however that ends.
 *
 * Files in build/: `.compiling` (the lock: pid and a word of its own), `.compile-*` (what is being compiled).
 */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import {
  BUILD,
  DASHBOARD,
  isCompiled,
  MAIN,
  markSources,
  mayBundle,
  PROJECT,
  ROOT,
  removeStamp,
  writeStamp,
} from './compiled.mjs'

const LOCK = join(BUILD, '.compiling')
const FOLDER = '.compile-'
/** What `tsc` believes to have written: no longer true once other files are there. */
const BUILD_INFO = join(BUILD, '.tsbuildinfo')
const STEP_MS = 100
const RENEW_MS = 500
/** A lock that says nothing for so long is nobody's. */
const SILENT_MS_MAX = 5_000
const WAIT_MS_MAX = 600_000
const COMPILE_MS_MAX = 300_000
/** A folder of a compilation that was killed. */
const LEFT_MS = 2 * COMPILE_MS_MAX
/** Sources that change while they are compiled are compiled again. */
const TRIES = 3
const NOT_WRITABLE = ['EACCES', 'EPERM', 'EROFS']
/** Runs its arguments, and ends them when its standard input does: when who holds the other end is gone. */
const WATCHED = `exec 3<&0; "$@" </dev/null & it=$!; { cat <&3 >/dev/null; kill -9 -$$; } & wait $it`

/** Out: null when the command can run now, else a sentence that says why not. */
export async function compile() {
  const compiler = findCompiler()
  if (compiler === null)
    return runLast(
      'TypeScript is not installed',
      'The service is not compiled and TypeScript is not installed: run npm install first',
    )
  try {
    return await compileAlone(compiler)
  } catch (error) {
    if (error.syscall === undefined) throw error
    const reason = `${BUILD} cannot be written (${error.code})`
    const fault = `Cannot compile: ${error.message}`
    if (!NOT_WRITABLE.includes(error.code)) return fault
    return runLast(reason, `The service is not compiled and ${reason}: run it once as a user who may write there`)
  }
}

/** What to do where nothing can be compiled: run what is there, and say so. */
function runLast(reason, fault) {
  if (!existsSync(MAIN)) return fault
  console.error(`${reason}: running what was compiled last`)
  return null
}

async function compileAlone(compiler) {
  mkdirSync(BUILD, { recursive: true })
  const lock = await takeLock()
  if (lock === null) return isCompiled() ? null : `Another process compiles and does not end: see ${LOCK}`
  const work = { compiler, folder: mkdtempSync(join(BUILD, FOLDER)), child: null }
  const clean = () => {
    if (work.child !== null) endGroup(work.child)
    rmSync(work.folder, { recursive: true, force: true })
    lock.leave()
  }
  const forget = onSignal(clean)
  try {
    clearLeft(work.folder)
    return await compileInto(work)
  } finally {
    forget()
    clean()
  }
}

async function compileInto(work) {
  for (let tried = 0; tried < TRIES; tried += 1) {
    console.error(existsSync(MAIN) ? 'Compiling what has changed ...' : 'Compiling, this once ...')
    const mark = markSources()
    const fault = (await runCompiler(work)) ?? (await makePages(work.folder))
    if (fault !== null) return fault
    if (markSources().seen !== mark.seen) continue
    moveInto(work.folder)
    writeStamp(mark)
    return null
  }
  return 'The sources change while they are compiled: try again'
}

/** Out: null, or why it does not compile. What TypeScript says stands on standard error. */
async function runCompiler(work) {
  const args = [work.compiler, '--project', PROJECT, '--outDir', work.folder]
  // What a command answers stands alone on standard output. A group of its own ends as a whole.
  const child = spawn('/bin/sh', ['-c', WATCHED, 'sh', process.execPath, ...args], {
    cwd: ROOT,
    detached: true,
    stdio: ['pipe', 2, 2],
  })
  if (child.pid !== undefined) work.child = child
  const late = setTimeout(() => endGroup(child), COMPILE_MS_MAX)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(late)
  work.child = null
  child.stdin.destroy()
  if (signal !== null) return `TypeScript was ended by ${signal} (it has ${COMPILE_MS_MAX / 1000} s)`
  return code === 0 ? null : 'The service does not compile (after a pull, run npm install first)'
}

/** Makes the dashboard's pages. Out: null, or what is wrong with them. Without esbuild the last ones stay. */
async function makePages(folder) {
  if (!mayBundle()) return null
  try {
    await (await import('./bundle.mjs')).bundle(ROOT, join(folder, 'dashboard'))
    return null
  } catch (error) {
    rmSync(join(folder, 'dashboard'), { recursive: true, force: true })
    if (Array.isArray(error.errors)) return `The dashboard's pages do not compile: ${error.message}`
    console.error(`The dashboard's pages cannot be made (${error.message.split('\n')[0]}): those made last are served`)
    return null
  }
}

function endGroup({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}

/** Moves what was compiled to where it is run from. */
function moveInto(folder) {
  const pages = existsSync(join(folder, 'dashboard')) ? readdirSync(join(folder, 'dashboard')) : []
  const scripts = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.js') && !isPage(name))
  const names = [...scripts, ...pages.map((name) => join('dashboard', name))]
  removeStamp()
  if (scripts.some((name) => !isSame(join(folder, name), join(BUILD, name)))) rmSync(BUILD_INFO, { force: true })
  for (const name of names) {
    mkdirSync(dirname(join(BUILD, name)), { recursive: true })
    renameSync(join(folder, name), join(BUILD, name))
  }
  if (pages.length > 0) removeOthers(pages)
  chmodSync(MAIN, 0o755)
}

function isPage(name) {
  return name.startsWith(`dashboard${sep}`)
}

/** Files of pages made earlier: a service that runs has read what it serves. */
function removeOthers(pages) {
  const kept = new Set(pages)
  for (const name of readdirSync(DASHBOARD)) if (!kept.has(name)) rmSync(join(DASHBOARD, name), { force: true })
}

function isSame(one, other) {
  return existsSync(other) && readFileSync(one).equals(readFileSync(other))
}

function clearLeft(own) {
  for (const name of readdirSync(BUILD).filter((one) => one.startsWith(FOLDER))) {
    const path = join(BUILD, name)
    const status = statSync(path, { throwIfNoEntry: false })
    if (path !== own && status !== undefined && Date.now() - status.mtimeMs > LEFT_MS)
      rmSync(path, { recursive: true, force: true })
  }
}

/** Waits until nobody compiles. Out: the lock; null when all is compiled meanwhile, or after the longest wait. */
async function takeLock() {
  const text = `${process.pid} ${randomUUID()}`
  const startMs = performance.now()
  let seen = null
  let seenAtMs = startMs
  while (performance.now() - startMs < WAIT_MS_MAX) {
    if (makeLock(text)) return isCompiled() ? leaveAt(text) : hold(text)
    const lock = readLock()
    if (lock !== null && seen === null) console.error('Another process compiles: waiting for it ...')
    if (lock !== null && lock.mark !== seen) {
      seen = lock.mark
      seenAtMs = performance.now()
    }
    if (lock !== null && (isGone(lock.pid) || performance.now() - seenAtMs > SILENT_MS_MAX)) {
      replaceLock(text)
      // Of several that replace it the last one has it.
      await pause(STEP_MS)
      if (readLock()?.text === text) return hold(text)
    }
    await pause(STEP_MS)
    if (isCompiled()) return null
  }
  return null
}

function makeLock(text) {
  try {
    writeFileSync(LOCK, text, { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function replaceLock(text) {
  const path = `${LOCK}.${process.pid}`
  writeFileSync(path, text)
  renameSync(path, LOCK)
}

/** Out: null when there is none. `mark` changes with each renewal. */
function readLock() {
  try {
    const text = readFileSync(LOCK, 'utf8')
    const { mtimeMs, ino } = statSync(LOCK)
    return { text, pid: Number.parseInt(text, 10) || null, mark: `${text} ${mtimeMs} ${ino}` }
  } catch (error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

/** Whether the process of a lock is known not to be there; a lock with this process's id is of one before it. */
function isGone(pid) {
  if (pid === null) return false
  try {
    process.kill(pid, 0)
    return pid === process.pid
  } catch (error) {
    return error.code === 'ESRCH'
  }
}

function hold(text) {
  const renewal = setInterval(() => {
    try {
      utimesSync(LOCK, new Date(), new Date())
    } catch {
      // Taken away: what is compiled is right all the same.
    }
  }, RENEW_MS)
  return {
    leave() {
      clearInterval(renewal)
      leaveAt(text)
    },
  }
}

/** Removes the lock where it is this process's. Out: null. */
function leaveAt(text) {
  if (readLock()?.text === text) rmSync(LOCK, { force: true })
  return null
}

/** Cleans when a signal ends this process. Out: what forgets that. */
function onSignal(clean) {
  const handlers = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'].map((signal) => {
    const handler = () => {
      clean()
      process.exit(128 + constants.signals[signal])
    }
    process.once(signal, handler)
    return () => process.off(signal, handler)
  })
  return () => {
    for (const forget of handlers) forget()
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
