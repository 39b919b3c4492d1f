/**
 * pack - text and HTML of a server's mail leave Redis for packs of the content store, once no attempt is left.
 *
 * States of an item: placed by the daily sweep; each claim packs some messages of one UTC day, and the item leaves its
 * lane with the last. The second look at messages that had an attempt left is an item of its own, placed by the end of
 * the first. A claim that comes back names a new pack; the one before is removed.
 *
 * Guarantees: the commit that points heads to the pack removes the bodies, and the pack was read back before. A head
 * that was erased or has left since is passed over, and so nobody holds the key of its body. Servers with streams that
 * keep content for fewer days than the service's default are passed over: their bodies leave Redis early.
 *
 * Keys: `head`, `bodies`, `content`, counters `pack:<server>`
 *
 * Spec retention.content
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Facts,
  Need,
  Op,
  OutcomeBody,
  PrepareBody,
  States,
} from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import { contentKey, segmentsKey } from '../../state/keys.ts'
import { BODY_PART, bodyPlace } from '../../state/message/content-part.ts'
import { headWithPack } from '../../state/message/head.ts'
import { LOOKS_MS, type PackCounters, packDay, packFrom, packOwner } from '../../state/message/packed.ts'
import { shortContentDays } from '../../state/message/retention.ts'
import { deleteOps, MessageRows } from '../../state/message/row.ts'
import { accountOfColdLane, type ColdItem, coldDue, readColdItem } from '../../state/message/sealed.ts'
import { isTestSegment, segmentAfterFact, segmentAtFact } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { thaw } from '../message/thaw.ts'
import { unlinkPackDue } from '../message/unlink.ts'
import { ownersIn } from '../retention/ended-content.ts'

/** The first wait after a pack that was not written. */
const SECOND_MS = 1_000

/** Between two packs of a server. */
const NEXT_MS = 1_000

/** Messages to look at: behind an entry id, up to a millisecond. */
export interface PackJob {
  readonly act: 'pack'
  readonly serverId: string
  readonly segment: string
  readonly after: string
  readonly toMs: number
  /** The pack to write, `<day>/<leaf>`. */
  readonly object: string
  /** Behind `toMs` no message of the segment is old enough. */
  readonly isLast: boolean
  /** The next segment, if it begins soon enough. */
  readonly nextMs: number | null
}

/** A body in a pack that was written. */
export interface PackedBody {
  readonly short: string
  readonly contentId: string
  readonly recipients: number
  /** Key of the body, sealed. */
  readonly key: string
  readonly from: number
  readonly length: number
  /** Keys of Redis that it has; 0: it is in a hash with others. */
  readonly chunks: number
}

/** How it went. In `next`: the entry id behind which the next claim begins. */
export type PackOutcome = { readonly act: 'pack'; readonly segment: string; readonly object: string } & (
  | { readonly result: 'away' }
  | {
      readonly result: 'packed'
      readonly bodies: readonly PackedBody[]
      readonly next: string
      readonly isEnd: boolean
    }
)

type PackItem = Extract<ColdItem, { act: 'pack' }>

/** The item that looks at the messages of a server. */
export function packDue(accountId: string, { serverId, look }: { serverId: string; look: number }, atMs: number): Due {
  return coldDue(accountId, { act: 'pack', serverId, look }, atMs)
}

