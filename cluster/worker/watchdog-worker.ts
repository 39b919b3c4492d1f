/**
 * watchdog-worker - counts ticks beside the main loop; ends the process when that one has stopped, and reports where.
 */
import { writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { workerData } from 'node:worker_threads'

/** Time for the main thread to show its position, because it may hang outside of our code. */
const SHOW_MS_MAX = 1_000
const FRAMES_MAX = 20

const { ticks, tickMs, ticksMax } = workerData as WatchdogData
const count = new Int32Array(ticks)
let seen = -1
let missed = 0

const timer = setInterval(() => {
  const now = Atomics.load(count, 0)
  missed = now === seen ? missed + 1 : 0
  seen = now
  if (missed < ticksMax) return
  clearInterval(timer)
  setTimeout(() => end('  (without a position)'), SHOW_MS_MAX)
  showWhere()
}, tickMs)

/** Input of the thread. */
export interface WatchdogData {
  /** One 32-bit number with the ticks of the main loop. */
  readonly ticks: SharedArrayBuffer
  readonly tickMs: number
  readonly ticksMax: number
}

/** Stops the main thread at its current statement, and ends the process with the functions that it was in. */
function showWhere(): void {
  const session = new Session()
  const urls = new Map<string, string>()
  session.connectToMainThread()
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url))
  session.on('Debugger.paused', ({ params }) => end(framesOf(params.callFrames, urls)))
  session.post('Debugger.enable')
  session.post('Debugger.pause')
}

/** Only functions and positions, without their data. */
function framesOf(frames: readonly Debugger.CallFrame[], urls: ReadonlyMap<string, string>): string {
  return frames
    .slice(0, FRAMES_MAX)
    .map(({ functionName, location: { scriptId, lineNumber } }) => {
      return `  at ${functionName || '(anonymous)'} (${urls.get(scriptId) ?? ''}:${lineNumber + 1})`
    })
    .join('\n')
}

/** Nothing gentler reaches a loop that does not turn. */
function end(where: string): void {
  writeSync(2, `The loop has not turned for ${ticksMax} ticks of ${tickMs} ms; the process ends. It is\n${where}\n`)
  process.kill(process.pid, 'SIGKILL')
}
