/**
 * receive - a mail that came in becomes a message of each inbound stream that it is for, or of none.
 *
 * The raw mail is in the content store before the command is sent. One commit writes, for each recipient, log entry,
 * standing, head and the item that parses it, and charges the account's minute; 250 follows the commit. The conditions
 * for the recipients are checked again, because a stream may have been archived while the mail arrived.
 *
 * Guarantees: all recipients or none; only this commit charges the minute; the same bytes sent twice are two messages,
 * because a sender that did not receive 250 sends them again (RFC 1047).
 *
 * Keys: `received received-state:<server>:<segment>`, `received-segments:<server>`, `received-head:<server>:<day>:<n>`,
 * `received-by-person received-by-hash:<server>:<segment>:<bucket>`, `person:<account>`
 *
 * Spec inbound.receive, inbound.limit, retention.inbound
 */

import type { CommandType, Context, Decision, Due, Fact, Op, Refusal, States } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { DAY_MS, monthName } from '../../state/calendar.ts'
import { receivedKey, receivedSegmentsKey, receivedStateKey } from '../../state/keys.ts'
import { namingFacts, PersonNumbers, unreadPersons } from '../../state/person/person.ts'
import { periodOf, take, used } from '../../state/quota.ts'
import {
  contentHeadKey,
  freshHead,
  headExpiresAtMs,
  packContentHead,
  type ReceivedSession,
} from '../../state/received/content-head.ts'
import { packReceivedEntry, RECEIVED_FIELD } from '../../state/received/entry.ts'
import { formatParseItem, parseLane } from '../../state/received/parse-item.ts'
import { RECEIVED_SEGMENT_BOUNDS, receivedPostingOps } from '../../state/received/posting.ts'
import { freshStanding, packStanding } from '../../state/received/standing.ts'
import { type ReceivedCounters, receivedOwner } from '../../state/received/sweep-cursor.ts'
import { enterSegment, type Segment } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import type { ParseJob } from './parse-job.ts'

/** An address of the account that the mail is for. */
export interface ReceivedRecipient {
  readonly serverId: string
  readonly streamId: string
  /** The stream's id as spelled in the envelope, if not in lower case. */
  readonly spelledId: string | null
  readonly mailboxHash: string | null
  /** Keyed hash of the mailbox hash. */
  readonly plusHash: string | null
  /** Id of the mail's object under this recipient's name. */
  readonly objectId: string
}

export interface ReceiveBody {
  readonly accountId: string
  readonly sizeBytes: number
  /** MAIL FROM and its HMAC within the account; null for `<>`. */
  readonly sender: { readonly hmac: string; readonly address: string } | null
  readonly session: ReceivedSession
  /** The key of the mail's objects, sealed. */
  readonly key: string
  readonly recipients: readonly ReceivedRecipient[]
}

/**
 * Ids in the order of the recipients, or the reason for a refusal: a recipient no longer exists, or the minute's limit
 * is reached.
 */
export type ReceiveReply =
  | { readonly kind: 'received'; readonly messageIds: readonly string[] }
  | { readonly kind: 'refused'; readonly why: 'gone' | 'rate_limited' }

/** Timer that removes expired mail. */
export const RECEIVED_TIMER = 'received'

export const receive: CommandType<ReceiveBody, ReceiveReply> = {
  name: 'receive',
  entities: ({ accountId, recipients }) => [
    accountRef(accountId),
    ...serversOf(recipients).map(serverRef),
    ...[...new Set(recipients.map(({ streamId }) => streamId))].map(streamRef),
  ],
  counters: ({ accountId, recipients }) => [accountOwner(accountId), ...serversOf(recipients).map(receivedOwner)],
  facts: ({ accountId, sender }, _states, { shard }, known) =>
    sender === null ? [] : namingFacts({ shard, accountId }, [sender.hmac], known),
  decide(body, states, facts, context): Decision<ReceiveReply> {
    const { accountId, sender, recipients } = body
    const account = states.get<AccountState | null>(accountRef(accountId))
    if (account === null || account.status === 'closed' || !recipients.every((one) => isLive(one, body, states)))
      return refused('gone')
    const counters = states.counter<AccountCounters>(accountOwner(accountId)) ?? {}
    const minute = periodOf('minute', context.nowMs)
    // Spec inbound.limit
    if (used(counters.inboundMinute, minute) + recipients.length > account.inboundPerMinuteLimit)
      return refused('rate_limited')
    const place = { shard: context.shard, accountId }
    const unread: readonly Fact[] = sender === null ? [] : unreadPersons(facts, place, [sender.hmac])
    if (unread.length > 0) return { kind: 'need', facts: unread }
    const persons = new PersonNumbers(facts, place)
    const receipt = new Receipt(body, { states, context, persons })
    const messageIds = recipients.map((recipient) => receipt.add(recipient))
    const inboundMinute = take(counters.inboundMinute, minute, recipients.length)
    return {
      kind: 'done',
      reply: { kind: 'received', messageIds },
      ops: [...receipt.ops, ...persons.ops()],
      due: receipt.due,
      counters: [{ owner: accountOwner(accountId), value: { ...counters, inboundMinute } }, ...receipt.counters()],
    }
  },
}

