/**
 * event-walk - events of a server from the newest to the oldest: our search has them in the order in which they
 * occurred, so it is asked for spans of time that go back and grow
 */

import { EVENT_LOG_DAYS, EVENTS_PAGE_MAX } from '../../../schemas/limits.ts'
import type { EventName } from '../../../schemas/webhook.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { isReply, type OwnApi } from './own-api.ts'
import { pageFrom, readOwnPages } from './pages.ts'

/** A message's event as our search answers it. */
export interface WalkedEvent {
  readonly id: string
  readonly event: EventName
  readonly messageId: string
  readonly recipient: string
  readonly occurredAt: string
  readonly streamId: string
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly details: {
    readonly code?: number | null
    readonly response?: string | null
    readonly classification?: string | null
    readonly hard?: boolean
    readonly expired?: boolean
    readonly feedbackType?: string | null
    readonly source?: string
  }
}

/** The events that a walk looks for. */
export interface WalkAsked {
  readonly events: readonly EventName[]
  /** Further filters of our search. */
  readonly filter?: Readonly<Record<string, unknown>>
  readonly fromMs: number | null
  readonly toMs: number | null
  /** Events after which the walk ends. */
  readonly enough: number
  readonly keep?: (event: WalkedEvent) => boolean
}

/** Events, newest first; with `isWhole` there are no more. */
export type Walked =
  | { readonly events: readonly WalkedEvent[]; readonly isWhole: boolean }
  | { readonly answer: Answer }

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Ratio of the length of each span to that of the next one. */
const GROWTH = 5
/** Maximum searches of one span and event, and maximum events of a span; a span with more is split. */
const SPAN_CALLS_MAX = 25
const SPAN_EVENTS_MAX = 5_000
/** Searches of one walk. */
const CALLS_MAX = 100

/** Walks back until enough is found or nothing is left. */
export async function walkEvents(request: EdgeRequest, own: OwnApi, asked: WalkAsked): Promise<Walked> {
  const nowMs = own.nowMs()
  const { enough } = asked
  const fromMs = Math.max(asked.fromMs ?? 0, nowMs - EVENT_LOG_DAYS * DAY_MS)
  const found: WalkedEvent[] = []
  let toMs = Math.min(asked.toMs ?? Number.MAX_SAFE_INTEGER, nowMs + HOUR_MS)
  let spanMs = 2 * HOUR_MS
  let spanMsMax = Number.POSITIVE_INFINITY
  let calls = 0
  while (toMs > fromMs && found.length < enough && calls < CALLS_MAX) {
    const startMs = Math.max(fromMs, toMs - spanMs)
    const span = await readSpan(request, own, { ...asked, startMs, toMs })
    // Searches are bounded; events found before the bound form a page of their own.
    if ('answer' in span && found.length > 0 && isBusy(span.answer)) break
    if ('answer' in span) return span
    calls += span.calls
    // An incomplete read lacks the newest events of its span, which come first, so a shorter span is read.
    if (!span.isWhole && toMs - startMs > 1) {
      spanMsMax = Math.ceil((toMs - startMs) / GROWTH)
      spanMs = spanMsMax
      continue
    }
    found.push(...span.events)
    toMs = startMs
    spanMs = Math.min(spanMs * GROWTH, spanMsMax)
  }
  return { events: found, isWhole: toMs <= fromMs }
}

type Span =
  | { readonly events: readonly WalkedEvent[]; readonly isWhole: boolean; readonly calls: number }
  | { readonly answer: Answer }

/** Reads the events of a span, newest first. */
async function readSpan(
  request: EdgeRequest,
  own: OwnApi,
  {
    events: names,
    filter = {},
    keep = () => true,
    startMs,
    toMs,
  }: WalkAsked & { readonly startMs: number; readonly toMs: number },
): Promise<Span> {
  const events: WalkedEvent[] = []
  let calls = 0
  for (const event of names) {
    const span = { ...filter, event, from: formatInstant(startMs), to: formatInstant(toMs) }
    const read = async (after: string | null) => {
      const body = { ...span, limit: EVENTS_PAGE_MAX, ...(after !== null && { after }) }
      return pageFrom<WalkedEvent>(await own.call('searchEvents', request, { body }), 'events')
    }
    const seen = await readOwnPages(read, { pagesMax: SPAN_CALLS_MAX, enough: SPAN_EVENTS_MAX, keep })
    if ('answer' in seen) return seen
    calls += seen.pages
    events.push(...seen.items)
    if (!seen.isWhole) return { events: newestFirst(events), isWhole: false, calls }
  }
  return { events: newestFirst(events), isWhole: true, calls }
}

function newestFirst(events: WalkedEvent[]): WalkedEvent[] {
  return events.sort((one, other) => (one.id < other.id ? 1 : -1))
}

function isBusy(answer: Answer): boolean {
  return isReply(answer) && answer.status === 429
}

function formatInstant(ms: number): string {
  return new Date(ms).toISOString()
}
