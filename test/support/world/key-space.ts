/**
 * key-space - in-memory keys with the writes that a decision may order, and the rules for each of them.
 *
 * Checked on every write: entry ids rise per key; PEXPIREAT finds its key; no address is in any stream; at most 4,000
 * arguments; the keys belong to the shard.
 */

import assert from 'node:assert/strict'
import type { Entry, Op } from '../../../cluster/behaviour.ts'
import { sortableEntryId } from '../../../cluster/id.ts'
import { shardTag } from '../../../cluster/keyspace.ts'

const ARGS_MAX = 4_000

type Value =
  | { readonly type: 'hash'; readonly fields: Map<string, string> }
  | { readonly type: 'stream'; entries: Entry[]; lastId: string }
  | { readonly type: 'sorted'; readonly scores: Map<string, number> }
  | { readonly type: 'string'; bytes: string | Uint8Array }

/** The second half of an id that has none, of a lower and of an upper bound. */
const LOW = '0'
const HIGH = '18446744073709551615'

export class KeySpace {
  nowMs: number
  readonly shard: number
  readonly keys = new Map<string, Value>()
  readonly expiries = new Map<string, number>()
  /** No key expires before. */
  private soonestMs = Number.POSITIVE_INFINITY

  constructor(nowMs: number, shard: number) {
    this.nowMs = nowMs
    this.shard = shard
  }

  /** Names of all keys that are still there. */
  keyNames(): string[] {
    this.expire()
    return [...this.keys.keys()].sort()
  }

  hash(key: string): ReadonlyMap<string, string> {
    this.expire()
    const value = this.keys.get(key)
    return value?.type === 'hash' ? value.fields : new Map()
  }

  stream(key: string): readonly Entry[] {
    const value = this.keys.get(key)
    return value?.type === 'stream' ? value.entries : []
  }

  /** The entries of a stream from one bound to the other, as XRANGE takes them. */
  range(key: string, from: string, to: string): readonly Entry[] {
    const entries = this.stream(key)
    const isAbove = from.startsWith('(')
    const isBelow = to.startsWith('(')
    const low = from === '-' ? 0 : placeIn(entries, wholeId(isAbove ? from.slice(1) : from, LOW), isAbove)
    const high = to === '+' ? entries.length : placeIn(entries, wholeId(isBelow ? to.slice(1) : to, HIGH), !isBelow)
    return entries.slice(low, high)
  }

  sorted(key: string): ReadonlyMap<string, number> {
    const value = this.keys.get(key)
    return value?.type === 'sorted' ? value.scores : new Map()
  }

  string(key: string): string | Uint8Array | null {
    this.expire()
    const value = this.keys.get(key)
    return value?.type === 'string' ? value.bytes : null
  }

  /** Removes what has expired. */
  expire(): void {
    if (this.soonestMs > this.nowMs) return
    this.soonestMs = Number.POSITIVE_INFINITY
    for (const [key, atMs] of this.expiries) {
      if (atMs > this.nowMs) this.soonestMs = Math.min(this.soonestMs, atMs)
      else {
        this.keys.delete(key)
        this.expiries.delete(key)
      }
    }
  }

  private expireAt(key: string, atMs: number): void {
    this.expiries.set(key, atMs)
    this.soonestMs = Math.min(this.soonestMs, atMs)
  }

  /** Applies one write. */
  apply({ key, write, args }: Op): void {
    assert(key.startsWith(`${shardTag(this.shard)}:`), `Key of another shard: ${key}`)
    assert(args.length <= ARGS_MAX, `${write} with ${args.length} arguments`)
    for (const arg of args)
      assert(typeof arg === 'string' || arg instanceof Uint8Array, `${write} argument of another type`)
    const texts = args as readonly string[]
    switch (write) {
      case 'HSET': {
        assert(args.length > 0 && args.length % 2 === 0, 'HSET without pairs')
        const { fields } = this.valueOf(key, 'hash', () => ({ type: 'hash', fields: new Map() }))
        for (let index = 0; index < args.length; index += 2) fields.set(texts[index]!, texts[index + 1]!)
        return
      }
      case 'HDEL':
        assert(args.length > 0, 'HDEL without fields')
        for (const field of texts) (this.hash(key) as Map<string, string>).delete(field)
        if (this.hash(key).size === 0) this.keys.delete(key)
        return
      case 'SET':
        assert(args.length === 3 && args[1] === 'PXAT', 'SET without PXAT')
        this.keys.set(key, { type: 'string', bytes: args[0]! })
        this.expireAt(key, Number(args[2]))
        return
      case 'UNLINK':
        this.keys.delete(key)
        this.expiries.delete(key)
        return
      case 'PEXPIREAT':
        assert(this.keys.has(key), `PEXPIREAT of a key that is not there: ${key}`)
        this.expireAt(key, Number(args[0]))
        return
      case 'XADD':
        this.append(key, texts)
        return
      case 'XTRIM': {
        assert(args[0] === 'MINID', 'XTRIM without MINID')
        const value = this.keys.get(key)
        if (value?.type === 'stream') value.entries = value.entries.slice(placeIn(value.entries, texts[1]!, false))
        return
      }
      case 'ZADD': {
        const { scores } = this.valueOf(key, 'sorted', () => ({ type: 'sorted', scores: new Map() }))
        for (let index = 0; index < args.length; index += 2) scores.set(texts[index + 1]!, Number(texts[index]))
        return
      }
      case 'ZREM': {
        const scores = this.sorted(key) as Map<string, number>
        for (const member of texts) scores.delete(member)
        if (scores.size === 0) this.keys.delete(key)
      }
    }
  }

  private append(key: string, args: readonly string[]): void {
    const [id = '', ...fields] = args
    assert(fields.length > 0 && fields.length % 2 === 0, 'XADD without fields')
    for (const text of fields) assert(!text.includes('@'), `An address is in the stream ${key}`)
    const value = this.valueOf(key, 'stream', () => ({ type: 'stream', entries: [], lastId: '' }))
    assert(sortableEntryId(id) > value.lastId, `Entry ids of ${key} do not rise`)
    value.lastId = sortableEntryId(id)
    value.entries.push({ id, fields })
  }

  private valueOf<Type extends Value['type']>(
    key: string,
    type: Type,
    make: () => Value & { type: Type },
  ): Value & { type: Type } {
    let value = this.keys.get(key)
    if (value === undefined) {
      value = make()
      this.keys.set(key, value)
    }
    assert.equal(value.type, type, `${key} holds another type`)
    return value as Value & { type: Type }
  }
}

function wholeId(id: string, half: string): string {
  return id.includes('-') ? id : `${id}-${half}`
}

/** How many entries are below an id; with `isAfter` up to it. Ids rise, so a few are compared. */
function placeIn(entries: readonly Entry[], id: string, isAfter: boolean): number {
  const bound = sortableEntryId(id)
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const place = sortableEntryId((entries[middle] as Entry).id)
    if (place < bound || (isAfter && place === bound)) low = middle + 1
    else high = middle
  }
  return low
}
