/**
 * sealed-scan - finds the values in the store that an earlier generation of the ring has sealed, some keys at a time
 *
 * Every key of every Redis is visited, so that rows of removed servers are found too. A cursor means something to the
 * Redis that gave it alone, as long as it runs and holds the same shards (`readRun`).
 *
 * Spec secret.rotate
 */

import type { Redis } from 'ioredis'
import { SHARDS } from '../../cluster/id.ts'
import { RingNotReady } from '../state/ring/ring.ts'
import {
  isFormerSegment,
  type Resealed,
  type Resealing,
  resealSecret,
  SEALED_HASHES,
  type SealedHash,
  webhookSecretOwner,
} from '../state/ring/sealed-values.ts'
import type { Nodes } from './nodes.ts'

/** Keys of one page, and fields of one page of a hash. */
const KEYS_A_PAGE = 200
const FIELDS_A_PAGE = 100
/** Entries of an entity that are read. */
const ENTRIES_MAX = 100
const KEY = /^\{s(\d{3})\}:(head|received-head|dkim|user|egress|sealed|webhook):(.+)$/
const SEALED = /"sealed(?:User)?":"([A-Za-z0-9+/=]+)"/g
const SERVER = /"serverId":"([\w-]+)"/

/** Values of an earlier generation in one key. */
export type FoundValues =
  | {
      readonly kind: 'fields'
      readonly shard: number
      readonly key: string
      /** Of heads. */
      readonly of: { readonly serverId: string; readonly segment: string } | null
      readonly fields: readonly (readonly [field: string, before: string, after: string])[]
    }
  | { readonly kind: 'segment'; readonly shard: number; readonly serverId: string; readonly segment: string }
  | {
      readonly kind: 'webhook'
      readonly shard: number
      readonly webhookId: string
      /** Sealed values, and the same sealed again. */
      readonly secrets: Readonly<Record<string, string>>
    }

/** A page of keys. */
export interface ScannedPage {
  /** The cursor after the page; `0` at the end of the Redis. */
  readonly cursor: string
  readonly visited: number
  /** Each is read when it is asked for. */
  readonly values: AsyncIterable<FoundValues | 'unreadable'>
}

/** Every Redis once, in a fixed order. */
export function eachRedis(nodes: Nodes): readonly Redis[] {
  return [...new Set(Array.from({ length: SHARDS }, (_, shard) => nodes.nodeOf(shard)))]
}

/** The state that a cursor depends on: the running Redis servers, and the shards on each. */
export async function readRun(nodes: Nodes): Promise<string> {
  const all = eachRedis(nodes)
  const ids = await Promise.all(all.map(async (redis) => /^run_id:(\w+)/m.exec(await redis.info('server'))?.[1] ?? ''))
  const holders = Array.from({ length: SHARDS }, (_, shard) => all.indexOf(nodes.nodeOf(shard)))
  return all.length === 1 ? (ids[0] as string) : `${ids.join()} ${holders.join()}`
}

/** Keys of all Redis. */
export async function countKeys(nodes: Nodes): Promise<number> {
  const counts = await Promise.all(eachRedis(nodes).map((redis) => redis.dbsize()))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** The next page of a Redis. Rejects if it does not answer. */
export async function scanSealed(redis: Redis, cursor: string, deps: Resealing): Promise<ScannedPage> {
  const [next, keys] = await redis.scan(cursor, 'COUNT', KEYS_A_PAGE)
  return { cursor: next, visited: keys.length, values: valuesOf(redis, keys, deps) }
}

async function* valuesOf(redis: Redis, keys: readonly string[], deps: Resealing): ScannedPage['values'] {
  const current = deps.ring.sealing().generation
  for (const key of keys) {
    const [, digits = '', kind = '', id = ''] = KEY.exec(key) ?? []
    const shard = Number(digits)
    if (kind === 'webhook') yield* ofWebhook(redis, { shard, key, webhookId: id }, deps)
    else if (kind === 'sealed') yield* ofSegments(redis, { shard, key, serverId: id }, current)
    else if (kind !== '') yield* ofHash(redis, { shard, key, kind: kind as SealedHash, id }, deps)
  }
}

interface HashPlace {
  readonly shard: number
  readonly key: string
  readonly kind: SealedHash
  readonly id: string
}

async function* ofHash(redis: Redis, { shard, key, kind, id }: HashPlace, deps: Resealing): ScannedPage['values'] {
  const at = id.indexOf(':')
  const of = kind === 'head' ? { serverId: id.slice(0, at), segment: id.slice(at + 1) } : null
  for await (const rows of pagesOf(redis, key)) {
    const fields: [string, string, string][] = []
    for (const [field, text] of rows) {
      const resealed = unlessBroken(() => SEALED_HASHES[kind](deps, { id, field, text }))
      if (resealed === 'unreadable') yield resealed
      else if (resealed !== 'current') fields.push([field, text, resealed.after])
    }
    if (fields.length > 0) yield { kind: 'fields', shard, key, of, fields }
  }
}

async function* ofSegments(
  redis: Redis,
  { shard, key, serverId }: { shard: number; key: string; serverId: string },
  current: number,
): ScannedPage['values'] {
  for await (const rows of pagesOf(redis, key))
    for (const [segment, packed] of rows)
      if (isFormerSegment(packed, current)) yield { kind: 'segment', shard, serverId, segment }
}

/** The stream of a webhook has its last state, and earlier ones. */
async function* ofWebhook(
  redis: Redis,
  { shard, key, webhookId }: { shard: number; key: string; webhookId: string },
  deps: Resealing,
): ScannedPage['values'] {
  const entries = await redis.xrange(key, '-', '+', 'COUNT', ENTRIES_MAX)
  const texts = entries.flatMap(([, fields]) => fields)
  const sealedValues = new Set(texts.flatMap((text) => [...text.matchAll(SEALED)].map(([, sealed = '']) => sealed)))
  const owner = webhookSecretOwner(texts.map((text) => SERVER.exec(text)?.[1]).find(Boolean) ?? '')
  const found: Record<string, string> = {}
  for (const sealed of sealedValues) {
    const resealed = resealSecret(deps, { sealed, owner })
    if (resealed === 'unreadable') yield resealed
    else if (resealed !== 'current') found[sealed] = resealed.after
  }
  if (Object.keys(found).length > 0) yield { kind: 'webhook', shard, webhookId, secrets: found }
}

/** A value that is damaged stays as it is. */
function unlessBroken(reseal: () => Resealed): Resealed {
  try {
    return reseal()
  } catch (error) {
    if (error instanceof RingNotReady) throw error
    return 'unreadable'
  }
}

/** The fields of a hash, some at a time. */
async function* pagesOf(redis: Redis, key: string): AsyncGenerator<[field: string, value: string][]> {
  let cursor = '0'
  do {
    const [next, flat] = await redis.hscan(key, cursor, 'COUNT', FIELDS_A_PAGE)
    cursor = next
    // A small hash comes as a whole, in any size of page.
    for (let from = 0; from < flat.length; from += 2 * FIELDS_A_PAGE) {
      const page = flat.slice(from, from + 2 * FIELDS_A_PAGE)
      yield Array.from({ length: page.length / 2 }, (_, at) => [page[2 * at] as string, page[2 * at + 1] as string])
    }
  } while (cursor !== '0')
}
