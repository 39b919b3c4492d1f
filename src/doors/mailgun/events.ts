/**
 * events - GET /v3/{domain}/events and the pages behind its `paging.next`
 *
 * A page names its place and its filters, so it needs nothing else. Its place is the last event read, so a poll that
 * has reached the end continues with the same URL, and gets the events that occurred since.
 */

import { msOf } from '../../../cluster/id.ts'
import type { Issue } from '../../../schemas/error.ts'
import type { EventName } from '../../../schemas/webhook.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { parseReply } from '../../mail/reply.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { type WalkedEvent, walkEvents } from '../common/event-walk.ts'
import { type OwnApi, refuseFields } from '../common/own-api.ts'
import { pageFrom } from '../common/pages.ts'
import { decodeParam } from '../common/path-address.ts'
import { refuseDomain } from './domain.ts'
import { mailDateMs, TAGS } from './message.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 300
/** Our searches for one page. */
const CALLS_MAX = 20
const TOKEN_CHARS_MAX = 4_000
/** The last moment that a date can be, ECMA-262 21.4.1.1, ms. */
const TIME_MAX = 8.64e15
/** Alternatives of one filter. */
const WORDS_MAX = 20
const KNOWN = ['event', 'tags', 'begin', 'end', 'ascending', 'limit', 'recipient', 'message-id', 'severity', 'pretty']

/** The query is read by the handler: `page` names need no other. */
export const EVENTS_QUERY = {
  type: 'object',
  maxProperties: KNOWN.length,
  additionalProperties: { type: 'string', maxLength: 1_000 },
} as const

/** Mailgun's names of our events. It has further ones, which never occur here. */
const NAMES: Readonly<Record<string, string>> = {
  delivered: 'delivered',
  bounced: 'failed',
  deferred: 'failed',
  spam_complaint: 'complained',
  unsubscribed: 'unsubscribed',
}
const ALL = Object.keys(NAMES) as EventName[]
/** Class of a recipient that was on the suppression list. */
const SUPPRESSED = 'Suppressed'

/** A requested page, with the filters and the event that it follows. */
interface Sought {
  readonly events: readonly string[]
  readonly tags: readonly string[]
  readonly severity: string | null
  readonly recipient: string | null
  readonly messageId: string | null
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly isAscending: boolean
  readonly limit: number
  /** The event before the page; null: it is the first. */
  readonly after: string | null
}

/** A page of our own search, with its events and the event after which the next page begins. */
type Page = { readonly events: readonly WalkedEvent[]; readonly last: string | null } | { readonly answer: Answer }

/** GET /v3/{domain}/events */
export const mailgunEvents: DoorHandler = async (request, own) => {
  const issues: Issue[] = []
  const sought = readQuery(request.query, issues)
  return issues.length > 0 ? refuseFields(issues) : answerPage(request, own, sought)
}

/** GET /v3/{domain}/events/{page} */
export const mailgunEventsPage: DoorHandler = async (request, own) => {
  const sought = parseToken(request.params.page ?? '')
  return sought === null ? refuseFields([{ path: 'page', message: 'Unknown page' }]) : answerPage(request, own, sought)
}

async function answerPage(request: EdgeRequest, own: OwnApi, sought: Sought): Promise<Answer> {
  const missing = await refuseDomain(request, own)
  if (missing !== null) return missing
  const page = sought.isAscending ? await readForward(request, own, sought) : await readBack(request, own, sought)
  if ('answer' in page) return page.answer
  const domain = decodeParam(request, 'domain').toLowerCase()
  const items = page.events.map((event) => shown(event, domain))
  const urlOf = (after: string | null) => `${own.baseUrl}/v3/${domain}/events/${formatToken({ ...sought, after })}`
  const [first, next] = [urlOf(null), urlOf(page.last ?? sought.after)]
  return { status: 200, json: { items, paging: { first, previous: first, next, last: next } } }
}

/** In the order in which the events occurred. */
async function readForward(request: EdgeRequest, own: OwnApi, sought: Sought): Promise<Page> {
  const events: WalkedEvent[] = []
  let { after } = sought
  for (let calls = 0; calls < CALLS_MAX && events.length < sought.limit; calls += 1) {
    const body = {
      ...makeFilter(sought),
      ...(sought.fromMs !== null && { from: formatInstant(sought.fromMs) }),
      ...(sought.toMs !== null && { to: formatInstant(sought.toMs) }),
      ...(after !== null && { after }),
      limit: sought.limit,
    }
    const page = pageFrom<WalkedEvent>(await own.call('searchEvents', request, { body }), 'events')
    if ('answer' in page) return page
    for (const event of page.items) {
      after = event.id
      if (isSought(event, sought)) events.push(event)
      if (events.length === sought.limit) return { events, last: after }
    }
    if (page.next === null) break
    after = page.next
  }
  return { events, last: after }
}

/** From the newest event back, which is Mailgun's order unless it is asked for the other. */
async function readBack(request: EdgeRequest, own: OwnApi, sought: Sought): Promise<Page> {
  const { after, fromMs, limit } = sought
  const walked = await walkEvents(request, own, {
    events: ALL.filter((name) => sought.events.includes(NAMES[name] ?? '')),
    filter: makeFilter(sought),
    fromMs,
    toMs: after === null ? sought.toMs : msOf(after) + 1,
    enough: limit,
    keep: (event) => (after === null || event.id < after) && isSought(event, sought),
  })
  if ('answer' in walked) return walked
  const events = walked.events.slice(0, limit)
  return { events, last: events.at(-1)?.id ?? null }
}

function makeFilter({ recipient, messageId }: Sought): Readonly<Record<string, string>> {
  return { ...(recipient !== null && { recipient }), ...(messageId !== null && { messageId }) }
}

