/**
 * pauses - the longest pause of a process's event loop, without the time that the machine withheld
 *
 * A process under attack loads this file first (`node --import`) and writes each pause to `PAUSES_FILE`. The test
 * reads the file. A pause is the delay of a timer, limited to the time that the main thread computed meanwhile, as
 * Linux counts it (proc(5), schedstat): a busy processor or disk is the machine's pause, not the attack's.
 */
import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const TICK_MS = 5
/** Shorter pauses are not written. */
const PAUSE_MS_MIN = 20

/** Options of `node` and variables that make it write its pauses to `path`. */
export function pauseProbe(path: string): { nodeArgs: readonly string[]; env: Readonly<Record<string, string>> } {
  return { nodeArgs: ['--import', import.meta.filename], env: { PAUSES_FILE: path } }
}

/** The longest pause in milliseconds that ended at `sinceMs` (`Date.now()`) or later; 0 without one. */
export function longestPause(path: string, sinceMs: number): number {
  const rows = readFileSync(path, 'utf8').trim().split('\n')
  const pauses = rows.map((row) => row.split(' ').map(Number)).filter(([atMs = 0]) => atMs >= sinceMs)
  return Math.max(0, ...pauses.map(([, ms = 0]) => ms))
}

function watch(path: string): void {
  appendFileSync(path, '')
  let last = { atMs: performance.now(), busyMs: busyMs() }
  const timer = setInterval(() => {
    const ms = Math.min(performance.now() - last.atMs - TICK_MS, busyMs() - last.busyMs)
    if (ms >= PAUSE_MS_MIN) appendFileSync(path, `${Date.now()} ${Math.round(ms)}\n`)
    last = { atMs: performance.now(), busyMs: busyMs() }
  }, TICK_MS)
  timer.unref()
}

/** Processor time of the main thread; without a kernel that counts it, all time. */
function busyMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    return performance.now()
  }
}

if (isMainThread && process.env.PAUSES_FILE !== undefined) watch(process.env.PAUSES_FILE)
