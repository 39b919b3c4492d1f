/**
 * pauses - longest pause of a process's event loop, without the time that the machine withheld
 *
 * A process under attack loads this file first (`node --import`) and writes each pause to `PAUSES_FILE`. The test reads
 * the file. Linux counts how long the main thread waited for a processor (proc(5), schedstat); that time is no pause.
 */
import { appendFileSync, readFileSync } from 'node:fs'

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
  let last = { atMs: performance.now(), waitedMs: waitedMs() }
  const timer = setInterval(() => {
    const now = { atMs: performance.now(), waitedMs: waitedMs() }
    const ms = now.atMs - last.atMs - TICK_MS - (now.waitedMs - last.waitedMs)
    if (ms >= PAUSE_MS_MIN) appendFileSync(path, `${Date.now()} ${Math.round(ms)}\n`)
    last = { atMs: performance.now(), waitedMs: waitedMs() }
  }, TICK_MS)
  timer.unref()
}

/** How long the main thread has waited for a processor; 0 where the kernel does not count it. */
function waitedMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

if (process.env.PAUSES_FILE !== undefined) watch(process.env.PAUSES_FILE)