function isSought(event: WalkedEvent, { events, tags, severity }: Sought): boolean {
  const name = NAMES[event.event]
  if (name === undefined || !events.includes(name)) return false
  if (severity !== null && severityOf(event) !== severity) return false
  return tags.length === 0 || tagsOf(event).some((tag) => tags.includes(tag))
}

function tagsOf({ tag, metadata }: WalkedEvent): readonly string[] {
  return metadata[TAGS]?.split(',') ?? (tag === null ? [] : [tag])
}

function severityOf({ event }: WalkedEvent): string | null {
  if (event === 'deferred') return 'temporary'
  return event === 'bounced' ? 'permanent' : null
}

function shown(event: WalkedEvent, domain: string): object {
  const { id, messageId, recipient, occurredAt, metadata, details } = event
  const { broadcastId } = event as unknown as { readonly broadcastId: string | null }
  const severity = severityOf(event)
  const { [TAGS]: _, ...variables } = metadata
  const response = details.response ?? ''
  const { code, enhanced, text } = parseReply(response)
  const isSuppressed = details.classification === SUPPRESSED
  return {
    id,
    event: NAMES[event.event],
    timestamp: Date.parse(occurredAt) / 1_000,
    recipient,
    'recipient-domain': recipient.slice(recipient.lastIndexOf('@') + 1),
    tags: tagsOf(event),
    'user-variables': variables,
    // All messages of one send have one id.
    message: { headers: { 'message-id': `${broadcastId ?? messageId}@${domain}` } },
    ...(severity !== null && { severity, reason: isSuppressed ? 'suppress-bounce' : 'generic' }),
    ...(event.event in REPLIES && {
      'delivery-status': {
        // Mailgun has this code for a recipient that it does not send to.
        code: isSuppressed ? 605 : (details.code ?? code ?? 0),
        message: text === '' ? response : text,
        description: details.classification ?? '',
        ...(enhanced !== null && { 'enhanced-code': enhanced }),
      },
    }),
  }
}

/** Events that include the reply of a server. */
const REPLIES = { delivered: true, bounced: true, deferred: true }

function readQuery(query: Readonly<Record<string, string>>, issues: Issue[]): Sought {
  for (const path in query) if (!KNOWN.includes(path)) issues.push({ path, message: 'Unknown parameter' })
  const { limit, severity = null, recipient = null } = query
  const count = Number(limit ?? LIMIT_DEFAULT)
  if (!Number.isInteger(count) || count < 1 || count > LIMIT_MAX)
    issues.push({ path: 'limit', message: `Must be 1 to ${LIMIT_MAX}` })
  const [begin, end] = [parseTime('begin', query.begin, issues), parseTime('end', query.end, issues)]
  // A span that is given backwards is read backwards.
  const isReverse = begin !== null && end !== null && begin > end
  const isAscending =
    query.ascending === undefined ? begin !== null && end !== null && !isReverse : isYes(query.ascending)
  const [fromMs, toMs] = isReverse || (begin !== null && end === null && !isAscending) ? [end, begin] : [begin, end]
  const [, id] = /^<?([0-9a-f-]{36})(?:@.*)?$/i.exec(query['message-id'] ?? '') ?? []
  if (query['message-id'] !== undefined && id === undefined)
    issues.push({ path: 'message-id', message: 'Must be the id of a message' })
  const events = splitWords(query.event)
  return {
    events: events.length > 0 ? events : Object.values(NAMES),
    tags: splitWords(query.tags),
    severity,
    recipient,
    messageId: id ?? null,
    fromMs,
    toMs,
    isAscending,
    limit: count,
    after: null,
  }
}

/** Words of a filter such as `delivered OR failed`. */
function splitWords(text = ''): string[] {
  return text
    .split(/ OR | AND |,/i, WORDS_MAX)
    .map((word) => word.trim().replace(/^"(.*)"$/, '$1'))
    .filter((word) => word !== '')
}

function isYes(text: string): boolean {
  return ['yes', 'true', '1'].includes(text.toLowerCase())
}

/** Seconds since 1970, or the date of a mail. */
function parseTime(path: string, text: string | undefined, issues: Issue[]): number | null {
  if (text === undefined || text === '') return null
  const ms = /^\d{1,12}(\.\d{1,9})?$/.test(text) ? Math.floor(Number(text) * 1_000) : mailDateMs(text)
  if (ms === null) issues.push({ path, message: 'Must be seconds since 1970, or a date as in the header of a mail' })
  return ms
}

function formatToken(sought: Sought): string {
  return Buffer.from(JSON.stringify(sought)).toString('base64url')
}

/** Every value is checked again by our own search, or compared only. */
function parseToken(token: string): Sought | null {
  if (token.length > TOKEN_CHARS_MAX) return null
  try {
    const read = JSON.parse(Buffer.from(token, 'base64url').toString()) as Partial<Sought>
    const isTime = (value: unknown) =>
      value === null || (Number.isInteger(value) && Math.abs(value as number) <= TIME_MAX)
    const isText = (value: unknown) => value === null || typeof value === 'string'
    const isList = (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string')
    const { events, tags, severity, recipient, messageId, fromMs, toMs, isAscending, limit = 0, after } = read
    const isWhole =
      [events, tags].every(isList) &&
      [fromMs, toMs].every(isTime) &&
      [severity, recipient, messageId].every(isText) &&
      (after === null || /^[0-9a-f-]{36}$/.test(after ?? '')) &&
      typeof isAscending === 'boolean' &&
      Number.isInteger(limit) &&
      limit >= 1 &&
      limit <= LIMIT_MAX
    return isWhole ? (read as Sought) : null
  } catch {
    return null
  }
}

function formatInstant(ms: number): string {
  return new Date(ms).toISOString()
}
