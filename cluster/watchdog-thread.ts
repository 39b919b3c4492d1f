/** watchdog-thread - counts ticks beside the main loop, and ends the process when that one has stopped. */
import { workerData } from 'node:worker_threads'
import type { WatchdogData } from './watchdog.ts'

const { ticks, tickMs, ticksMax } = workerData as WatchdogData
const count = new Int32Array(ticks)
let seen = -1
let missed = 0

setInterval(() => {
  const now = Atomics.load(count, 0)
  missed = now === seen ? missed + 1 : 0
  seen = now
  // Nothing gentler reaches a loop that does not turn.
  if (missed >= ticksMax) process.kill(process.pid, 'SIGKILL')
}, tickMs)
