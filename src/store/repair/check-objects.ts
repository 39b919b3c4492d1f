/**
 * check-objects - every sealed segment and every pack of bodies, opened whole: `sendwright doctor --deep`
 *
 * Rows are read with SCAN while the service runs. A segment that does not open is read again by its row, because a
 * rewrite may have replaced the object in the meantime. Objects are listed before the rows, and orders of removal are
 * read after them, so that no object of a running act is taken for one that no row names. Rows of segments are read
 * once more at the end: of a segment that was sealed during the walk, the heads have left Redis before they were read.
 * Objects of a shard that moved to another Redis during the walk are not taken for unnamed ones either.
 *
 * Keys: `sealed:<server>`, `sealed-persons recalled head log:<server>:<segment>`, `segments:<server>`, `due:unlink`
 *
 * Spec operator.health
 */

import type { Redis } from 'ioredis'
import { idOfShort, msOf, SHARDS } from '../../../cluster/id.ts'
import { laneKey, metaKey } from '../../../cluster/keyspace.ts'
import { MOVE_PREFIX } from '../../../cluster/store.ts'
import { DamagedValue } from '../../../cluster/sum.ts'
import { UNLINK_LANE } from '../../actors/message/unlink.ts'
import { type ObjectDamage, openSegmentWhole } from '../../content/sealed/whole.ts'
import { DAY_MS, HOUR_MS } from '../../state/calendar.ts'
import { sealedKey, sealedPersonsKey, segmentsKey } from '../../state/keys.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { coldName, isWrittenOff, namedAtMs, type SealedRow, unpackSealed } from '../../state/message/sealed.ts'
import { shardPrefix } from '../../state/object-name.ts'
import { isTestSegment } from '../../state/segment.ts'
import type { OpenObjects } from './open-objects.ts'
import { PackCheck } from './pack-check.ts'

/** Keys or fields of one command. */
const STEP = 500
/** A segment is frozen for seconds; a claim of a process that died returns after ten minutes. */
const FROZEN_MS = HOUR_MS
/** A younger object may be named by the next commit. */
const UNNAMED_MS = HOUR_MS
/** A pack is named a moment after it is written, or removed by the next claim. */
const UNNAMED_PACK_MS = DAY_MS
const TRIES = 3
/** Large content of one message, which no row names: its name follows from the message. */
const CONTENT = /\.(?:body|files)$/

export interface SegmentPlace {
  readonly shard: number
  readonly serverId: string
  readonly segment: string
}

/** What is wrong with the object of a row, or with a row. */
export type ObjectFault =
  /** `row`: as it was read. */
  | (SegmentPlace & {
      readonly kind: 'segment'
      readonly object: string
      readonly damage: ObjectDamage
      readonly messages: number
      readonly row: string
    })
  | (SegmentPlace & { readonly kind: 'written-off'; readonly messages: number })
  | (SegmentPlace & { readonly kind: 'frozen'; readonly since: string; readonly row: string })
  | (SegmentPlace & { readonly kind: 'filter' })
  /** Later changes of messages whose segment has no row; `isListed`: the log should still have it. */
  | (SegmentPlace & { readonly kind: 'recalled'; readonly isListed: boolean })
  | { readonly kind: 'pack'; readonly object: string; readonly damage: ObjectDamage; readonly messages: number }
  /** An object that no row names. */
  | { readonly kind: 'unnamed'; readonly object: string }

export interface ObjectsFound {
  readonly segments: number
  readonly messages: number
  readonly packs: number
  readonly bodies: number
  readonly faults: readonly ObjectFault[]
}

/** Whether a fault means that data is lost or not readable now. */
export function isLoss({ kind }: ObjectFault): boolean {
  return kind === 'segment' || kind === 'pack' || kind === 'written-off' || kind === 'recalled'
}

/** Opens all of them. Rejects if Redis does not answer. */
export async function checkObjects(open: OpenObjects): Promise<ObjectsFound> {
  const listed = await listObjects(open)
  const walk = new ObjectWalk(open)
  const places = Array.from({ length: SHARDS }, (_, shard) => open.nodes.nodeOf(shard))
  const nodes = new Set(places)
  for (const redis of nodes) await walk.node(redis)
  for (const redis of nodes) await walk.sealedSince(redis)
  await walk.end()
  const ordered = await orderedRemovals(open)
  const moved = await movedShards(open, places)
  const isUnnamed = (name: string): boolean =>
    !walk.named.has(name) && !ordered.has(name) && !moved.some((shard) => name.startsWith(shardPrefix(shard)))
  // Heads that cannot be read may name any pack.
  const names = walk.hasUnreadHeads ? listed.segments : [...listed.segments, ...listed.packs]
  const unnamed = names.filter(isUnnamed).map((object): ObjectFault => ({ kind: 'unnamed', object }))
  return { ...walk.found(), faults: [...walk.faults, ...unnamed] }
}

