/**
 * acceptance - the writes of accepted messages: the message, its indexes, its counts, and its first attempts.
 *
 * One commit holds, for each message: log entry, head, content with its expiry, an item for each recipient in its
 * lane, and in a busy segment postings; and for the request: persons, counters, the answer under its Idempotency-Key.
 * No status is written, because a recipient without one is fresh.
 *
 * Keys: log, head, segments, by-person, by-tag, person, content, idempotency
 *
 * Spec message.log, retention.content, send.suppressed
 */

import type { Decision, Done, Due, HashFields, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { monthName } from '../../state/calendar.ts'
import { sendingRow, unpackSending } from '../../state/domain.ts'
import { segmentsKey, sendingKey } from '../../state/keys.ts'
import { BODY_PART, contentOps, inlineParts } from '../../state/message/content-part.ts'
import { suppressedNotes } from '../../state/message/end.ts'
import { collectSpellings, packHead } from '../../state/message/head.ts'
import { acceptedRow, type Counted, countInHour, DEFAULT_STREAM } from '../../state/message/hour-count.ts'
import { recordOps } from '../../state/message/idempotency.ts'
import { itemPrefix, itemSuffix, laneOf } from '../../state/message/item.ts'
import { packLogEntry } from '../../state/message/log-entry.ts'
import { postingOps } from '../../state/message/posting.ts'
import { MessageRows } from '../../state/message/row.ts'
import { statsFact, statsOps } from '../../state/message/stats-rows.ts'
import { packStatus, statusField, suppressedStatus } from '../../state/message/status.ts'
import { contentIdOf } from '../../state/object-name.ts'
import { PersonNumbers } from '../../state/person/person.ts'
import { enterSegment, hasPostings, type Segment, type SegmentBounds } from '../../state/segment.ts'
import type { ReportCount } from '../../state/server.ts'
import type { StreamState } from '../../state/stream.ts'
import { suppressionIn } from '../../state/suppression.ts'
import type { MessageReference } from '../../state/webhook/item.ts'
import { reportEvent } from '../bounce-mail/events/report-event.ts'
import { acceptedSignals, announced, announceMessages } from '../webhook/announce.ts'
import type { Labels } from '../webhook/filter.ts'
import type { CapTelling } from './cap.ts'
import { countersAfter } from './count.ts'
import type { AttemptJob, JobMessage } from './prepare-attempt.ts'
import type { AcceptedMessage, RateLeft, RefusedMessage, SendItem, SendRecipient, SendReply } from './send.ts'
import type { SendTurn } from './send-turn.ts'
import { unlinkFilesDue } from './unlink.ts'

/** Bytes of a hash field that names a message. */
const FIELD_BYTES = 22

/** A message on its way into the log. */
interface Placed {
  readonly item: SendItem
  readonly stream: StreamState | null
  readonly messageId: string
  readonly short: string
  readonly submittedAtMs: number
  readonly contentId: string
  readonly segment: string
}

/** The data for the answer and the commit apart from the messages. */
export interface AcceptanceTerms {
  /** The remainder of the limits. */
  readonly rate: readonly RateLeft[]
  /** Events of monthly caps; null: none. */
  readonly telling: CapTelling | null
  readonly bounds: SegmentBounds
  /** Refused messages of a partial send; absent if the request is all or nothing. */
  readonly refused?: readonly RefusedMessage[]
}

/** Accepts every message of the turn. */
export function acceptAll(turn: SendTurn, { rate, telling, bounds, refused }: AcceptanceTerms): Decision<SendReply> {
  const { body, context } = turn
  const acceptance = new Acceptance(turn, bounds)
  const messages = body.messages.map((item, index) => acceptance.add(item, index))
  const hour = countInHour(turn.serverCounters?.hour, acceptance.counted, context.nowMs)
  const ops = acceptance.finish()
  if (hour.ended !== null) {
    const place = { shard: context.shard, serverId: body.serverId }
    const fact = statsFact(place, hour.ended)
    if (!turn.facts.has(fact)) return { kind: 'need', facts: [fact] }
    ops.push(...statsOps(turn.facts, place, hour.ended))
  }
  const ids = messages.map(({ messageId }) => messageId)
  if (body.idempotency !== null) {
    ops.push(...recordOps(body.idempotency, { messageIds: ids, ...(refused && { refused }) }, context))
  }
  // Copying the counts by a spread into a literal with further fields would take 3 % of the thread's time.
  const { segment, bounceMails } = acceptance.counts
  const done: Done<SendReply> = {
    kind: 'done',
    reply: acceptedReply(turn, { messages, rate, refused }),
    counters: countersAfter(turn, { segment, bounceMails, hour: hour.value, telling }),
    ops,
    absent: acceptance.absent,
    due: acceptance.due,
    signals: acceptedSignals(body.serverId, ids, { counters: turn.serverCounters, nowMs: context.nowMs }),
  }
  const warned = telling === null ? done : announced(done, telling.staged)
  if (acceptance.news.length === 0) return warned
  return tellSuppressed(turn, { ...warned, notes: suppressedNotes(acceptance.news) }, acceptance)
}

function acceptedReply(
  { body: { test } }: SendTurn,
  {
    messages,
    rate,
    refused,
  }: Pick<AcceptanceTerms, 'rate'> & {
    readonly messages: readonly AcceptedMessage[]
    readonly refused: AcceptanceTerms['refused'] | undefined
  },
): SendReply {
  const reply = { kind: 'accepted', messages, test, replayed: false, rate } as const
  return refused === undefined ? reply : { ...reply, refused }
}

/** Announces the suppressed recipients. A warning of the same turn may have counted on the same webhooks. */
function tellSuppressed(
  turn: SendTurn,
  done: Done<SendReply>,
  { news, streamIds, labels }: Pick<Acceptance, 'news' | 'streamIds' | 'labels'>,
): Decision<SendReply> {
  const { facts, context, body } = turn
  const counted = new Map((done.counters ?? []).map(({ owner, value }) => [owner, value]))
  const states: SendTurn['states'] = {
    get: (ref) => turn.states.get(ref),
    has: (ref) => turn.states.has(ref),
    hasCounter: (owner) => turn.states.hasCounter(owner),
    counter: (owner) => (counted.get(owner) ?? turn.states.counter(owner)) as never,
  }
  const told = announceMessages({ serverId: body.serverId, news, streamIds, labels }, { states, facts, context })
  return told.kind === 'need' ? told : announced(done, told.staged)
}

class Acceptance {
  readonly due: Due[] = []
  /** Known to be absent, so that the first outcome need not read that its recipient is fresh. */
  readonly absent: HashFields[] = []
  /** Recipients that are not sent to, and the stream of each. */
  readonly news: MessageReference[] = []
  readonly streamIds: string[] = []
  readonly labels: Labels[] = []
  readonly counted: Counted[] = []
  private segment: Segment | null
  private bounceMails: ReportCount | undefined
  private readonly turn: SendTurn
  private readonly bounds: SegmentBounds
  private readonly ops: Op[] = []
  private readonly persons: PersonNumbers

  constructor(turn: SendTurn, bounds: SegmentBounds) {
    const { body, context } = turn
    this.turn = turn
    this.bounds = bounds
    this.segment = turn.serverCounters?.segment ?? null
    this.bounceMails = turn.serverCounters?.bounceMails
    this.persons = new PersonNumbers(turn.facts, { shard: context.shard, accountId: body.accountId })
  }

  add(item: SendItem, index: number): AcceptedMessage {
    const { context, cmdId, places } = this.turn
    const messageId = context.newId()
    const short = shortId(messageId)
    const submittedAtMs = msOf(messageId)
    const head = packItemHead(item)
    const segment = this.enter(submittedAtMs, item.recipients.length, Buffer.byteLength(head) + FIELD_BYTES)
    const place = places?.[index] ?? index
    const contentId = contentIdOf(cmdId, { place, isScheduled: item.sendAtMs !== null })
    const placed = {
      item,
      stream: this.turn.streams[index] ?? null,
      messageId,
      short,
      submittedAtMs,
      contentId,
      segment,
    }
    const rows = this.rows(segment)
    this.ops.push(rows.headOp(short, head))
    this.log(placed)
    // A scheduled message is checked against the list when it is sent.
    const suppressed = item.sendAtMs === null ? suppressedPlaces(this.turn, placed) : NOBODY
    if (suppressed.size > 0) this.endSuppressed(placed, suppressed)
    this.count(placed, suppressed.size)
    this.keepContent(placed, suppressed.size < item.recipients.length)
    this.makeDue(placed, suppressed)
    const fields: string[] = []
    for (const index of item.recipients.keys()) if (!suppressed.has(index)) fields.push(statusField(short, index))
    this.absent.push(rows.statuses(fields))
    const accepted = { messageId, submittedAtMs }
    return suppressed.size === 0 ? accepted : { ...accepted, suppressed: [...suppressed] }
  }

  // Spec stats.count
  private count({ item, stream }: Placed, suppressed: number): void {
    const name = stream === null || stream.isDefault ? DEFAULT_STREAM : shortId(stream.streamId)
    this.counted.push({ stream: name, figures: acceptedRow(item.recipients.length, suppressed) })
  }

  /** All writes; the persons' come last, because a person may be named by several messages. */
  finish(): Op[] {
    this.ops.push(...this.persons.ops())
    return this.ops
  }

  /** Counters of the server that the messages change. */
  get counts(): { readonly segment: Segment | null; readonly bounceMails: ReportCount | undefined } {
    return { segment: this.segment, bounceMails: this.bounceMails }
  }

  private get serverId(): string {
    return this.turn.body.serverId
  }

  private rows(segment: string): MessageRows {
    return new MessageRows(this.turn.context.shard, { serverId: this.serverId, segment })
  }

  private enter(idMs: number, recipients: number, bytes: number): string {
    const load = { idMs, test: this.turn.body.test, recipients, bytes }
    const { segment, opened } = enterSegment(this.segment, load, this.bounds)
    this.segment = segment
    if (opened) {
      const key = segmentsKey(this.turn.context.shard, this.serverId)
      this.ops.push({ key, write: 'ZADD', args: [String(idMs), segment.name] })
    }
    return segment.name
  }

  private log({ item, stream, messageId, submittedAtMs, contentId, segment }: Placed): void {
    const { shard } = this.turn.context
    const { body } = this.turn
    const { tagHash } = item
    // By the id's month, not the clock's, because a person's row must outlive every message with that person.
    const month = monthName(submittedAtMs)
    const sender = this.persons.numberOfFrom(item.from, month)
    const recipients: number[] = []
    const kinds: SendRecipient['kind'][] = []
    for (const recipient of item.recipients) {
      recipients.push(this.persons.numberOf(recipient, month))
      kinds.push(recipient.kind)
    }
    const streamId = stream === null || stream.isDefault ? null : stream.streamId
    const packed = packLogEntry({ contentId, streamId, sender, recipients, kinds, tagHash, source: body.source })
    this.ops.push(this.rows(segment).entryOp(messageId, packed))
    if (!hasPostings(segment)) return
    const place = { shard, serverId: this.serverId, segment }
    this.ops.push(...postingOps(place, entryIdOf(messageId), { numbers: recipients, tagHash }))
  }

  /** Attachments are not kept if the message is sent to no one, except on a test server. */
  private keepContent({ item, contentId, submittedAtMs }: Placed, hasRecipients: boolean): void {
    const { blobs, body, context } = this.turn
    const isSent = hasRecipients || body.test
    const of = { blobs, submittedAtMs, sendAtMs: item.sendAtMs, test: body.test }
    const parts = isSent ? item.content.parts : item.content.parts.filter(({ part }) => part === BODY_PART)
    this.ops.push(...contentOps({ shard: context.shard, contentId }, parts, of))
    if (!isSent && item.content.stored?.files === true)
      this.due.push(unlinkFilesDue(context, { contentId, test: false }))
  }

  // Spec send.suppressed
  private endSuppressed(placed: Placed, suppressed: ReadonlySet<number>): void {
    const { messageId, short, stream, submittedAtMs, segment, item } = placed
    const rows = this.rows(segment)
    const packed = packStatus(suppressedStatus(submittedAtMs), submittedAtMs)
    for (const recipient of suppressed) {
      this.ops.push(rows.statusOp({ short, recipient }, packed))
      this.news.push({ kind: 'message', event: 'bounced', segment, messageId, recipient, index: 0 })
      this.streamIds.push(stream?.streamId ?? this.turn.body.defaultStreamId)
      const { tagHash, metadata } = item
      this.labels.push({ tagHash, metadata, sharedIn: null })
    }
  }

  private makeDue(placed: Placed, suppressed: ReadonlySet<number>): void {
    const { item, stream, short, segment } = placed
    const message = this.jobMessage(placed)
    const prefix = itemPrefix(this.serverId, segment, short)
    const of = {
      recipients: item.recipients.length,
      // A message that came whole goes when attachments would.
      hasAttachments: item.attachments.length > 0 || item.raw !== null,
      broadcastStreamId: stream?.kind === 'broadcast' ? stream.streamId : null,
      sendAtMs: item.sendAtMs,
    }
    const { nowMs } = this.turn.context
    const waits = item.sendAtMs !== null && item.sendAtMs > nowMs
    for (const [index, { address, domain }] of item.recipients.entries()) {
      const name = prefix + itemSuffix(index, of)
      if (suppressed.has(index)) {
        this.report(name, placed)
        continue
      }
      const job: AttemptJob = { message, recipient: { address, index } }
      const lane = laneOf(item.lane, domain)
      if (item.sendAtMs === null) this.due.push({ lane, item: name, atMs: nowMs, job })
      else this.due.push({ lane, item: name, atMs: waits ? item.sendAtMs : nowMs })
    }
  }

  // Spec submission.reports
  private report(name: string, { item: { raw }, submittedAtMs }: Placed): void {
    const { server, context } = this.turn
    const [event] = suppressedStatus(submittedAtMs).events
    if (event === undefined || raw === null) return
    const of = { server, raw, name, event, before: [], count: this.bounceMails }
    const made = reportEvent({ ...of, acceptedAtMs: submittedAtMs, nowMs: context.nowMs })
    if (made === null) return
    this.due.push(made.due)
    this.bounceMails = made.count
  }

  private jobMessage({ item, stream, messageId, submittedAtMs, contentId }: Placed): JobMessage {
    const { body, blobs } = this.turn
    const { from, recipients, subject, headers, tagHash, attachments, raw } = item
    return {
      messageId,
      accountId: body.accountId,
      serverId: body.serverId,
      acceptedAtMs: submittedAtMs,
      isScheduled: false,
      test: body.test,
      hasReturnPath: from.domain !== SIMULATOR_DOMAIN,
      keySinceMs: body.test ? null : this.keySinceMs(from.domain, submittedAtMs),
      from: { address: from.address, name: from.name },
      to: shown(recipients, 'to'),
      cc: shown(recipients, 'cc'),
      subject,
      headers,
      streamId: stream?.streamId ?? body.defaultStreamId,
      listName: stream?.kind === 'broadcast' ? stream.name : null,
      broadcast: null,
      tagHash,
      attachments,
      raw,
      contentId,
      stored: item.content.stored,
      content: inlineParts(item.content.parts, blobs),
    }
  }

  /**
   * The domain is verified, or the message would have been refused. A key that signs only from a later time does not
   * count.
   */
  private keySinceMs(domain: string, submittedAtMs: number): number | null {
    const { facts, body, context } = this.turn
    const key = sendingKey(context.shard, body.accountId)
    const row = domain === SIMULATOR_DOMAIN ? null : sendingRow(facts, key, { domain, isTest: body.test })
    const sinceMs = row === null ? null : unpackSending(row).keySinceMs
    return sinceMs === null || sinceMs > submittedAtMs ? null : sinceMs
  }
}

const NOBODY: ReadonlySet<number> = new Set()

/** Places of the recipients that are on the stream's list. A stream without one costs nothing. */
function suppressedPlaces({ facts, context }: SendTurn, { stream, item }: Placed): ReadonlySet<number> {
  if (stream?.hasSuppressions !== true) return NOBODY
  const places = new Set<number>()
  for (const [index, { hmac }] of item.recipients.entries()) {
    const place = { streamId: stream.streamId, hmac }
    if (suppressionIn(facts, context.shard, place) !== null) places.add(index)
  }
  return places
}

function packItemHead(item: SendItem): string {
  const { from, recipients, subject, tag, metadata, headers, attachments, content, raw } = item
  const { stored } = content
  const at = item.sendAtMs === null ? {} : { sendAtMs: item.sendAtMs }
  const recipientNames: (string | null)[] = []
  for (const { name } of recipients) recipientNames.push(name)
  const spellings = collectSpellings(from.address, recipients)
  const { name: senderName } = from
  return packHead({
    subject,
    senderName,
    recipientNames,
    tag,
    metadata,
    headers,
    attachments,
    stored,
    spellings,
    raw,
    broadcast: null,
    ...at,
  })
}

function shown(recipients: readonly SendRecipient[], kind: 'to' | 'cc'): JobMessage['to'] {
  const addresses: { address: string; name: string | null }[] = []
  for (const { address, name, kind: own } of recipients) if (own === kind) addresses.push({ address, name })
  return addresses
}
