/**
 * job-thread - one thread that does one job at a time, within the job's time and the thread's memory.
 *
 * States: no thread; starting (once); idle; busy with one job. A job that takes too long or too much memory ends the
 * thread, and the next job gets a new one. The time of a job begins when the thread has loaded its code.
 */

import { Worker } from 'node:worker_threads'

/**
 * Messages of a thread: once it has loaded, partial results, the end of the job. `failed` means that the job threw.
 */
export type ThreadMessage<Result, Told = Result> =
  | { readonly ready: true }
  | { readonly told: Told }
  | { readonly done: Result }
  | { readonly failed: true }

/**
 * Result of a job. `told` is its partial result; `busy`: it never began, because the queue is full or the pool is
 * closed.
 */
type Ending<Result, Told> =
  | { readonly how: 'done'; readonly result: Result }
  | { readonly how: 'timeout' | 'crash' | 'busy'; readonly told: Told | null }

/** How a job ended, and how long it had the thread, milliseconds. */
export type Run<Result, Told = Result> = Ending<Result, Told> & { readonly tookMs: number }

export interface ThreadOptions {
  /** The compiled body of the thread. */
  readonly body: URL
  /** Maximum memory of the thread, including its buffers. */
  readonly heapMbMax: number
  /** Buffers of a job that are transferred, not copied. */
  readonly transfer?: (job: never) => readonly ArrayBuffer[]
}

/** A thread that does not load within this has failed. */
const START_MS_MAX = 20_000

interface Current<Job, Result, Told> {
  readonly job: Job
  readonly msMax: number
  readonly settle: (run: Run<Result, Told>) => void
  told: Told | null
  beganMs: number
  isLate: boolean
}

export class JobThread<Job, Result, Told = Result> {
  readonly #options: ThreadOptions
  #worker: Worker | null = null
  #isReady = false
  #current: Current<Job, Result, Told> | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(options: ThreadOptions) {
    this.#options = options
  }

  get isIdle(): boolean {
    return this.#current === null
  }

  /** Does a job, within `msMax` from when the thread is ready. Must be called only while idle. Never rejects. */
  run(job: Job, msMax: number): Promise<Run<Result, Told>> {
    return new Promise((settle) => {
      this.#current = { job, msMax, settle, told: null, beganMs: performance.now(), isLate: false }
      this.#worker ??= this.#start()
      this.#worker.postMessage(job, [...(this.#options.transfer?.(job as never) ?? [])])
      this.#time(this.#isReady ? msMax : START_MS_MAX)
    })
  }

  /** Ends the thread; a job under way is `busy`. */
  async close(): Promise<void> {
    this.#settle({ how: 'busy', told: null })
    await this.#worker?.terminate()
  }

  #time(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#current !== null) this.#current.isLate = true
      void this.#worker?.terminate()
    }, ms)
  }

  #start(): Worker {
    const { body, heapMbMax } = this.#options
    const started = new Worker(body, { execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: heapMbMax } })
    started.on('message', (message: ThreadMessage<Result, Told>) => {
      if (started === this.#worker) this.#onMessage(message)
    })
    // An error is followed by `exit`, which is handled; without a listener it would end the process.
    started.on('error', () => undefined)
    started.on('exit', () => {
      if (started !== this.#worker) return
      this.#worker = null
      this.#isReady = false
      this.#settle({ how: this.#current?.isLate ? 'timeout' : 'crash', told: this.#current?.told ?? null })
    })
    // After the listeners, because one for messages refs the thread. A job under way has a timer.
    started.unref()
    return started
  }

  #onMessage(message: ThreadMessage<Result, Told>): void {
    const current = this.#current
    if ('ready' in message) {
      this.#isReady = true
      if (current === null) return
      current.beganMs = performance.now()
      this.#time(current.msMax)
    } else if ('told' in message) {
      if (current !== null) current.told = message.told
    } else
      this.#settle(
        'done' in message ? { how: 'done', result: message.done } : { how: 'crash', told: current?.told ?? null },
      )
  }

  #settle(ending: Ending<Result, Told>): void {
    clearTimeout(this.#timer)
    const done = this.#current
    this.#current = null
    done?.settle({ ...ending, tookMs: performance.now() - done.beganMs })
  }
}