/** One pass over the rows. */
class ObjectWalk {
  readonly faults: ObjectFault[] = []
  /** Names in rows. */
  readonly named = new Set<string>()
  /** Whether a segment or a head was not read, so that the names of its packs are unknown. */
  hasUnreadHeads = false
  readonly #open: OpenObjects
  readonly #packs: PackCheck
  /** Sealed segments whose rows were read. */
  readonly #read = new Set<string>()
  #segments = 0
  #messages = 0

  constructor(open: OpenObjects) {
    this.#open = open
    this.#packs = new PackCheck(open)
  }

  async node(redis: Redis): Promise<void> {
    for await (const { key, family, ...place } of keysOf(redis, '{s*')) {
      if (family === 'sealed') await this.#sealedRows(redis, place)
      else if (family === 'recalled') await this.#recalled(redis, place)
      else if (family === 'head') await this.#heads(redis, key, place)
    }
  }

  /** The segments of a node that were sealed since their rows were read. */
  async sealedSince(redis: Redis): Promise<void> {
    for await (const { shard, serverId } of keysOf(redis, '{s*:sealed:*'))
      for (const [segment, text] of Object.entries(await redis.hgetall(sealedKey(shard, serverId)))) {
        const place = { shard, serverId, segment }
        const isNew = unpackSealed(text)?.generation !== 0 && !this.#read.has(nameOf(place))
        if (isNew) await this.#sealedRow(redis, place, text)
      }
  }

  /** The packs that are left. */
  async end(): Promise<void> {
    await this.#packs.flush()
    for (const [object, { damage, messages }] of this.#packs.damaged)
      this.faults.push({ kind: 'pack', object, damage, messages })
    for (const name of this.#packs.names) this.named.add(name)
  }

  found(): Omit<ObjectsFound, 'faults'> {
    const { names, bodies } = this.#packs
    return { segments: this.#segments, messages: this.#messages, packs: names.size, bodies }
  }

  async #sealedRows(redis: Redis, { shard, serverId }: SegmentPlace): Promise<void> {
    for (const [segment, text] of Object.entries(await redis.hgetall(sealedKey(shard, serverId))))
      await this.#sealedRow(redis, { shard, serverId, segment }, text)
  }

  async #sealedRow(redis: Redis, place: SegmentPlace, first: string): Promise<void> {
    this.#segments += 1
    for (let [tries, text] = [1, first]; ; tries += 1) {
      const row = unpackSealed(text) as SealedRow
      const leaves = [row.leaf, row.next].filter((leaf) => leaf !== '')
      for (const leaf of leaves) this.named.add(coldName(place.shard, { day: row.day, leaf }))
      if (row.generation === 0) return this.#frozen(place, text)
      this.#read.add(nameOf(place))
      if (isWrittenOff(row)) {
        this.hasUnreadHeads = true
        this.faults.push({ ...place, kind: 'written-off', messages: row.messages })
        return
      }
      const damage = await this.#openSegment(place, row)
      const { shard, serverId, segment } = place
      if (damage === null) return this.#filter(redis, place, row)
      const again = await redis.hget(sealedKey(shard, serverId), segment)
      // Its age has ended, or a rewrite was quicker.
      if (again === null) return
      if (again === text || tries === TRIES) {
        this.hasUnreadHeads = true
        const object = coldName(shard, row)
        this.faults.push({ ...place, kind: 'segment', object, damage, messages: row.messages, row: text })
        return
      }
      text = again
    }
  }

  /** The filter of a segment that can be read. */
  async #filter(redis: Redis, place: SegmentPlace, { messages, filterBlocks }: SealedRow): Promise<void> {
    const { shard, serverId, segment } = place
    this.#messages += messages
    if (filterBlocks === 0 || (await redis.exists(sealedPersonsKey(shard, serverId, segment))) === 1) return
    this.faults.push({ ...place, kind: 'filter' })
  }

  #frozen(place: SegmentPlace, text: string): void {
    const sinceMs = namedAtMs(unpackSealed(text) as SealedRow)
    if (this.#open.nowMs - sinceMs < FROZEN_MS) return
    this.faults.push({ ...place, kind: 'frozen', since: new Date(sinceMs).toISOString(), row: text })
  }

