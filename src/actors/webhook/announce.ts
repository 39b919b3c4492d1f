/**
 * announce - the one place that every event of the catalogue passes on its way to clients.
 *
 * Each event gets an entry in the event log of its server, and each enabled webhook with matching filters gets a
 * delivery (a reference in its queue and an item in its lane), all in the commit of the event itself. Live feeds get a
 * signal once that commit is confirmed; while a feed is open, and for ten minutes afterwards, the references are
 * recorded too.
 *
 * Guarantees: a server without webhooks and feeds costs one entry per event; a webhook's deliveries are due in the
 * order of their ids; queued and dead deliveries together are bounded (`backlog.ts`).
 *
 * A command that announces names `serverRef` and `serverOwner` of the event's server, and `eventLogOwner` where events
 * are likely.
 *
 * Keys: events, event-slices, queue, slices, heard
 *
 * Spec event.announce, event.search, webhook.filter, webhook.backlog
 */

import type {
  Context,
  Done,
  Due,
  Facts,
  HashFields,
  Need,
  Op,
  Signal,
  Staged,
  States,
} from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../../schemas/limits.ts'
import { deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { type ServerCounters, type ServerMode, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type FeedCounters, feedOwner, keptUntilMs, writeToFeed } from '../../state/webhook/event-feed.ts'
import { eventLogOwner, logEvents } from '../../state/webhook/event-log.ts'
import {
  type CapReference,
  type EventReference,
  formatItem,
  formatReference,
  type MailReference,
  postLane,
  QUEUE_FIELD,
} from '../../state/webhook/item.ts'
import { enterSlice, type Slice } from '../../state/webhook/slice.ts'
import { listenersRef, type Subscriber, type WebhookCounters, webhookOwner } from '../../state/webhook/webhook.ts'
import { type Labels, NewsFilter, wants } from './filter.ts'

export interface AnnounceTurn {
  readonly states: States
  readonly facts: Facts
  readonly context: Context
}

/** Events of recipients of one server's messages, or of its received messages. */
export interface MessageNews {
  readonly serverId: string
  readonly news: readonly MailReference[]
  /**
   * Streams of these messages, in order, if the command knows them; otherwise they are read when a webhook needs them.
   */
  readonly streamIds?: readonly string[]
  /** Their labels, under the same condition: for messages written by the same commit. */
  readonly labels?: readonly Labels[]
}

/** An event of a cap, and the servers whose webhooks get it. */
export interface CapNews {
  readonly reference: CapReference
  readonly serverIds: readonly string[]
  /** The server whose message it was. */
  readonly senderId: string
  readonly topic: string
}

type Kept = Required<Pick<Staged, 'ops' | 'counters'>>

export type Announced = Need | { readonly kind: 'told'; readonly staged: Staged }

/** Timer that ends the oldest deliveries of a backlog that is full. */
export const BACKLOG_TIMER = 'backlog'

const NOTHING: Announced = { kind: 'told', staged: {} }

/** Topic of the signals about a server's messages, and about its own cap. */
export function serverTopic(serverId: string): string {
  return `events:${serverId}`
}

/** Topic of the signals that messages of a server were accepted. */
export function acceptedTopic(serverId: string): string {
  return `accepted:${serverId}`
}

/** Notifies live feeds of the messages that a turn has accepted, without any cost if there are no feeds. */
export function acceptedSignals(
  serverId: string,
  messageIds: readonly string[],
  of: { readonly counters: ServerCounters | null; readonly nowMs: number },
): readonly Signal[] {
  if ((of.counters?.listenedUntilMs ?? 0) <= of.nowMs || messageIds.length === 0) return []
  return [{ topic: acceptedTopic(serverId), text: messageIds.join(' ') }]
}

/** Topic of the signals that a key of a server was revoked: feeds opened with it have to check it again. */
export function keysTopic(serverId: string): string {
  return `keys:${serverId}`
}

/** Topic of the signals about a cap that all servers of an account and mode share. */
export function accountTopic(accountId: string, mode: ServerMode): string {
  return `events:${accountId}:${mode}`
}

/**
 * Announces events of messages, sent or received; for received ones `streamIds` is given. Returns the staged data in
 * addition to the event itself, or the reads needed first.
 */
export function announceMessages({ serverId, news, streamIds, labels }: MessageNews, turn: AnnounceTurn): Announced {
  const { states, context } = turn
  const server = states.get<ServerState | null>(serverRef(serverId))
  const counters = states.counter<ServerCounters>(serverOwner(serverId))
  const isHeard = (counters?.listenedUntilMs ?? 0) > context.nowMs
  const isKept = keptUntilMs(counters) > context.nowMs
  if (server === null || news.length === 0) return NOTHING
  const owners = isKept ? [eventLogOwner(serverId), feedOwner(serverId)] : [eventLogOwner(serverId)]
  if (!owners.every((owner) => states.hasCounter(owner))) return { kind: 'need', counters: owners }
  const topic = serverTopic(serverId)
  const signals = isHeard ? news.map((one) => ({ topic, text: formatReference(one) })) : []
  const kept = keep(serverId, news, { turn, isKept })
  if (!server.hasWebhooks) return { kind: 'told', staged: { ...kept, signals } }
  if (!states.has(listenersRef(serverId))) return { kind: 'need', entities: [listenersRef(serverId)] }
  const listeners = listenersOf(serverId, states)
  const wanted = listeners.filter((one) => news.some(({ event }) => wants(one, event)))
  const filter = new NewsFilter({ server, news, streamIds, labels, wanted, turn })
  const need = findNeed(listeners, turn, filter.reads())
  if (need !== null) return need
  const queue = new DeliveryQueue(turn, signals)
  for (const [place, one] of news.entries())
    for (const listener of wanted) if (filter.passes(listener, place, one)) queue.add(listener.webhookId, one)
  return { kind: 'told', staged: withKept(queue.staged(), kept) }
}

/** Writes events into the log of their server, and records them for current and recent feeds. */
function keep(
  serverId: string,
  news: readonly EventReference[],
  { turn: { states, context }, isKept }: { readonly turn: AnnounceTurn; readonly isKept: boolean },
): Kept {
  const place = { shard: context.shard, serverId }
  const events = news.map((reference) => ({ id: context.newId(), reference }))
  const owner = eventLogOwner(serverId)
  const logged = logEvents(place, states.counter<Slice>(owner), events)
  const log = { owner, value: logged.slice }
  if (!isKept) return { ops: logged.ops, counters: [log] }
  const listened = feedOwner(serverId)
  const { ops, counters } = writeToFeed(place, states.counter<FeedCounters>(listened), events)
  return { ops: [...logged.ops, ...ops], counters: [log, { owner: listened, value: counters }] }
}

function withKept({ ops = [], counters = [], ...staged }: Staged, kept: Kept): Staged {
  return { ...staged, ops: [...ops, ...kept.ops], counters: [...counters, ...kept.counters] }
}

/** Announces events of caps, which no stream's filter holds back. */
export function announceCaps(news: readonly CapNews[], turn: AnnounceTurn): Announced {
  const refs = news.flatMap(({ serverIds }) => serverIds.map(listenersRef))
  const logs = new Map<string, CapReference[]>()
  for (const { reference, serverIds, senderId } of news)
    for (const serverId of new Set([senderId, ...serverIds]))
      logs.set(serverId, [...(logs.get(serverId) ?? []), reference])
  const owners = Array.from(logs.keys(), eventLogOwner)
  if (refs.some((ref) => !turn.states.has(ref)) || owners.some((owner) => !turn.states.hasCounter(owner)))
    return { kind: 'need', entities: refs, counters: owners }
  const listeners = news.flatMap(({ serverIds }) => serverIds.flatMap((serverId) => listenersOf(serverId, turn.states)))
  const need = findNeed(listeners, turn, [])
  if (need !== null) return need
  const heard = news.map(({ reference, serverIds }) => ({
    reference,
    wanted: serverIds
      .flatMap((serverId) => listenersOf(serverId, turn.states))
      .filter((listener) => wants(listener, reference.event)),
  }))
  const signals = news.map(({ reference, topic }) => ({ topic, text: formatReference(reference) }))
  const queue = new DeliveryQueue(turn, signals)
  for (const { reference, wanted } of heard) for (const { webhookId } of wanted) queue.add(webhookId, reference)
  const kept = Array.from(logs, ([serverId, references]) => keep(serverId, references, { turn, isKept: false }))
  return { kind: 'told', staged: kept.reduce(withKept, queue.staged()) }
}

/** A decision with the staged data of an announcement. */
export function announced<Reply>(done: Done<Reply>, { ops, counters, due, absent, signals }: Staged): Done<Reply> {
  if (ops === undefined && signals === undefined) return done
  return {
    ...done,
    ops: [...(done.ops ?? []), ...(ops ?? [])],
    counters: [...(done.counters ?? []), ...(counters ?? [])],
    due: [...(done.due ?? []), ...(due ?? [])],
    absent: [...(done.absent ?? []), ...(absent ?? [])],
    signals: [...(done.signals ?? []), ...(signals ?? [])],
  }
}

/** Puts deliveries into the queues of webhooks whose counters the turn has. */
export class DeliveryQueue {
  private readonly turn: AnnounceTurn
  private readonly ops: Op[] = []
  private readonly due: Due[] = []
  private readonly absent: HashFields[] = []
  private readonly signals: readonly Signal[]
  private readonly counters = new Map<string, WebhookCounters>()

  constructor(turn: AnnounceTurn, signals: readonly Signal[] = []) {
    this.turn = turn
    this.signals = signals
  }

  /** A new delivery of a webhook. Returns its id and its slice. */
  add(webhookId: string, reference: EventReference): { readonly deliveryId: string; readonly slice: string } {
    const { context, states } = this.turn
    const { shard } = context
    const deliveryId = context.newId()
    const createdAtMs = msOf(deliveryId)
    const before = this.counters.get(webhookId) ?? states.counter<WebhookCounters>(webhookOwner(webhookId))
    const { slice, opened } = enterSlice(before?.slice ?? null, createdAtMs)
    const pending = (before?.pending ?? 0) + 1
    this.counters.set(webhookId, { ...before, pending, slice })
    const { name } = slice
    if (opened) this.ops.push({ key: slicesKey(shard, webhookId), write: 'ZADD', args: [String(createdAtMs), name] })
    const item = formatItem({ deliveryId, slice: name, reference })
    const key = queueKey(shard, webhookId, name)
    this.ops.push({ key, write: 'XADD', args: [entryIdOf(deliveryId), QUEUE_FIELD, item] })
    // By the id's time, not the clock's, because ids rise with any clock, and so the order of attempts does too.
    this.due.push({ lane: postLane(webhookId), item, atMs: createdAtMs })
    if (pending > WEBHOOK_BACKLOG_MAX) this.due.push(backlogDue(webhookId, context.nowMs))
    // Neither claimed nor attempted, so its next claim need not read either row.
    this.absent.push({ key: claimsKey(shard), fields: [item] })
    this.absent.push({ key: deliveryKey(shard, webhookId, name), fields: [shortId(deliveryId)] })
    return { deliveryId, slice: name }
  }

  staged(): Staged {
    const { ops, due, absent, signals } = this
    const counters = Array.from(this.counters, ([id, value]) => ({ owner: webhookOwner(id), value }))
    return { ops, due, absent, signals, counters }
  }
}

function backlogDue(webhookId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: `${BACKLOG_TIMER}:${webhookId}`, atMs: nowMs }
}

function listenersOf(serverId: string, states: States): readonly Subscriber[] {
  return states.get<readonly Subscriber[] | null>(listenersRef(serverId)) ?? []
}

/** The counters of all enabled webhooks, so that another announcement of the same turn need not ask again. */
function findNeed(
  listeners: readonly Subscriber[],
  { states, facts }: AnnounceTurn,
  wished: Need['facts'] = [],
): Need | null {
  const owners = listeners.filter(({ enabled }) => enabled).map(({ webhookId }) => webhookOwner(webhookId))
  const counters = owners.filter((owner) => !states.hasCounter(owner))
  const missing = wished.filter((fact) => !facts.has(fact))
  return counters.length > 0 || missing.length > 0 ? { kind: 'need', counters, facts: missing } : null
}
