/**
 * worker-pool - threads that work off jobs, each within its time and each thread within its memory.
 *
 * Guarantees: `run` never rejects; a job delays the others only by its own time; the queue is bounded, and the client
 * whose jobs cost the least is served first (`fair-queue.ts`). If there are several threads, one client has all but
 * one at most: another client's job never waits for its jobs alone.
 */

import { FairQueue } from './fair-queue.ts'
import { JobThread, type Run, type ThreadOptions } from './job-thread.ts'

const WAITING_MAX = 500

export interface WorkerPoolOptions extends ThreadOptions {
  readonly jobMsMax: number
  readonly waitingMax?: number
  /** One without this. */
  readonly threads?: number
}

/** Whose job it is, and its time limit if that is less than the pool's. */
export interface JobTerms {
  readonly client?: string
  readonly msMax?: number
}

interface Waiting<Job, Result, Told> {
  readonly job: Job
  readonly msMax: number
  readonly settle: (run: Run<Result, Told>) => void
}

export class WorkerPool<Job, Result, Told = Result> {
  readonly #jobMsMax: number
  readonly #waiting: FairQueue<Waiting<Job, Result, Told>>
  readonly #threads: readonly JobThread<Job, Result, Told>[]
  /** Threads that a client has now. */
  readonly #serving = new Map<string, number>()
  readonly #perClientMax: number
  #isClosed = false

  constructor({ jobMsMax, waitingMax = WAITING_MAX, threads = 1, ...options }: WorkerPoolOptions) {
    this.#jobMsMax = jobMsMax
    this.#waiting = new FairQueue(waitingMax, () => performance.now())
    this.#threads = Array.from({ length: threads }, () => new JobThread(options))
    this.#perClientMax = Math.max(1, threads - 1)
  }

  /** Has a job done, within the pool's time or less. */
  run(job: Job, { client = '', msMax = this.#jobMsMax }: JobTerms = {}): Promise<Run<Result, Told>> {
    return new Promise((settle) => {
      const waiting = { job, msMax: Math.min(msMax, this.#jobMsMax), settle }
      if (this.#isClosed || !this.#waiting.push(client, waiting)) settle(BUSY)
      else this.#next()
    })
  }

  /** Ends the threads; waiting and running jobs are `busy`. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { settle } of this.#waiting.drain()) settle(BUSY)
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #next(): void {
    const thread = this.#isClosed ? undefined : this.#threads.find(({ isIdle }) => isIdle)
    if (thread === undefined) return
    const next = this.#waiting.take((client) => (this.#serving.get(client) ?? 0) < this.#perClientMax)
    if (next === null) return
    const { client, item } = next
    this.#serving.set(client, (this.#serving.get(client) ?? 0) + 1)
    thread.run(item.job, item.msMax).then((run) => {
      const left = (this.#serving.get(client) ?? 1) - 1
      if (left === 0) this.#serving.delete(client)
      else this.#serving.set(client, left)
      this.#waiting.charge(client, run.tookMs)
      item.settle(run)
      this.#next()
    })
    this.#next()
  }
}

const BUSY = { how: 'busy', told: null, tookMs: 0 } as const
