/**
 * resolve - DNS look-ups with bounds and memory: at most 5 s each, at most 128 in flight, answers cached for minutes.
 *
 * Guarantees: never throws and never rejects; "there is no such name", "the name has no such record" and "the question
 * could not be answered" are three different answers; equal questions in flight are asked once. Name servers of
 * strangers choose the answers: the cache is bounded in bytes (16 MiB) and holds no answer above 4 KB; an answer above
 * 128 KB is a failure (EBADRESP) and reaches no caller (`client.ts`).
 */

import { setTimeout as delay } from 'node:timers/promises'
import { BoundedCache } from '../process/bounded-cache.ts'
import { answerBytes, type DnsAnswer, type RecordType, type RecordTypes } from './answer.ts'
import { type ClientOptions, type DnsClient, openClient } from './client.ts'

const TOTAL_TIMEOUT_MS = 5000
const IN_FLIGHT_MAX = 128
/** Questions that may wait for a place; past that an answer would come too late anyway. */
const WAITING_MAX = 4096
const CACHE_MAX = 65_536
const CACHE_BYTES_MAX = 16 * 1024 * 1024
const CACHED_ANSWER_BYTES_MAX = 4096
/** RFC 1035 2.3.4, in the form with dots. */
const NAME_CHARS_MAX = 254
const POSITIVE_AGE_MS = 300_000
const NEGATIVE_AGE_MS = 300_000
const FAILURE_AGE_MS = 30_000

export interface ResolverOptions extends ClientOptions {
  /** Asks in place of a client in this thread; `servers` and `queryTimeoutMs` are its own then. */
  readonly client?: DnsClient
  /** The clock for the ages of kept answers, in milliseconds. */
  readonly nowMs: () => number
  /** Bound of one look-up with all its tries and its wait for a place. */
  readonly totalTimeoutMs?: number
  /** Bounds of the cache. */
  readonly keptMax?: number
  readonly keptBytesMax?: number
}

export interface Resolver {
  /** Asks, or answers from memory; with `fresh` it always asks. */
  look<T extends RecordType>(type: T, name: string, options?: { fresh?: boolean }): Promise<DnsAnswer<RecordTypes[T]>>
  /** Abandons look-ups in flight, which answer `failure`. */
  close(): void
}

/** A resolver of its own, with its own memory. */
export function createResolver(options: ResolverOptions): Resolver {
  const client = options.client ?? openClient(options)
  const totalTimeoutMs = options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS
  const cache = new BoundedCache<DnsAnswer<unknown>>({
    entriesMax: options.keptMax ?? CACHE_MAX,
    bytesMax: options.keptBytesMax ?? CACHE_BYTES_MAX,
    entryBytesMax: CACHED_ANSWER_BYTES_MAX,
    nowMs: options.nowMs,
  })
  const inFlight = new Map<string, Promise<DnsAnswer<unknown>>>()
  const places = makePlaces()

  async function ask(question: string, type: RecordType, name: string): Promise<DnsAnswer<unknown>> {
    const controller = new AbortController()
    const late = delay(totalTimeoutMs, { status: 'failure', code: 'ETIMEOUT' } as const, { signal: controller.signal })
    const asked = places.take(() => client.query(type, name))
    // Rejects only when it is aborted, after the race is won.
    late.catch(() => undefined)
    const answer = await Promise.race([asked, late])
    controller.abort()
    inFlight.delete(question)
    cache.set(question, answer, { bytes: answerBytes(answer), untilMs: options.nowMs() + ageMs(answer) })
    return answer
  }

  async function look(type: RecordType, name: string, { fresh = false } = {}): Promise<DnsAnswer<unknown>> {
    if (name.length > NAME_CHARS_MAX) return { status: 'nxdomain' }
    const question = `${type} ${name.toLowerCase()}`
    const known = fresh ? undefined : cache.get(question)
    if (known !== undefined) return known
    const running = inFlight.get(question) ?? ask(question, type, name)
    inFlight.set(question, running)
    return running
  }

  return { look: look as Resolver['look'], close: () => client.close() }
}

/** At most IN_FLIGHT_MAX run at once; the others wait in order. */
function makePlaces() {
  const waiting: (() => void)[] = []
  let taken = 0

  async function take(run: () => Promise<DnsAnswer<unknown>>): Promise<DnsAnswer<unknown>> {
    if (waiting.length >= WAITING_MAX) return { status: 'failure', code: 'EBUSY' }
    if (taken >= IN_FLIGHT_MAX) await new Promise<void>((resolve) => waiting.push(resolve))
    else taken += 1
    const answer = await run()
    const next = waiting.shift()
    // The place is handed on, so the count stays.
    if (next) next()
    else taken -= 1
    return answer
  }

  return { take }
}

function ageMs(answer: DnsAnswer<unknown>): number {
  if (answer.status === 'ok') return POSITIVE_AGE_MS
  return answer.status === 'failure' ? FAILURE_AGE_MS : NEGATIVE_AGE_MS
}
