/**
 * released - the writes of a release step for its messages: those of an acceptance, without the shared parts.
 *
 * Recipients suppressed since the submission are logged as suppressed, with an event.
 *
 * Keys: log, head, status, segments, by-person, by-tag, person, bodies, content
 *
 * Spec broadcast.release, broadcast.late, message.log
 */

import type { Context, Due, Facts, HashFields, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import type { BroadcastState } from '../../state/broadcast/broadcast.ts'
import { type BucketRow, fileChunksOf, keepSharedOps, packListed } from '../../state/broadcast/content.ts'
import { monthName } from '../../state/calendar.ts'
import { segmentsKey } from '../../state/keys.ts'
import { BODY_PART, contentOps } from '../../state/message/content-part.ts'
import { collectSpellings, packHead } from '../../state/message/head.ts'
import { acceptedRow, countInHour, DEFAULT_STREAM } from '../../state/message/hour-count.ts'
import { itemPrefix, itemSuffix, laneOf } from '../../state/message/item.ts'
import { packLogEntry } from '../../state/message/log-entry.ts'
import { postingOps } from '../../state/message/posting.ts'
import { MessageRows } from '../../state/message/row.ts'
import { packStatus, statusField, suppressedStatus } from '../../state/message/status.ts'
import { PersonNumbers } from '../../state/person/person.ts'
import { enterSegment, hasPostings, SEGMENT_BOUNDS, type Segment } from '../../state/segment.ts'
import type { ServerCounters } from '../../state/server.ts'
import type { StreamState } from '../../state/stream.ts'
import { suppressionIn } from '../../state/suppression.ts'
import type { MessageReference } from '../../state/webhook/item.ts'
import type { AttemptJob, JobMessage } from '../message/prepare-attempt.ts'
import type { Labels } from '../webhook/filter.ts'

/** Bytes of a hash field that names a message. */
const FIELD_BYTES = 22

export interface ReleasedInput {
  readonly broadcast: BroadcastState
  readonly stream: StreamState
  readonly facts: Facts
  readonly context: Context
  readonly cmdId: string
  /** Address of the sender, in lower case. */
  readonly address: string
}

/** The messages of one step. */
export class Released {
  readonly due: Due[] = []
  readonly absent: HashFields[] = []
  /** Events of recipients that were added to the list. */
  readonly news: MessageReference[] = []
  readonly labels: Labels[] = []
  readonly messageIds: string[] = []
  /** Messages with an open recipient, and without. */
  open = 0
  suppressed = 0
  readonly #of: ReleasedInput
  readonly #counters: ServerCounters | null
  readonly #persons: PersonNumbers
  readonly #ops: Op[] = []
  readonly #blobs: Uint8Array[] = []
  #segment: Segment | null

  constructor(of: ReleasedInput, counters: ServerCounters | null) {
    const { broadcast, context, facts } = of
    this.#of = of
    this.#counters = counters
    this.#segment = counters?.segment ?? null
    this.#persons = new PersonNumbers(facts, { shard: context.shard, accountId: broadcast.accountId })
  }

  /** Counters of the server with these messages in its log and among its figures. */
  get serverCounters(): ServerCounters {
    const counted = { ...this.#counters, hour: this.hour.value }
    return this.#segment === null ? counted : { ...counted, segment: this.#segment }
  }

  /** The current hour with these messages, and the finished one before it. Spec stats.count */
  get hour(): ReturnType<typeof countInHour> {
    const { stream, context } = this.#of
    const name = stream.isDefault ? DEFAULT_STREAM : shortId(stream.streamId)
    const figures = acceptedRow(this.open + this.suppressed, this.suppressed)
    return countInHour(this.#counters?.hour, [{ stream: name, figures }], context.nowMs)
  }

  /** Releases the message to one recipient. */
  add(row: BucketRow): void {
    const { broadcast, stream, facts, context } = this.#of
    const { shard } = context
    const { serverId, test } = broadcast
    const messageId = context.newId()
    this.messageIds.push(messageId)
    const short = shortId(messageId)
    const submittedAtMs = msOf(messageId)
    const head = packOwnHead(broadcast, row)
    const segment = this.#enter(submittedAtMs, Buffer.byteLength(head) + FIELD_BYTES)
    const contentId = `${this.#of.cmdId}-${this.#blobs.length}`
    const chunk = packListed({ contentId: broadcast.contentId, substitutions: row.substitutions })
    this.#blobs.push(chunk)
    const part = { part: BODY_PART, chunks: 1, blob: this.#blobs.length - 1 }
    const rows = new MessageRows(shard, { serverId, segment })
    this.#ops.push(rows.headOp(short, head))
    this.#ops.push(...contentOps({ shard, contentId }, [part], { blobs: this.#blobs, submittedAtMs, test }))
    this.#log(row, { messageId, submittedAtMs, contentId, segment })
    const place = { streamId: stream.streamId, hmac: row.hmac }
    if (stream.hasSuppressions === true && suppressionIn(facts, shard, place) !== null) {
      const status = packStatus(suppressedStatus(submittedAtMs), submittedAtMs)
      this.#ops.push(rows.statusOp({ short, recipient: 0 }, status))
      this.news.push({ kind: 'message', event: 'bounced', segment, messageId, recipient: 0, index: 0 })
      const { tagHash, contentId: sharedIn } = broadcast
      this.labels.push({ tagHash, metadata: row.metadata, sharedIn })
      this.suppressed += 1
      return
    }
    this.open += 1
    this.absent.push(rows.statuses([statusField(short, 0)]))
    const of = { recipients: 1, hasAttachments: false, broadcastStreamId: stream.streamId }
    const item = itemPrefix(serverId, segment, short) + itemSuffix(0, of)
    const job: AttemptJob = {
      message: this.#jobMessage({ messageId, submittedAtMs, contentId, chunk }, row),
      recipient: { address: row.address, index: 0 },
    }
    const domain = row.address.slice(row.address.lastIndexOf('@') + 1)
    this.due.push({ lane: laneOf(broadcast.lane, domain), item, atMs: context.nowMs, job })
  }

  /** All writes. */
  finish(): Op[] {
    const { broadcast, context, address } = this.#of
    // The sender's row must outlive the last message that names it.
    this.#persons.numberOfFrom({ hmac: broadcast.senderHmac, address }, monthName(context.nowMs))
    return [...this.#ops, ...this.#persons.ops(), ...keepSharedOps(context.shard, broadcast, context.nowMs)]
  }

  #enter(idMs: number, bytes: number): string {
    const { broadcast, context } = this.#of
    const load = { idMs, test: broadcast.test, recipients: 1, bytes }
    const { segment, opened } = enterSegment(this.#segment, load, SEGMENT_BOUNDS)
    this.#segment = segment
    if (opened) {
      const key = segmentsKey(context.shard, broadcast.serverId)
      this.#ops.push({ key, write: 'ZADD', args: [String(idMs), segment.name] })
    }
    return segment.name
  }

  #log(row: BucketRow, of: { messageId: string; submittedAtMs: number; contentId: string; segment: string }): void {
    const { broadcast, context } = this.#of
    const { shard } = context
    const { serverId, streamId, sender, tagHash } = broadcast
    const { messageId, submittedAtMs, contentId, segment } = of
    const number = this.#persons.numberOf(row, monthName(submittedAtMs))
    const entry = {
      contentId,
      streamId,
      sender,
      recipients: [number],
      kinds: ['to' as const],
      tagHash,
      source: 'b' as const,
    }
    const entryId = entryIdOf(messageId)
    this.#ops.push(new MessageRows(shard, { serverId, segment }).entryOp(messageId, packLogEntry(entry)))
    if (hasPostings(segment))
      this.#ops.push(...postingOps({ shard, serverId, segment }, entryId, { numbers: [number], tagHash }))
  }

  #jobMessage(
    of: { messageId: string; submittedAtMs: number; contentId: string; chunk: Uint8Array },
    row: BucketRow,
  ): JobMessage {
    const { broadcast, stream, address } = this.#of
    const { messageId, submittedAtMs, contentId, chunk } = of
    const { accountId, serverId, streamId, test, tagHash, broadcastId } = broadcast
    return {
      messageId,
      accountId,
      serverId,
      isScheduled: false,
      acceptedAtMs: submittedAtMs,
      test,
      hasReturnPath: !address.endsWith(`@${SIMULATOR_DOMAIN}`),
      keySinceMs: null,
      from: { address, name: null },
      to: [{ address: row.address, name: row.name }],
      cc: [],
      subject: row.subject ?? '',
      headers: {},
      streamId,
      listName: stream.name,
      tagHash,
      broadcast: { broadcastId, contentId: broadcast.contentId, fileChunks: fileChunksOf(broadcast.parts) },
      attachments: [],
      raw: null,
      contentId,
      stored: null,
      content: [{ part: BODY_PART, chunks: [chunk] }],
    }
  }
}

/** The individual part of this message. The rest is in the broadcast's head. */
function packOwnHead(
  { broadcastId, contentId, parts }: BroadcastState,
  { address, name, metadata, subject }: BucketRow,
): string {
  return packHead({
    subject,
    senderName: null,
    recipientNames: [name],
    tag: null,
    metadata,
    headers: {},
    attachments: [],
    stored: null,
    spellings: collectSpellings('', [{ address }]),
    raw: null,
    broadcast: { broadcastId, contentId, fileChunks: fileChunksOf(parts) },
  })
}