/** A server's next sweep, in a day. */
export function receivedSweepDue(serverId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: `${RECEIVED_TIMER}:${serverId}`, atMs: nowMs + DAY_MS }
}

function refused(why: 'gone' | 'rate_limited'): Refusal<ReceiveReply> {
  return { kind: 'refuse', answer: { kind: 'refused', why } }
}

function serversOf(recipients: readonly ReceivedRecipient[]): string[] {
  return [...new Set(recipients.map(({ serverId }) => serverId))]
}

/**
 * Whether a recipient is still valid, with an active stream on a server that belongs to the account and was not
 * removed.
 */
function isLive({ serverId, streamId }: ReceivedRecipient, { accountId }: ReceiveBody, states: States): boolean {
  const server = states.get<ServerState | null>(serverRef(serverId))
  const stream = states.get<StreamState | null>(streamRef(streamId))
  if (server === null || server.accountId !== accountId || server.removedAtMs !== undefined) return false
  return stream !== null && stream.serverId === serverId && stream.kind === 'inbound' && stream.archivedAtMs === null
}

/** The writes of the messages of one mail. */
class Receipt {
  readonly ops: Op[] = []
  readonly due: Due[] = []
  private readonly body: ReceiveBody
  private readonly of: { states: States; context: Context; persons: PersonNumbers }
  private readonly segments = new Map<string, Segment>()

  constructor(body: ReceiveBody, of: { states: States; context: Context; persons: PersonNumbers }) {
    this.body = body
    this.of = of
  }

  add(recipient: ReceivedRecipient): string {
    const { context, persons } = this.of
    const { shard } = context
    const { accountId, sizeBytes, sender, session, key } = this.body
    const { serverId, streamId, mailboxHash, spelledId, plusHash, objectId } = recipient
    const messageId = context.newId()
    const receivedAtMs = msOf(messageId)
    const short = shortId(messageId)
    const segment = this.enter(serverId, receivedAtMs)
    const number = sender === null ? 0 : persons.numberOfSender(sender.hmac, monthName(receivedAtMs))
    const entry = packReceivedEntry({ streamId, sender: number, plusHash })
    const standing = freshStanding({ sizeBytes, mailboxHash, spelledId })
    const head = freshHead({ objectId, key, sender: sender?.address ?? null, session })
    const headKey = contentHeadKey(shard, serverId, messageId)
    this.ops.push(
      {
        key: receivedKey(shard, serverId, segment),
        write: 'XADD',
        args: [entryIdOf(messageId), RECEIVED_FIELD, entry],
      },
      {
        key: receivedStateKey(shard, serverId, segment),
        write: 'HSET',
        args: [short, packStanding(standing, receivedAtMs)],
      },
      { key: headKey, write: 'HSET', args: [short, packContentHead(head)] },
      { key: headKey, write: 'PEXPIREAT', args: [String(headExpiresAtMs(receivedAtMs))] },
      ...receivedPostingOps({ shard, serverId, segment }, { messageId, sender: number, plusHash }),
    )
    const place = { serverId, segment, messageId }
    const job: ParseJob = { accountId, ...place, sizeBytes, head }
    this.due.push({ lane: parseLane(accountId), item: formatParseItem(place), atMs: context.nowMs, job })
    return messageId
  }

  counters(): { owner: string; value: ReceivedCounters }[] {
    return Array.from(this.segments, ([serverId, segment]) => {
      const owner = receivedOwner(serverId)
      return { owner, value: { ...this.of.states.counter<ReceivedCounters>(owner), segment } }
    })
  }

  private enter(serverId: string, idMs: number): string {
    const { states, context } = this.of
    const before = states.counter<ReceivedCounters>(receivedOwner(serverId))
    const open = this.segments.get(serverId) ?? before?.segment ?? null
    const { segment, opened } = enterSegment(
      open,
      { idMs, test: false, recipients: 1, bytes: 0 },
      RECEIVED_SEGMENT_BOUNDS,
    )
    this.segments.set(serverId, segment)
    if (!opened) return segment.name
    const key = receivedSegmentsKey(context.shard, serverId)
    this.ops.push({ key, write: 'ZADD', args: [String(idMs), segment.name] })
    // The first message begins the sweep, which continues as long as there is a segment.
    if (open === null) this.due.push(receivedSweepDue(serverId, context.nowMs))
    return segment.name
  }
}
