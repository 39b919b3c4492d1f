/**
 * status - the packed events of one recipient of a message.
 *
 * States (message.states): accepted, suppressed, deferred, delivered, bounced, cancelled, failed. They are derived
 * from the events: the last one that is neither a complaint nor an unsubscribe decides.
 *
 * Packed: `[attempts, next attempt in ms after acceptance or 0, event…, size as built]`. An event is
 * `[letter, ms after acceptance, …]`:
 *
 *   d delivered, l deferred     response, code, route
 *   b bounced, f and s the      response, classification, 1 hard + 2 expired, code, route
 *     bounces of failed and suppressed
 *   c spam_complaint            feedback type
 *   u unsubscribed              1 one_click, 0 link
 *   x cancelled                 (no event of the catalogue)
 *
 * A response of 1 is the one of the event before. A code is left off if the response begins with it; -1 means no code
 * if the response begins with a number. The route is the text of `mail/attempt-route.ts`, absent for an event without
 * an attempt at a mail server. Zeros and nulls at the end of an event are left off. The size is only in the first
 * recipient's row. A sum is at the end. A delivered recipient takes about 53 bytes.
 *
 * No row is written at acceptance: a recipient of a logged message without a row is fresh, that is accepted and not
 * tried. The first event writes its row, so an absent row must be read as a fresh recipient.
 *
 * Spec message.states, message.recipient, event.catalogue
 */

import { withoutSum, withSum } from '../../../cluster/sum.ts'
import type { RECIPIENT_STATUSES } from '../../../schemas/message.ts'

export type RecipientStatus = (typeof RECIPIENT_STATUSES)[number]

interface At {
  readonly occurredAtMs: number
}
interface Reply {
  readonly code: number | null
  readonly response: string | null
  /** Packed (`mail/attempt-route.ts`); absent if no mail server was tried. */
  readonly route?: string
}

/** An event of a recipient. `cancelled` is not in the catalogue: it is kept for its status, and never shown. */
export type StatusEvent = At &
  (
    | ({ readonly event: 'delivered' | 'deferred' } & Reply)
    | ({
        readonly event: 'bounced'
        readonly classification: string | null
        readonly hard: boolean
        readonly expired: boolean
        readonly status: 'bounced' | 'failed' | 'suppressed'
      } & Reply)
    | { readonly event: 'spam_complaint'; readonly feedbackType: string | null }
    | { readonly event: 'unsubscribed'; readonly source: 'link' | 'one_click' }
    | { readonly event: 'cancelled' }
  )

/** A recipient, unpacked. */
export interface RecipientState {
  readonly attempts: number
  /** Only while it is open; the moment of acceptance if the first attempt is due at once. */
  readonly nextAttemptAtMs: number | null
  /** Oldest first. */
  readonly events: readonly StatusEvent[]
  readonly status: RecipientStatus
  readonly statusAtMs: number
  /** Message as built; null while unknown, and in rows other than the first recipient's. */
  readonly sizeBytes: number | null
}

/** The input of `packStatus`; the other values are derived from it. */
export type StatusToPack = Pick<RecipientState, 'attempts' | 'nextAttemptAtMs' | 'events' | 'sizeBytes'>

type PackedEvent = (string | number)[]

const SAME_RESPONSE = 1
const NO_CODE = -1
const BOUNCE_LETTERS = { bounced: 'b', failed: 'f', suppressed: 's' } as const
const BOUNCE_STATUSES = { b: 'bounced', f: 'failed', s: 'suppressed' } as const

/** Whether a recipient still waits for its end. */
export function isOpen(status: RecipientStatus): boolean {
  return status === 'accepted' || status === 'scheduled' || status === 'deferred'
}

/** A message's status: the common one of its recipients, of which there is at least one, or `mixed`. */
export function messageStatus(statuses: readonly RecipientStatus[]): RecipientStatus | 'mixed' {
  const first = statuses[0] ?? 'accepted'
  return statuses.every((status) => status === first) ? first : 'mixed'
}

/** Field of a recipient's row: the message's short id, with `.<n>` from the second recipient on. */
export function statusField(messageShort: string, recipient: number): string {
  return recipient === 0 ? messageShort : `${messageShort}.${recipient}`
}

/** Packs a recipient; times are kept relative to `acceptedAtMs`. */
export function packStatus(state: StatusToPack, acceptedAtMs: number): string {
  const nextMs = state.nextAttemptAtMs === null ? 0 : state.nextAttemptAtMs - acceptedAtMs
  const packed: (number | PackedEvent)[] = [state.attempts]
  if (nextMs !== 0 || state.events.length > 0 || state.sizeBytes !== null) packed.push(nextMs)
  let before: string | null = null
  for (const event of state.events) {
    packed.push(packEvent(event, acceptedAtMs, before))
    before = 'response' in event ? event.response : null
  }
  if (state.sizeBytes !== null) packed.push(state.sizeBytes)
  return withSum(JSON.stringify(packed))
}

