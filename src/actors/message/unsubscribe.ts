/**
 * unsubscribe - a recipient leaves a broadcast stream: the click, its undoing, and its effect a minute later
 *
 * States of a person on a stream: on no list for it, clicked (a timer waits), unsubscribed (listed with that reason or
 * a worse one). The list decides, not the message: a recipient taken off it by support can leave again by the same
 * link.
 *
 * Guarantees: a second click changes nothing; suppression, status and event are in one commit, so each happens exactly
 * once; a click on mail that has left the log puts the person on the list without status and event, until 60 days
 * after the last attempt.
 *
 * Keys: status, suppressed, suppressions, person, timers
 *
 * Spec unsubscribe.minute, unsubscribe.once, suppression.worse
 */

import type { CommandType, Decision, Due, Fact, Facts, Need, States, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { hasLinks } from '../../state/age.ts'
import { type AttemptItem, parseAttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldDue } from '../../state/message/sealed.ts'
import { packStatus, type StatusEvent, unpackStatus } from '../../state/message/status.ts'
import { personFacts, personRowIn } from '../../state/person/person.ts'
import { isLeftSegment, STATUS_BYTES } from '../../state/segment.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { isWorse, suppressedFacts, suppressionIn } from '../../state/suppression.ts'
import { eventLogOwner } from '../../state/webhook/event-log.ts'
import { isPastLog } from '../authorization/log-age.ts'
import {
  type Clicker,
  type ClickSource,
  clickFacts,
  parseClick,
  unsubscribeDue,
  waitingClicks,
} from '../suppression/click.ts'
import { type SuppressTurn, suppressLeaver, suppressRecipient } from '../suppression/suppress.ts'
import { announced, announceMessages } from '../webhook/announce.ts'
import { announceOutcome, bothNeeds } from './delivery-outcome.ts'
import { figuresAfter, figuresOwners } from './figures.ts'
import { countersAfterAttempt } from './segment-growth.ts'
import { mayBeSealed, thaw } from './thaw.ts'

/** When a click counts whose message was still to be recalled. */
const RECALL_MS = 10_000

export interface ClickBody {
  /** The recipient, by the name of its item on a broadcast stream. */
  readonly item: string
  /** HMAC of its address within the account. */
  readonly hmac: string
}

export interface UnsubscribeBody extends ClickBody {
  readonly source: ClickSource
}

/** `clicked`: it counts in a minute; `listed`: the person is already on the list; `gone`: the mail is past its age. */
export type UnsubscribeReply = { readonly kind: 'clicked' | 'listed' | 'gone' }

/** `undone`: the click no longer waits; `late`: it has counted; `gone`: the mail is past its age. */
export type UndoReply = { readonly kind: 'undone' | 'late' | 'gone' }

export const unsubscribe: CommandType<UnsubscribeBody, UnsubscribeReply> = {
  name: 'unsubscribe',
  frees: true,
  entities: (body) => [serverRef(clickerOf(body).item.serverId)],
  counters: (body) => [serverOwner(clickerOf(body).item.serverId)],
  facts(body, states, { shard }) {
    const clicker = clickerOf(body)
    return [...clickReads(shard, clicker), ...sealedReads(shard, clicker.item, states)]
  },
  decide(body, states, facts, context): Decision<UnsubscribeReply> {
    const { shard, nowMs } = context
    const clicker = clickerOf(body)
    const place = findPlace(clicker.item, { states, facts, context })
    if (typeof place !== 'string') return place
    if (place === 'gone') return { kind: 'done', reply: { kind: 'gone' } }
    if (isListed(facts, shard, clicker)) return { kind: 'done', reply: { kind: 'listed' } }
    if (place === 'left') {
      const known = knowsPerson(clicker, { states, facts, context })
      if (known !== true) return known || { kind: 'done', reply: { kind: 'gone' } }
    }
    if (waitingClicks(facts, shard, clicker).length > 0) return { kind: 'done', reply: { kind: 'clicked' } }
    return {
      kind: 'done',
      reply: { kind: 'clicked' },
      due: [
        unsubscribeDue({ ...clicker, source: body.source }, nowMs),
        ...recallDue(clicker.item, { shard, nowMs, states, facts }),
      ],
    }
  },
}

export const undoUnsubscribe: CommandType<ClickBody, UndoReply> = {
  name: 'undo-unsubscribe',
  frees: true,
  entities: (body) => [serverRef(clickerOf(body).item.serverId)],
  counters: () => [],
  facts: (body, _states, { shard }) => clickReads(shard, clickerOf(body)),
  decide(body, states, facts, context): Decision<UndoReply> {
    const { shard } = context
    const clicker = clickerOf(body)
    const place = findPlace(clicker.item, { states, facts, context })
    if (typeof place !== 'string') return place
    if (place === 'gone') return { kind: 'done', reply: { kind: 'gone' } }
    if (isListed(facts, shard, clicker)) return { kind: 'done', reply: { kind: 'late' } }
    const done = waitingClicks(facts, shard, clicker).map((item) => ({ lane: TIMERS_LANE, item }))
    return { kind: 'done', reply: { kind: 'undone' }, done }
  },
}

/** The effect of a click when its minute is over. */
export const settleClick: CommandType<TimerBody, null> = {
  name: 'settle-click',
  frees: true,
  entities: (body) => [serverRef(parseClick(body.item).item.serverId)],
  counters(body) {
    const { serverId } = parseClick(body.item).item
    return [serverOwner(serverId), ...figuresOwners(serverId), eventLogOwner(serverId)]
  },
  facts(body, states, { shard }) {
    const click = parseClick(body.item)
    const rows = new MessageRows(shard, click.item)
    return [rows.statusFact(click.item), ...sealedReads(shard, click.item, states), ...listFacts(shard, click)]
  },
  decide(body, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const { source, hmac, item } = parseClick(body.item)
    const place = findPlace(item, { states, facts, context })
    if (typeof place !== 'string') return place
    if (place === 'gone' || isListed(facts, shard, { hmac, item })) return NOTHING
    if (place === 'left') return settleLeft({ hmac, item }, { states, facts, context })
    const counters = states.counter<ServerCounters>(serverOwner(item.serverId))
    if (counters === null) return NOTHING
    const rows = new MessageRows(shard, item)
    const packed = rows.status(facts, item)
    if (packed === null && rows.isSealed(facts)) {
      const again = { lane: TIMERS_LANE, item: body.item, atMs: nowMs + RECALL_MS }
      return { ...NOTHING, due: [...recallDue(item, { shard, nowMs, states, facts }), again] }
    }
    const state = unpackStatus(packed, msOf(item.messageId))
    const event: StatusEvent = { event: 'unsubscribed', occurredAtMs: nowMs, source }
    const turn = { states, facts, context }
    const listed = suppressRecipient(turn, { item, hmac, reason: 'unsubscribe', code: null, response: null })
    const announcement = announceMessages(announceOutcome(item, [event], state.events.length), turn)
    const figures = figuresAfter(item, { told: [event], before: state.events }, turn)
    if ('kind' in listed || 'kind' in figures || announcement.kind === 'need')
      return bothNeeds(listed, figures, announcement)
    // A message that has left the log suppresses no one, and no event is sent.
    if (listed.ops.length === 0) return NOTHING
    const thawed = thaw(rows, facts, context)
    const after = packStatus({ ...state, events: [...state.events, event] }, msOf(item.messageId))
    const grown = Math.max(after.length, STATUS_BYTES) - Math.max(packed?.length ?? 0, STATUS_BYTES)
    return announced(
      {
        ...NOTHING,
        ops: [rows.statusOp(item, after), ...listed.ops, ...figures.ops, ...thawed.ops],
        due: thawed.due,
        counters: [...countersAfterAttempt(counters, item, grown), ...listed.counters, ...figures.counters],
        events: listed.events,
      },
      announcement.staged,
    )
  },
}

const NOTHING = { kind: 'done', reply: null } as const

/**
 * The place of a click's message: in the log; no longer in it, though its links still work; or gone with its links.
 */
function findPlace(item: AttemptItem, turn: SuppressTurn): 'log' | 'left' | 'gone' | Need {
  const isPast = isLeftSegment(item.segment) || isPastLog(item, turn)
  if (typeof isPast !== 'boolean') return isPast
  if (!isPast) return 'log'
  return hasLinks(msOf(item.messageId), turn.context.nowMs) ? 'left' : 'gone'
}

/** Whether the person of a click has a row, without which it cannot be listed; or what must be read first. */
function knowsPerson({ item, hmac }: Clicker, { states, facts, context }: SuppressTurn): boolean | Need {
  const server = states.get<ServerState | null>(serverRef(item.serverId))
  if (server === null) return false
  const account = { shard: context.shard, accountId: server.accountId }
  const reads = personFacts(account, [hmac])
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  return personRowIn(facts, { ...account, hmac }) !== null
}

/** A click on a mail that has left the log, which only changes the list. */
function settleLeft({ item, hmac }: Clicker, turn: SuppressTurn): Decision<null> {
  const { serverId, broadcastStreamId } = item
  const listed = suppressLeaver(turn, { serverId, streamId: broadcastStreamId as string, hmac })
  return 'kind' in listed ? listed : { ...NOTHING, ops: listed.ops, events: listed.events }
}

/** The reads that show whether a message must be recalled before its rows are written. */
function sealedReads(shard: number, item: AttemptItem, states: States): Fact[] {
  if (!mayBeSealed(states.counter<ServerCounters>(serverOwner(item.serverId)), item)) return []
  const rows = new MessageRows(shard, item)
  return [rows.sealedFact(), rows.recalledFact([item.short])]
}

/** Has a message of a sealed segment brought back, unless it was. */
function recallDue(
  { serverId, segment, messageId, short }: AttemptItem,
  { shard, nowMs, states, facts }: { shard: number; nowMs: number; states: States; facts: Facts },
): Due[] {
  const rows = new MessageRows(shard, { serverId, segment })
  const server = states.get<ServerState | null>(serverRef(serverId))
  if (server === null || !rows.isSealed(facts) || rows.isRecalled(facts, short)) return []
  return [coldDue(server.accountId, { act: 'recall', serverId, segment, messageId }, nowMs)]
}

function clickerOf({ item, hmac }: ClickBody): Clicker {
  return { item: parseAttemptItem(item), hmac }
}

function clickReads(shard: number, clicker: Clicker) {
  return [...clickFacts(shard, clicker), ...listFacts(shard, clicker)]
}

function listFacts(shard: number, { hmac, item }: Clicker) {
  return suppressedFacts(shard, item.broadcastStreamId as string, [hmac])
}

/** Whether the person has left the stream, or complained, which is worse. */
function isListed(facts: Facts, shard: number, { hmac, item }: Clicker): boolean {
  const entry = suppressionIn(facts, shard, { streamId: item.broadcastStreamId as string, hmac })
  return entry !== null && !isWorse('unsubscribe', entry.reason)
}
