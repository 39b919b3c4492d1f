/**
 * check-values - every stored value with a sum, compared with its sum
 *
 * Reads the store with SCAN, in small steps, while the service runs. A value that is written or removed in the meantime
 * may be left out; none is reported that is sound, because a command returns a value as one write left it.
 *
 * Spec operator.health, operator.repair
 */

import type { Redis } from 'ioredis'
import { SHARDS } from '../../../cluster/id.ts'
import { DamagedValue, withoutSum } from '../../../cluster/sum.ts'
import { checkMissing } from '../../state/message/content-part.ts'
import { checkPart, chunkCountOf } from '../../state/message/part-header.ts'
import type { Nodes } from '../nodes.ts'

/** Keys, fields or entries of one command. */
const STEP = 500
/** Values of chunks that one command asks for. */
const CHUNKS_STEP = 8
const LISTED_MAX = 100
const NAME = 'checked'
/** A part of content: its chunks after the first end with `.<n>`. The others, `head` and `r<k>`, are rows. */
const PART = /^\{s\d{3}\}:content:[^:]+:(?:body|raw|a\d+)$/
const LATER_CHUNK = /^\{s\d{3}\}:content:[^:]+:[^:.]+\.\d+$/
const BODIES = /^\{s\d{3}\}:bodies:/
/** Rows with sums. Text of a client in other rows could look like a sum. */
const SUMMED = new Set(
  (
    'head status log person suppressed idempotency received received-state received-head received-blocks ' +
    'received-postings delivery blocks counters account server stream domain webhook broadcast erasure bodies ' +
    'content sealed-persons'
  ).split(' '),
)

/** A value that is not what was written. */
export interface DamagedPlace {
  readonly key: string
  /** Of a hash, a stream or a sorted set: the field, the entry's id, or the score. */
  readonly field: string | null
}

export interface ValuesFound {
  /** Values that were compared. */
  readonly checked: number
  readonly damaged: number
  /** The first of them. */
  readonly places: readonly DamagedPlace[]
}

/** Compares the values of every shard, or of one. Rejects if a Redis does not answer. */
export async function checkValues(nodes: Nodes, shard?: number): Promise<ValuesFound> {
  const count = new Count()
  if (shard !== undefined) {
    await checkNode(nodes.nodeOf(shard), count, `{s${String(shard).padStart(3, '0')}}:*`)
    return count
  }
  const all = new Set(Array.from({ length: SHARDS }, (_, one) => nodes.nodeOf(one)))
  for (const redis of all) await checkNode(redis, count, '{s*')
  return count
}

class Count implements ValuesFound {
  checked = 0
  damaged = 0
  readonly places: DamagedPlace[] = []

  /** Runs the check of one value. */
  note(place: DamagedPlace, check: () => unknown): void {
    this.checked += 1
    try {
      check()
    } catch (error) {
      if (!(error instanceof DamagedValue)) throw error
      this.damaged += 1
      if (this.places.length < LISTED_MAX) this.places.push(place)
    }
  }
}

async function checkNode(redis: Redis, count: Count, match: string): Promise<void> {
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', STEP)
    cursor = next
    for (const key of keys.filter((one) => SUMMED.has(one.split(':')[1] ?? ''))) await checkKey(redis, count, key)
  } while (cursor !== '0')
}

async function checkKey(redis: Redis, count: Count, key: string): Promise<void> {
  switch (await redis.type(key)) {
    case 'hash':
      return checkHash(redis, count, key)
    case 'stream':
      return checkStream(redis, count, key)
    case 'zset':
      return checkSorted(redis, count, key)
    case 'string':
      return checkText(redis, count, key)
  }
}

async function checkHash(redis: Redis, count: Count, key: string): Promise<void> {
  const isContent = BODIES.test(key)
  let cursor = '0'
  do {
    const [next, flat] = await redis.hscanBuffer(key, cursor, 'COUNT', STEP)
    cursor = next.toString()
    for (let at = 0; at + 1 < flat.length; at += 2) {
      const value = flat[at + 1] as Buffer
      const place = { key, field: String(flat[at]) }
      count.note(place, () => (isContent ? checkPart([value]) : withoutSum(value.toString(), NAME)))
    }
  } while (cursor !== '0')
}

async function checkStream(redis: Redis, count: Count, key: string): Promise<void> {
  for (let from = '-'; ; ) {
    const entries = await redis.xrange(key, from, '+', 'COUNT', STEP)
    for (const [id, fields] of entries)
      for (let at = 1; at < fields.length; at += 2)
        count.note({ key, field: id }, () => withoutSum(fields[at] as string, NAME))
    const last = entries.at(-1)
    if (last === undefined || entries.length < STEP) return
    from = `(${last[0]}`
  }
}

async function checkSorted(redis: Redis, count: Count, key: string): Promise<void> {
  let cursor = '0'
  do {
    const [next, flat] = await redis.zscan(key, cursor, 'COUNT', STEP)
    cursor = next
    for (let at = 0; at + 1 < flat.length; at += 2)
      count.note({ key, field: flat[at + 1] as string }, () => withoutSum(flat[at] as string, NAME))
  } while (cursor !== '0')
}

async function checkText(redis: Redis, count: Count, key: string): Promise<void> {
  if (LATER_CHUNK.test(key)) return
  const first = await redis.getBuffer(key)
  if (first === null) return
  if (!PART.test(key)) return count.note({ key, field: null }, () => withoutSum(first.toString(), NAME))
  const chunks = [first]
  for (let n = 1; n < chunkCountOf(first); n += CHUNKS_STEP) {
    const names = Array.from({ length: Math.min(CHUNKS_STEP, chunkCountOf(first) - n) }, (_, at) => `${key}.${n + at}`)
    for (const chunk of await redis.mgetBuffer(...names)) {
      // If one can follow, it has expired in the meantime.
      if (chunk === null) return count.note({ key, field: null }, () => checkMissing(chunks))
      chunks.push(chunk)
    }
  }
  count.note({ key, field: null }, () => checkPart(chunks))
}