/** Unpacks the result of `packStatus`; null, for a missing row, is a fresh recipient. */
export function unpackStatus(text: string | null, acceptedAtMs: number): RecipientState {
  if (text === null) return freshState(acceptedAtMs)
  const packed = JSON.parse(withoutSum(text, 'status')) as (number | PackedEvent)[]
  const events: StatusEvent[] = []
  let sizeBytes: number | null = null
  let before: string | null = null
  let status: RecipientStatus = 'accepted'
  let statusAtMs = acceptedAtMs
  for (let index = 2; index < packed.length; index += 1) {
    const part = packed[index]!
    if (typeof part === 'number') {
      sizeBytes = part
      continue
    }
    const event = unpackEvent(part, acceptedAtMs, before)
    before = 'response' in event ? event.response : null
    events.push(event)
    if (event.event === 'spam_complaint' || event.event === 'unsubscribed') continue
    status = event.event === 'bounced' ? event.status : event.event
    statusAtMs = event.occurredAtMs
  }
  const nextMs = (packed[1] as number | undefined) ?? 0
  const nextAttemptAtMs = isOpen(status) ? acceptedAtMs + nextMs : null
  return { attempts: packed[0] as number, nextAttemptAtMs, events, status, statusAtMs, sizeBytes }
}

function freshState(acceptedAtMs: number): RecipientState {
  const events: readonly StatusEvent[] = []
  const at = { nextAttemptAtMs: acceptedAtMs, statusAtMs: acceptedAtMs }
  return { attempts: 0, events, status: 'accepted', sizeBytes: null, ...at }
}

function packEvent(event: StatusEvent, acceptedAtMs: number, before: string | null): PackedEvent {
  const ms = event.occurredAtMs - acceptedAtMs
  switch (event.event) {
    case 'delivered':
      return trim(['d', ms, packResponse(event, before), packCode(event), event.route ?? 0])
    case 'deferred':
      return trim(['l', ms, packResponse(event, before), packCode(event), event.route ?? 0])
    case 'bounced': {
      const flags = (event.hard ? 1 : 0) + (event.expired ? 2 : 0)
      const letter = BOUNCE_LETTERS[event.status]
      const reply = [packResponse(event, before), event.classification ?? 0, flags, packCode(event)]
      return trim([letter, ms, ...reply, event.route ?? 0])
    }
    case 'spam_complaint':
      return trim(['c', ms, event.feedbackType ?? 0])
    case 'unsubscribed':
      return trim(['u', ms, event.source === 'one_click' ? 1 : 0])
    case 'cancelled':
      return ['x', ms]
  }
}

function unpackEvent(packed: PackedEvent, acceptedAtMs: number, before: string | null): StatusEvent {
  const [letter, ms, first, second, third, fourth, fifth] = packed
  const occurredAtMs = acceptedAtMs + (ms as number)
  const response = first === SAME_RESPONSE ? before : textOrNull(first)
  switch (letter) {
    case 'd':
    case 'l':
      return {
        event: letter === 'd' ? 'delivered' : 'deferred',
        occurredAtMs,
        code: unpackCode(second, response),
        response,
        ...routeOf(third),
      }
    case 'c':
      return { event: 'spam_complaint', occurredAtMs, feedbackType: textOrNull(first) }
    case 'u':
      return { event: 'unsubscribed', occurredAtMs, source: first === 1 ? 'one_click' : 'link' }
    case 'x':
      return { event: 'cancelled', occurredAtMs }
    default: {
      const flags = (third as number | undefined) ?? 0
      return {
        event: 'bounced',
        occurredAtMs,
        code: unpackCode(fourth, response),
        response,
        classification: textOrNull(second),
        hard: (flags & 1) === 1,
        expired: (flags & 2) === 2,
        status: BOUNCE_STATUSES[letter as 'b' | 'f' | 's'],
        ...routeOf(fifth),
      }
    }
  }
}

function routeOf(packed: string | number | undefined): { readonly route?: string } {
  return typeof packed === 'string' ? { route: packed } : {}
}

function packResponse({ response }: Reply, before: string | null): string | number {
  if (response === null) return 0
  return response === before ? SAME_RESPONSE : response
}

function packCode({ code, response }: Reply): number {
  if (code === leadingCode(response)) return 0
  return code ?? NO_CODE
}

function unpackCode(packed: string | number | undefined, response: string | null): number | null {
  if (packed === NO_CODE) return null
  return typeof packed === 'number' && packed !== 0 ? packed : leadingCode(response)
}

/** The three digits that a reply in one line begins with (RFC 5321 4.2), null for none. */
function leadingCode(response: string | null): number | null {
  if (response === null || response.length < 3 || (response.length > 3 && response[3] !== ' ')) return null
  let code = 0
  for (let index = 0; index < 3; index += 1) {
    const digit = response.charCodeAt(index) - 0x30
    if (digit < 0 || digit > 9) return null
    code = code * 10 + digit
  }
  return code
}

function textOrNull(value: string | number | undefined): string | null {
  return typeof value === 'string' ? value : null
}

function trim(packed: PackedEvent): PackedEvent {
  while (packed.length > 2 && packed.at(-1) === 0) packed.pop()
  return packed
}

/** An event without the receiving server's words and name: either may name the recipient. */
export function withoutResponse(event: StatusEvent): StatusEvent {
  if (!('response' in event)) return event
  const { route, ...rest } = event
  return event.response === null && route === undefined ? event : { ...rest, response: null }
}

/** Class of a suppressed recipient. */
export const SUPPRESSED_CLASS = 'Suppressed'

/** A recipient that is not sent to, because its address is on the stream's list. Spec send.suppressed */
export function suppressedStatus(submittedAtMs: number): StatusToPack {
  const event: StatusEvent = {
    event: 'bounced',
    occurredAtMs: submittedAtMs,
    code: null,
    response: null,
    classification: SUPPRESSED_CLASS,
    hard: true,
    expired: false,
    status: 'suppressed',
  }
  return { attempts: 0, nextAttemptAtMs: null, events: [event], sizeBytes: null }
}
