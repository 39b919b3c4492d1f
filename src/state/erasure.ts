/**
 * erasure - the erasure of one person's data, with the order, its progress, and the persons being erased now.
 *
 * States: pending -> done, for good; it can be read for 30 days from then on. Neither its state nor its execution has
 * an address, because the HMAC leads to a number, and the number to all other data.
 *
 * Keys: `erasure:<id>` the entity, without HMAC and number; `erasures:<account>` zset of pending ones, executed one
 * after the other; `erasing:<account>` hash, HMAC -> the latest erasure. Counters `erasure:<id>`, until it is done, ->
 * the walk; `erasures:<account>` -> `{open}`. `erased` of a shard has the number of erasures and erased messages, and
 * the time of the last one.
 *
 * Spec erasure.states
 */

import type { Due, EntityType, Fact, Facts, Op, Ref } from '../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../cluster/keyspace.ts'
import { DAY_MS, HOUR_MS } from './calendar.ts'
import { erasedKey, erasingKey } from './keys.ts'

export interface ErasureState {
  readonly erasureId: string
  readonly accountId: string
  /** Null while it is pending, like all that follows. */
  readonly completedAtMs: number | null
  /** Only its local part, because an entity has no address. */
  readonly pseudonym: string | null
  readonly messages: number | null
  readonly receivedMessages: number | null
}

export type ErasureEvent =
  | { readonly type: 'ordered'; readonly erasure: ErasureState }
  | {
      readonly type: 'done'
      readonly completedAtMs: number
      readonly pseudonym: string
      readonly messages: number
      readonly receivedMessages: number
    }

export const erasureEntity: EntityType<ErasureState | null, ErasureEvent> = {
  kind: 'erasure',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'ordered') return event.erasure
    if (state === null) return null
    const { type: _, ...done } = event
    return { ...state, ...done }
  },
}

export function erasureRef(erasureId: string): Ref {
  return { kind: 'erasure', id: erasureId }
}

/** How long a done erasure can be read. Spec retention.erasure */
export const ERASURE_READABLE_MS = 30 * DAY_MS

/** Whether an erasure is no longer to be read. */
export function isErasurePast({ completedAtMs }: Pick<ErasureState, 'completedAtMs'>, nowMs: number): boolean {
  return completedAtMs !== null && completedAtMs + ERASURE_READABLE_MS <= nowMs
}

/**
 * The parts of a server in the order of the walk: lists come after the log, because open recipients of the log could
 * still be added to them.
 */
export const SERVER_PHASES = ['broadcasts', 'log', 'lists', 'received', 'posts'] as const
export type ServerPhase = (typeof SERVER_PHASES)[number]
/** `unborne`: before all servers, commands whose behaviour threw; `seek`: finding the next server. */
export type WalkPhase = 'unborne' | 'seek' | ServerPhase

/** The position of a walk: the server, the phase, the segment of a log, and the last visited entry. */
export interface WalkPlace {
  /** The account's servers, then the removed ones. */
  readonly list: 'servers' | 'removed'
  /** '' before the first one of the list. */
  readonly serverId: string
  /** The server's score in the list; -1 before the first one. */
  readonly serverMs: number
  readonly phase: WalkPhase
  /** Null before the first one. */
  readonly segment: string | null
  /** The first instant of the segment; -1 before the first one. */
  readonly segmentMs: number
  /** The last visited id, or the entry id to continue from; '' at the beginning. */
  readonly after: string
  /**
   * When events of the person's mail were announced at the server, as far as it was found, in their order. Absent in a
   * walk that began before this was kept: `toldAt` reads it.
   */
  readonly told?: readonly ToldSpan[]
  /** Where it is in the postings of a segment of received mail; absent before the first ones. */
  readonly posted?: PostedPlace
}

/** A segment, the bucket that may name the person, and its entry to continue from. */
export type PostedPlace = readonly [segment: string, bucket: number, from: string]

/** A span of time in which an event was announced, ms, both ends included. */
export type ToldSpan = readonly [fromMs: number, untilMs: number]

/** The end of an open span. */
export const TOLD_NO_END = Number.MAX_SAFE_INTEGER
/** If nothing is known, all published events are searched. */
const TOLD_EVER: readonly ToldSpan[] = [[0, TOLD_NO_END]]
/** Maximum number of spans; beyond it the nearest ones are merged. */
const TOLD_MAX = 200
/** Spans closer than this are merged, because reading the gap costs no more than a separate step. */
const TOLD_APART_MS = 60_000
/**
 * An id has the time of its event, or a later one: later if many are made in a millisecond, or after the clock went
 * back, because ids continue from the last one.
 */
const TOLD_AHEAD_MS = HOUR_MS
/** Of older announcements only dead deliveries are left. Spec retention.delivery */
const TOLD_QUEUED_MS = 31 * DAY_MS

/** Where an inbound stream's address leads. */
export interface ErasedMailbox {
  readonly streamId: string
  /** Keyed hash of the text after its plus sign, or null. */
  readonly plusHash: string | null
}

/** An erasure that is being carried out. */
export interface ErasureWalk {
  readonly hmac: string
  /** Its local part. */
  readonly pseudonym: string
  /** Person number that the address had; 0: none. */
  readonly number: number
  /** Whether it was the sender of messages, which only the whole log shows. */
  readonly sends: boolean
  /** The inbound stream of the account with this address, or null. */
  readonly mailbox: ErasedMailbox | null
  readonly messages: number
  readonly receivedMessages: number
  /** Received mails whose header a reader still has to check for the person. */
  readonly looks: number
  /** Null once everything was walked. */
  readonly place: WalkPlace | null
}

