/**
 * threaded-client - asks the DNS in a thread of its own, for the main thread
 *
 * c-ares hands over everything that has arrived before the loop continues. Fifty answers of 64 KB, which strangers'
 * servers may send at once, would pause the main thread for 150 ms.
 *
 * Guarantees: the thread starts with the first question, so an idle process does without its memory; questions whose
 * thread ends get `failure`, and the next question starts a new one.
 */

import { Worker } from 'node:worker_threads'
import type { DnsAnswer, RecordType } from './answer.ts'
import type { ClientOptions, DnsClient } from './client.ts'

/** Answers are passed on at once, so the thread holds a few of them; by default garbage would take 48 MB. */
const HEAP = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 4 }
const ENDED = { status: 'failure', code: 'ECANCELLED' } as const

/** A message to the thread. */
export interface DnsQuestion {
  readonly id: number
  readonly type: RecordType
  readonly name: string
}

/** A message of the thread. */
export interface DnsReply {
  readonly id: number
  readonly answer: DnsAnswer<unknown>
}

export interface ClientThread {
  /** A client whose `close` ends its own questions only. */
  open(): DnsClient
  /** Ends the thread; questions in flight, and later ones, get `failure`. */
  close(): Promise<void>
}

/** Makes it; no thread runs yet. */
export function makeClientThread(options: ClientOptions): ClientThread {
  const pending = new Map<number, (answer: DnsAnswer<unknown>) => void>()
  let worker: Worker | null = null
  let lastId = 0
  let isClosed = false

  function settle(id: number, answer: DnsAnswer<unknown>): void {
    pending.get(id)?.(answer)
    pending.delete(id)
  }

  function settleAll(): void {
    for (const id of [...pending.keys()]) settle(id, ENDED)
  }

  function start(): Worker {
    const started = new Worker(new URL('./client-worker.js', import.meta.url), {
      workerData: options,
      execArgv: [],
      env: {},
      resourceLimits: HEAP,
    })
    started.unref()
    started.on('message', ({ id, answer }: DnsReply) => settle(id, answer))
    // An error is followed by `exit`, which is handled; without a listener it would end the process.
    started.on('error', () => undefined)
    started.on('exit', () => {
      worker = null
      settleAll()
    })
    return started
  }

  function open(): DnsClient {
    const own = new Set<number>()
    return {
      query(type, name) {
        if (isClosed) return Promise.resolve(ENDED)
        try {
          worker ??= start()
        } catch {
          return Promise.resolve(ENDED)
        }
        lastId += 1
        const id = lastId
        own.add(id)
        worker.postMessage({ id, type, name } satisfies DnsQuestion)
        return new Promise((resolve) => {
          pending.set(id, (answer) => {
            own.delete(id)
            resolve(answer)
          })
        })
      },
      close() {
        for (const id of [...own]) settle(id, ENDED)
      },
    }
  }

  return {
    open,
    async close() {
      isClosed = true
      settleAll()
      await worker?.terminate()
    },
  }
}