/** Chooses messages. Takes the days after which the log may leave Redis; null if all of it stays there. */
export function makePreparePack(hotDays: number | null): CommandType<PrepareBody, PackJob | null> {
  return {
    name: 'prepare pack',
    entities: ({ item }) => [serverRef(parseItem(item).serverId)],
    counters: ({ item }) => [packOwner(parseItem(item).serverId)],
    facts: () => [],
    decide({ item }, states, facts, context): Decision<PackJob | null> {
      const { serverId, look } = parseItem(item)
      const { shard, nowMs } = context
      const server = states.get<ServerState | null>(serverRef(serverId))
      if (server === null || hotDays === null) return NOTHING
      const none = { ...NOTHING, due: secondLook(server, look, nowMs) }
      const owners = ownersIn(states, server)
      if ('missing' in owners) return { kind: 'need', entities: [owners.missing] }
      if (shortContentDays(owners).length > 0) return NOTHING
      const test = server.mode === 'test'
      const counters = states.counter<PackCounters>(packOwner(serverId))
      // By the minute: what is read follows from it, and the clock goes on between two rounds of reading.
      const minuteMs = nowMs - (nowMs % MINUTE_MS)
      const untilMs = minuteMs - (LOOKS_MS[look] as number)
      const place = findPlace(facts, segmentsKey(shard, serverId), packFrom(counters, { look, nowMs: minuteMs, test }))
      if (place === null) return none
      if ('kind' in place) return place
      const { segment, from, nextMs } = place
      const beginMs = Math.max(place.firstMs, msOfEntry(from))
      if (beginMs > untilMs) return none
      const endMs = beginMs - (beginMs % DAY_MS) + DAY_MS
      const object = `${packDay(endMs, test)}/${shortId(context.newId())}`
      const value: PackCounters = { at: LOOKS_MS.map(() => '0-0'), ...counters, writing: object }
      return {
        kind: 'done',
        reply: {
          act: 'pack',
          serverId,
          segment,
          after: from,
          toMs: Math.min(untilMs, endMs - 1),
          object,
          isLast: untilMs < endMs,
          nextMs: nextMs !== null && nextMs <= untilMs ? nextMs : null,
        },
        counters: [{ owner: packOwner(serverId), value }],
        due: counters === null || counters.writing === '' ? [] : [unlinkPackDue(context, counters.writing)],
      }
    },
  }
}

/** The heads name their bodies' places, and the bodies leave Redis. */
export const packOutcome: CommandType<OutcomeBody<PackOutcome>, null> = {
  name: 'pack outcome',
  frees: true,
  entities: ({ item }) => [serverRef(parseItem(item).serverId)],
  counters: ({ item }) => [packOwner(parseItem(item).serverId)],
  facts({ item, outcome }, _states, { shard }): Fact[] {
    if (outcome === null || outcome.result !== 'packed') return []
    const rows = new MessageRows(shard, { serverId: parseItem(item).serverId, segment: outcome.segment })
    const heads = outcome.bodies.length === 0 ? [] : [rows.headsFact(outcome.bodies.map(({ short }) => short))]
    return [rows.sealedFact(), ...heads]
  },
  decide({ lane, item, current, outcome }, states, facts, context): Decision<null> {
    const { serverId, look } = parseItem(item)
    const { nowMs } = context
    const again = (atMs: number): Due[] => (current ? [{ lane, item, atMs }] : [])
    if (outcome === null) return { kind: 'done', reply: null, due: again(nowMs + HOUR_MS) }
    const counters = states.counter<PackCounters>(packOwner(serverId))
    // Another claim has named another pack since, and ordered the removal of this one; or this is an outcome that comes
    // twice, whose pack is in use.
    if (counters === null || counters.writing !== outcome.object)
      return { kind: 'done', reply: null, due: again(nowMs + MINUTE_MS) }
    const gone = unlinkPackDue(context, outcome.object)
    if (outcome.result === 'away') {
      // The attempts of the item also count its packs that were written.
      const failures = (counters.failures ?? 0) + 1
      const waitMs = Math.min(HOUR_MS, SECOND_MS * 2 ** (failures - 1))
      const value: PackCounters = { ...counters, writing: '', failures }
      const due = [gone, ...again(nowMs + waitMs)]
      return { kind: 'done', reply: null, counters: [{ owner: packOwner(serverId), value }], due }
    }
    const server = states.get<ServerState | null>(serverRef(serverId))
    if (server === null) return { kind: 'done', reply: null, due: [gone], ...(current && { done: [{ lane, item }] }) }
    const packs = mayPack(states, server)
    if (typeof packs !== 'boolean') return packs
    const moved = packs ? moveBodies(outcome, serverId, facts, context) : NO_BODIES
    const at = counters.at.map((before, one) => (one === look ? outcome.next : before))
    const value: PackCounters = { at, writing: '' }
    const due = moved.count === 0 && outcome.bodies.length > 0 ? [gone] : moved.due
    const { isEnd } = outcome
    const next = isEnd ? secondLook({ accountId: accountOfColdLane(lane), serverId }, look, nowMs) : []
    return {
      kind: 'done',
      reply: null,
      ops: moved.ops,
      counters: [{ owner: packOwner(serverId), value }],
      due: [...due, ...(isEnd ? next : again(nowMs + NEXT_MS))],
      ...(isEnd && current && { done: [{ lane, item }] }),
    }
  },
}

