/**
 * watchdog - a thread that ends the process when the main thread no longer turns its loop.
 *
 * A process whose loop hangs keeps its connections, so its shards would not be taken for ten seconds, and it would
 * never be restarted. The thread counts its own ticks and not the time: after a stop of the whole process (SIGSTOP, a
 * machine that slept) much time has passed, and yet nothing hangs.
 */
import { Worker } from 'node:worker_threads'
import type { WatchdogData } from './watchdog-worker.ts'

const TICK_MS = 1_000
/** Ticks of the thread without one of the main loop. */
const TICKS_MAX = 10

/** Watches this process from now on. Returns a function that ends the watch. */
export function startWatchdog({
  tickMs = TICK_MS,
  ticksMax = TICKS_MAX,
}: Partial<WatchdogData> = {}): () => Promise<void> {
  const ticks = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const count = new Int32Array(ticks)
  const workerData: WatchdogData = { ticks, tickMs, ticksMax }
  const thread = new Worker(new URL('./watchdog-worker.js', import.meta.url), { workerData, execArgv: [] })
  thread.unref()
  const timer = setInterval(() => Atomics.add(count, 0, 1), tickMs / 2)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await thread.terminate()
  }
}
