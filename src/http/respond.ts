/**
 * respond - answers as values, and refusals made from the table of refusals
 *
 * Spec error.body, error.retry-after, refusal.order
 */

import { DamagedValue } from '../../cluster/sum.ts'
import { DASHBOARD_REFUSALS, REFUSALS, type RefusalCode, type RefusalRow } from '../../schemas/refusals.ts'
import { RingNotReady } from '../state/ring/ring.ts'

/** An answer with a body of JSON, text or bytes, or without a body. */
export interface Reply {
  readonly status: number
  readonly json?: unknown
  readonly text?: string
  readonly bytes?: Uint8Array
  /** Of `text` and `bytes`; plain text if absent. JSON is always `application/json`. */
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
  /** `Set-Cookie` headers, sent in addition to `headers`. */
  readonly cookies?: readonly string[]
  /** Ids of messages that it accepted, for the log of requests, if its body has another form than ours. */
  readonly messageIds?: readonly string[]
  /** Recipients of messages that it accepted and that are on a suppression list, by message id: doors name them. */
  readonly suppressed?: ReadonlyMap<string, SuppressedRecipients>
}

/** Recipients of a message to whom it is not sent. */
export interface SuppressedRecipients {
  readonly addresses: readonly string[]
  /** Whether it has no other recipient. */
  readonly isAll: boolean
}

/** Where a feed writes. Both do nothing once the feed is over. */
export interface FeedSink {
  send(text: string): void
  end(): void
}

/** An answer that continues as `text/event-stream`. Exactly one of both is called. */
export interface Feed {
  /** Begins it; returns a function that ends it on our side. */
  start(sink: FeedSink): () => void
  /** Maximum bytes buffered for a client that does not read, if lower than for other feeds. */
  readonly waitingBytesMax?: number
  /** Called instead if the client is already gone, or requested only the head. */
  skip?(): void
}

/** An answer of many bytes, which are read as the client takes them. Ranges are the wrapper's matter. */
export interface Download {
  /** Size of the whole body. */
  readonly size: number
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Opens `length` bytes from `from` on. Called at most once; may throw while it is read, and is then cut off. */
  read(from: number, length: number): AsyncIterable<Uint8Array>
  /** Called once when the answer is over, whether it was read or not. */
  end?(): void
}

/** An answer of unknown length, whose pieces are made as the client takes them. */
export interface Pieces {
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** The client is disconnected if it has not read everything after this time. */
  readonly msMax: number
  /** Called at most once; may throw while it is read, and is then cut off. */
  pieces(): AsyncIterable<string>
  /** Called once when the answer is over; with false if it was not written to its end. */
  end(isWhole: boolean): void
}

/** An answer in more pieces than one. */
export type LongAnswer = Download | Pieces

/** The answer of a handler; `close` ends the connection without an answer. */
export type Answer = Reply | Feed | LongAnswer | { readonly close: true }

const ROWS = new Map<string, RefusalRow>([...REFUSALS, ...DASHBOARD_REFUSALS].map((row) => [row.code, row]))
/** Seconds after which a client may retry if the refusal does not give a time. */
const RETRY_AFTER_S = '1'

/**
 * Makes the answer of a refusal. Takes the code, the extra fields of its row, a sentence replacing the row's, and the
 * time (Unix ms) from which a limit's `resetsAt` counts. Throws TypeError on a code that the table does not hold.
 */
export function refusalReply(
  code: RefusalCode,
  extra: Readonly<Record<string, unknown>> = {},
  message?: string,
  nowMs: number = Date.now(),
): Reply {
  const row = ROWS.get(code)
  if (row === undefined) throw new TypeError(`No such refusal: ${code}`)
  const json = { error: code, message: message ?? row.message, ...extra }
  if (code === 'unauthorized') return { status: 401, json, headers: { 'WWW-Authenticate': 'Bearer' } }
  if (row.status === 503) return { status: 503, json, headers: { 'Retry-After': RETRY_AFTER_S } }
  if (row.status !== 429) return { status: row.status, json }
  return { status: 429, json, headers: { 'Retry-After': formatRetryAfter(extra.resetsAt, nowMs) } }
}

/** The edge's own 429, in plain text. Spec request.rate */
export const RATE_REFUSAL: Reply = {
  status: 429,
  text: '429 Too Many Requests',
  headers: { 'Retry-After': RETRY_AFTER_S },
}

/** The edge's own 413, in plain text. Spec request.body.max */
export const SIZE_REFUSAL: Reply = { status: 413, text: '413 Request Entity Too Large' }

// Spec error.retry-after
function formatRetryAfter(resetsAt: unknown, nowMs: number): string {
  const waitMs = typeof resetsAt === 'string' ? Date.parse(resetsAt) - nowMs : 0
  return String(Math.max(1, Math.ceil((Number.isNaN(waitMs) ? 0 : waitMs) / 1000)))
}

/** The answer to a request that threw. */
export function refuseFault(fault: unknown): Reply {
  if (fault instanceof DamagedValue) return refusalReply('data_damaged')
  return refusalReply(fault instanceof RingNotReady ? 'unavailable' : 'internal_error')
}