const NOTHING = { kind: 'done', reply: null } as const
const NO_BODIES = { count: 0, ops: [], due: [] } as const

function parseItem(item: string): PackItem {
  return readColdItem(item) as PackItem
}

/** The segment of an entry id, or the first one after it; null: there is none. */
function findPlace(
  facts: Facts,
  key: string,
  from: string,
): { segment: string; firstMs: number; from: string; nextMs: number | null } | Need | null {
  const places = [segmentAtFact(key, msOfEntry(from)), segmentAfterFact(key, msOfEntry(from))]
  if (!places.every((fact) => facts.has(fact))) return { kind: 'need', facts: places }
  const [at, after] = places.map((fact) => facts.sorted(fact)[0])
  if (at !== undefined) return { segment: at[0], firstMs: at[1], from, nextMs: after?.[1] ?? null }
  return after === undefined ? null : findPlace(facts, key, `${after[1]}-0`)
}

/** The look after one that has come to its end. */
function secondLook(
  { accountId, serverId }: Pick<ServerState, 'accountId' | 'serverId'>,
  look: number,
  nowMs: number,
): Due[] {
  return look + 1 < LOOKS_MS.length ? [packDue(accountId, { serverId, look: look + 1 }, nowMs)] : []
}

/** Whether all messages of a server keep their content as long as packs do; or what must be read first. */
function mayPack(states: States, server: ServerState): boolean | Need {
  const owners = ownersIn(states, server)
  return 'missing' in owners ? { kind: 'need', entities: [owners.missing] } : shortContentDays(owners).length === 0
}

function moveBodies(
  { segment, object, bodies }: Extract<PackOutcome, { result: 'packed' }>,
  serverId: string,
  facts: Facts,
  context: Context,
): { readonly count: number; readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const { shard } = context
  const rows = new MessageRows(shard, { serverId, segment })
  const heads: string[] = []
  const sliced = new Map<string, string[]>()
  const unlinks: Op[] = []
  for (const { short, contentId, recipients, key, from, length, chunks } of bodies) {
    const head = rows.head(facts, short)
    const moved = head === null ? null : headWithPack(head, { key, packed: { object, from, length }, recipients })
    if (moved === null) continue
    heads.push(short, moved)
    if (chunks === 0) {
      const place = bodyPlace(shard, contentId, isTestSegment(segment))
      const fields = sliced.get(place.key)
      if (fields === undefined) sliced.set(place.key, [place.field])
      else fields.push(place.field)
    }
    for (let chunk = 0; chunk < chunks; chunk += 1)
      unlinks.push({ key: contentKey(shard, contentId, BODY_PART, chunk), write: 'UNLINK', args: [] })
  }
  if (heads.length === 0) return NO_BODIES
  const thawed = thaw(rows, facts, context)
  return {
    count: heads.length / 2,
    ops: [
      ...rows.changeOps({ heads, statuses: [] }),
      ...[...sliced].flatMap(([key, fields]) => deleteOps(key, fields)),
      ...unlinks,
      ...thawed.ops,
    ],
    due: thawed.due,
  }
}

function msOfEntry(entryId: string): number {
  return Number.parseInt(entryId, 10)
}