  /** Opens every message of a segment. Returns its damage. */
  #openSegment({ shard, segment: name }: SegmentPlace, row: SealedRow): Promise<ObjectDamage | null> {
    return openSegmentWhole(this.#open.segments.open(shard, row), row, (entryId, head) =>
      this.#body(head, { shard, name, ms: Number.parseInt(entryId, 10) }),
    )
  }

  /** Heads in Redis: of segments that are not sealed, and of recalled messages. */
  async #heads(redis: Redis, key: string, { shard, segment }: SegmentPlace): Promise<void> {
    let cursor = '0'
    do {
      const [next, flat] = await redis.hscan(key, cursor, 'COUNT', STEP)
      cursor = next
      for (let at = 0; at + 1 < flat.length; at += 2)
        await this.#body(flat[at + 1] as string, { shard, name: segment, ms: msOf(idOfShort(flat[at] as string)) })
    } while (cursor !== '0')
  }

  async #body(text: string, { shard, name, ms }: { shard: number; name: string; ms: number }): Promise<void> {
    const head = readHead(text)
    this.hasUnreadHeads ||= head === null
    if (head?.stored?.packed === undefined || isErasedHead(head)) return
    await this.#packs.add(shard, { key: head.stored.key, packed: head.stored.packed, ms, test: isTestSegment(name) })
  }

  async #recalled(redis: Redis, place: SegmentPlace): Promise<void> {
    const { shard, serverId, segment } = place
    if ((await redis.hexists(sealedKey(shard, serverId), segment)) === 1) return
    const isListed = (await redis.zscore(segmentsKey(shard, serverId), segment)) !== null
    this.faults.push({ ...place, kind: 'recalled', isListed })
  }
}

/** The keys of a pattern, each with its family and its place. */
async function* keysOf(redis: Redis, match: string): AsyncGenerator<SegmentPlace & { key: string; family: string }> {
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', STEP)
    cursor = next
    for (const key of keys) {
      const [tag = '', family = '', serverId = '', segment = ''] = key.split(':')
      yield { key, family, shard: Number(tag.slice(2, -1)), serverId, segment }
    }
  } while (cursor !== '0')
}

function nameOf({ shard, serverId, segment }: SegmentPlace): string {
  return `${shard}:${serverId}:${segment}`
}

/** Heads that are damaged themselves are reported among the values. */
function readHead(text: string): ReturnType<typeof unpackHead> | null {
  try {
    return unpackHead(text, 0)
  } catch (error) {
    if (error instanceof DamagedValue) return null
    throw error
  }
}

/** Segments and packs in the content store that are old enough to be named. */
async function listObjects({ contents, nowMs }: OpenObjects): Promise<{ segments: string[]; packs: string[] }> {
  const [segments, packs]: [string[], string[]] = [[], []]
  const list = async (prefix: string, into: string[], beforeMs: number): Promise<void> => {
    for (const day of await contents.home.days(prefix))
      for await (const { name, writtenAtMs } of contents.home.list(`${prefix}/${day}`))
        if (!CONTENT.test(name) && writtenAtMs < beforeMs) into.push(name)
  }
  for (let shard = 0; shard < SHARDS; shard += 1) {
    await list(`${shardPrefix(shard)}cold`, segments, nowMs - UNNAMED_MS)
    await list(`${shardPrefix(shard)}out`, packs, nowMs - UNNAMED_PACK_MS)
  }
  return { segments, packs }
}

/** Shards that another Redis holds since the walk began, or is about to: not all of their rows were read. */
async function movedShards({ nodes }: OpenObjects, places: readonly Redis[]): Promise<readonly number[]> {
  const moved: number[] = []
  for (const [shard, redis] of places.entries()) {
    const now = nodes.nodeOf(shard)
    const owner = await now.hget(metaKey(shard), 'owner')
    if (now !== redis || owner?.startsWith(MOVE_PREFIX)) moved.push(shard)
  }
  return moved
}

/** Objects whose removal is ordered. */
async function orderedRemovals({ nodes }: OpenObjects): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const key = laneKey(shard, UNLINK_LANE)
    for (let from = 0; ; from += STEP) {
      const items = await nodes.nodeOf(shard).zrange(key, from, from + STEP - 1)
      for (const item of items) names.add(shardPrefix(shard) + item)
      if (items.length < STEP) break
    }
  }
  return names
}