/** Where a walk begins. */
export const WALK_BEGIN: WalkPlace = {
  list: 'servers',
  serverId: '',
  serverMs: -1,
  phase: 'unborne',
  segment: null,
  segmentMs: -1,
  after: '',
  told: [],
}

/** The span in which an event was announced. Events are committed at the time at which they occur. */
export function toldOf(occurredAtMs: number): ToldSpan {
  return [occurredAtMs, occurredAtMs + TOLD_AHEAD_MS]
}

/** When events of the person's mail were announced at a place's server. */
export function toldAt({ told }: Pick<WalkPlace, 'told'>): readonly ToldSpan[] {
  return told ?? TOLD_EVER
}

/** A position with these spans added, at most `TOLD_MAX`. */
export function withTold(place: WalkPlace, spans: readonly ToldSpan[], nowMs: number): WalkPlace {
  if (spans.length === 0) return place
  const told = joined([...toldAt(place), ...spans], () => TOLD_APART_MS)
  if (told.length <= TOLD_MAX) return { ...place, told }
  // Merging costs the reads of the gap, except its oldest part, where only dead deliveries are left.
  const queuedMs = nowMs - TOLD_QUEUED_MS
  const between = told.slice(1).map(([fromMs], at) => {
    const [, untilMs] = told[at] as ToldSpan
    return { fromMs, costs: fromMs - Math.min(fromMs, Math.max(untilMs, queuedMs)) }
  })
  const closed = between.sort((one, other) => one.costs - other.costs).slice(0, told.length - TOLD_MAX)
  const closedMs = new Set(closed.map(({ fromMs }) => fromMs))
  return { ...place, told: joined(told, (fromMs) => (closedMs.has(fromMs) ? TOLD_NO_END : TOLD_APART_MS)) }
}

/** Spans in their order; one that begins so soon after the end of the one before becomes one with it. */
function joined(spans: readonly ToldSpan[], apartMs: (fromMs: number) => number): ToldSpan[] {
  const told: ToldSpan[] = []
  for (const [fromMs, untilMs] of spans.toSorted(([one], [other]) => one - other)) {
    const last = told.at(-1)
    if (last === undefined || fromMs - last[1] > apartMs(fromMs)) told.push([fromMs, untilMs])
    else told[told.length - 1] = [last[0], Math.max(last[1], untilMs)]
  }
  return told
}

/** Where the next phase begins, behind the last one of a server the search for the next server. */
export function nextPhase(place: WalkPlace): WalkPlace {
  const { phase } = place
  const next =
    phase === 'unborne' || phase === 'seek' ? 'seek' : (SERVER_PHASES[SERVER_PHASES.indexOf(phase) + 1] ?? 'seek')
  return { ...place, phase: next, segment: null, segmentMs: -1, after: '' }
}

/** Whether a walk waits for headers that are being read, because the next phase depends on their results. */
export function waitsForLooks({ looks, place }: Pick<ErasureWalk, 'looks' | 'place'>): boolean {
  return looks > 0 && (place === null || place.phase === 'posts')
}

/** Owner of a walk. */
export function erasureOwner(erasureId: string): string {
  return `erasure:${erasureId}`
}

/** Counters of an account's erasures. */
export interface ErasuresCounters {
  /** Those that are not done. */
  readonly open: number
}

/** Owner of an account's erasures. */
export function erasuresOwner(accountId: string): string {
  return `erasures:${accountId}`
}

/** Timer of the next step: `erase:<account>.<erasure>`. */
export const ERASE_TIMER = 'erase'

/** The next step of an erasure. */
export function eraseDue({ accountId, erasureId }: Pick<ErasureState, 'accountId' | 'erasureId'>, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${ERASE_TIMER}:${accountId}.${erasureId}`, atMs }
}

/** The erasure of a timer's item. */
export function erasureOfTimer(item: string): { readonly accountId: string; readonly erasureId: string } {
  const [accountId = '', erasureId = ''] = item.slice(ERASE_TIMER.length + 1).split('.')
  return { accountId, erasureId }
}

/** Reads the erasures of these addresses. */
export function erasingFact(shard: number, accountId: string, hmacs: readonly string[]): Fact & { read: 'fields' } {
  return { read: 'fields', key: erasingKey(shard, accountId), fields: hmacs }
}

/**
 * Whether an address is being erased, and whether this id is from before its erasure; later data is kept. `erasingFact`
 * must have been fetched.
 */
export function isErasedFrom(
  facts: Facts,
  { shard, accountId, hmac, id }: { shard: number; accountId: string; hmac: string; id: string },
): boolean {
  const erasureId = facts.field(erasingKey(shard, accountId), hmac)
  return erasureId !== null && id < erasureId
}

/** Counters of the erasures of a shard, and the time of the last one. */
export const ERASED_FIELDS = ['ordered', 'done', 'messages', 'received', 'ms'] as const
export type ErasedFigures = Readonly<Record<(typeof ERASED_FIELDS)[number], number>>

/** The read of a shard's figures. */
export function erasedFact(shard: number): Fact & { read: 'fields' } {
  return { read: 'fields', key: erasedKey(shard), fields: ERASED_FIELDS }
}

/** The write of a shard's figures after a change. `erasedFact` must have been fetched. */
export function countErasedOp(
  facts: Facts,
  shard: number,
  change: (before: ErasedFigures) => Partial<ErasedFigures>,
): Op {
  const key = erasedKey(shard)
  const of = (field: (typeof ERASED_FIELDS)[number]) => Number(facts.field(key, field) ?? 0)
  const before = {
    ordered: of('ordered'),
    done: of('done'),
    messages: of('messages'),
    received: of('received'),
    ms: of('ms'),
  }
  return {
    key,
    write: 'HSET',
    args: Object.entries(change(before)).flatMap(([field, value]) => [field, String(value)]),
  }
}
