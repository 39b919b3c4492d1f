/**
 * parse-room - the thread in which received mail is taken apart, started with the first one.
 *
 * States: no thread; idle; busy with one mail. A mail that takes too long ends the thread, and the next one has a new one.
 * Guarantees: a mail that cannot be parsed in time costs nobody else more than that time; what waits is bounded.
 */

import { Worker } from 'node:worker_threads'
import type { ReportMail } from '../mail/report/report-mail.ts'

/** A mail of any size that is taken parses in milliseconds. */
const PARSE_MS_MAX = 20_000
const WAITING_MAX = 500
/** Memory of the thread: a mail is far smaller, whatever it unpacks to. */
const HEAP_MB_MAX = 256

/** `unreadable`: no parser makes anything of it, or not in time. `busy`: too much is waiting. */
export type Parsed = ReportMail | 'unreadable' | 'busy'

export interface ParseRoom {
  /** Takes one mail apart. Never rejects. */
  parse(bytes: Uint8Array): Promise<Parsed>
  /** Ends the thread; what waits is `busy`. */
  close(): Promise<void>
}

interface Waiting {
  readonly bytes: Uint8Array
  readonly settle: (parsed: Parsed) => void
}

/** Makes the room. `parseMsMax` is what one mail may take. */
export function makeParseRoom(parseMsMax: number = PARSE_MS_MAX): ParseRoom {
  const waiting: Waiting[] = []
  let worker: Worker | null = null
  let current: Waiting | null = null
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function settle(parsed: Parsed): void {
    clearTimeout(timer)
    const done = current
    current = null
    done?.settle(parsed)
    next()
  }

  function next(): void {
    if (current !== null || isClosed) return
    current = waiting.shift() ?? null
    if (current === null) return
    worker ??= start()
    worker.postMessage(current.bytes)
    timer = setTimeout(() => void worker?.terminate(), parseMsMax)
  }

  function start(): Worker {
    const started = new Worker(new URL('./parse-thread.js', import.meta.url), {
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    })
    started.unref()
    started.on('message', (mail: ReportMail | null) => settle(mail ?? 'unreadable'))
    // An error is followed by `exit`, where it is dealt with; without a listener it would end the process.
    started.on('error', () => undefined)
    started.on('exit', () => {
      if (worker === started) worker = null
      if (current !== null && !isClosed) settle('unreadable')
    })
    return started
  }

  return {
    parse(bytes) {
      if (isClosed || waiting.length >= WAITING_MAX) return Promise.resolve('busy')
      return new Promise((resolve) => {
        waiting.push({ bytes, settle: resolve })
        next()
      })
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      for (const one of [current, ...waiting.splice(0)]) one?.settle('busy')
      current = null
      await worker?.terminate()
    },
  }
}
