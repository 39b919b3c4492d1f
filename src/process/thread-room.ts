/**
 * thread-room - a thread that works off jobs one after the other, each within its time and the thread within its
 * memory.
 *
 * States: no thread; idle; busy with one job. A job that takes too long, or more memory than there is, ends the thread,
 * and the next one has a new one.
 * Guarantees: `run` never rejects; a job costs the others no more than its time; what waits is bounded.
 */

import { Worker } from 'node:worker_threads'

const WAITING_MAX = 500

/** What a thread posts: what stands so far, then the end of the job. `failed`: the job threw. */
export type ThreadMessage<Result, Told = Result> =
  | { readonly told: Told }
  | { readonly done: Result }
  | { readonly failed: true }

/** How a job ended. `told` is what stood by then; `busy`: it never began, too much is waiting or the room is closed. */
type Ending<Result, Told> =
  | { readonly how: 'done'; readonly result: Result }
  | { readonly how: 'timeout' | 'crash' | 'busy'; readonly told: Told | null }

/** How a job ended, and how long it had the thread, milliseconds. */
export type Run<Result, Told = Result> = Ending<Result, Told> & { readonly tookMs: number }

export interface RoomOptions {
  /** The compiled body of the thread. */
  readonly body: URL
  readonly jobMsMax: number
  /** Memory of the thread, of its buffers too. */
  readonly heapMbMax: number
  readonly waitingMax?: number
  /** Buffers of a job that are handed over, not copied. */
  readonly transfer?: (job: never) => readonly ArrayBuffer[]
}

interface Waiting<Job, Result, Told> {
  readonly job: Job
  readonly msMax: number
  readonly settle: (run: Run<Result, Told>) => void
}

/** A room of one thread. */
export class ThreadRoom<Job, Result, Told = Result> {
  readonly #options: RoomOptions
  readonly #waiting: Waiting<Job, Result, Told>[] = []
  #worker: Worker | null = null
  #current: Waiting<Job, Result, Told> | null = null
  #told: Told | null = null
  #timer: NodeJS.Timeout | undefined
  #isLate = false
  #beganMs = 0
  #isClosed = false

  constructor(options: RoomOptions) {
    this.#options = options
  }

  /** Has a job done, within the room's time or less. */
  run(job: Job, msMax: number = this.#options.jobMsMax): Promise<Run<Result, Told>> {
    if (this.#isClosed || this.#waiting.length >= (this.#options.waitingMax ?? WAITING_MAX))
      return Promise.resolve({ how: 'busy', told: null, tookMs: 0 })
    return new Promise((settle) => {
      this.#waiting.push({ job, msMax: Math.min(msMax, this.#options.jobMsMax), settle })
      this.#next()
    })
  }

  /** Ends the thread; what waits or is under way is `busy`. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const one of [this.#current, ...this.#waiting.splice(0)]) one?.settle({ how: 'busy', told: null, tookMs: 0 })
    this.#current = null
    await this.#worker?.terminate()
  }

  #next(): void {
    if (this.#current !== null || this.#isClosed) return
    this.#current = this.#waiting.shift() ?? null
    if (this.#current === null) return
    this.#told = null
    this.#isLate = false
    this.#beganMs = performance.now()
    this.#worker ??= this.#start()
    const { job } = this.#current
    this.#worker.postMessage(job, [...(this.#options.transfer?.(job as never) ?? [])])
    this.#timer = setTimeout(() => {
      this.#isLate = true
      void this.#worker?.terminate()
    }, this.#current.msMax)
  }

  #start(): Worker {
    const { body, heapMbMax } = this.#options
    const started = new Worker(body, { execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: heapMbMax } })
    started.unref()
    started.on('message', (message: ThreadMessage<Result, Told>) => {
      if (started !== this.#worker) return
      if ('told' in message) this.#told = message.told
      else this.#settle('done' in message ? { how: 'done', result: message.done } : { how: 'crash', told: this.#told })
    })
    // An error is followed by `exit`, where it is dealt with; without a listener it would end the process.
    started.on('error', () => undefined)
    started.on('exit', () => {
      if (started !== this.#worker) return
      this.#worker = null
      if (!this.#isClosed && this.#current !== null)
        this.#settle({ how: this.#isLate ? 'timeout' : 'crash', told: this.#told })
    })
    return started
  }

  #settle(ending: Ending<Result, Told>): void {
    clearTimeout(this.#timer)
    const done = this.#current
    this.#current = null
    done?.settle({ ...ending, tookMs: performance.now() - this.#beganMs })
    this.#next()
  }
}
