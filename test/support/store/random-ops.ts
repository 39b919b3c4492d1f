/** random-ops - seeded commits and reads: most are valid, some unusual, some against the rules */
import type { Fact, Op, Write } from '../../../cluster/behaviour.ts'
import { entryIdOf, makeIds, sortableEntryId } from '../../../cluster/id.ts'
import { shardTag } from '../../../cluster/keyspace.ts'

/** A source of numbers in [0, 1), the same for the same seed (mulberry32). */
export function makeRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const WRITES: readonly Write[] = [
  'HSET',
  'HSET',
  'HDEL',
  'XADD',
  'XADD',
  'XADD',
  'ZADD',
  'ZADD',
  'ZREM',
  'SET',
  'PEXPIREAT',
  'XTRIM',
  'UNLINK',
]
const KIND: Readonly<Record<Write, string>> = {
  HSET: 'hash',
  HDEL: 'hash',
  ZADD: 'sorted',
  ZREM: 'sorted',
  XADD: 'stream',
  XTRIM: 'stream',
  SET: 'text',
  PEXPIREAT: 'hash',
  UNLINK: 'text',
}
const KINDS = ['hash', 'sorted', 'stream', 'text']
const TEXTS = [
  '',
  'a',
  'b',
  'c',
  'XX',
  '*seq',
  'ü',
  '漢字',
  '😀',
  '\u0000',
  'x\r\ny',
  '\ud800',
  '{}',
  '"',
  'long '.repeat(40),
]
/** Streams whose entries the commit numbers, and not the maker. */
const NUMBERED = ':3'
const ODD_IDS = [
  '*',
  '0-0',
  '1',
  '01-1',
  '1-01',
  '5-18446744073709551616',
  '5-18446744073709551615',
  '-1-1',
  'x-y',
  '',
  '1-1 ',
  '9999999999999999-1',
]
const ODD_SCORES = ['nan', '', '0x10', '1e5', ' 1', '1 ', 'inf', '--1', '.5', '123456789012345678901']
const SCORES = ['0', '1', '-1', '1.5', '7.', '-0', '1732000000000', '99999999999999999999', '0.1']

/** Makes random requests for one shard. Ids of entries rise over the life of the maker. */
export class RequestMaker {
  readonly shard: number
  private readonly random: () => number
  private entry = 1_000

  constructor(shard: number, random: () => number) {
    this.shard = shard
    this.random = random
  }

  below(max: number): number {
    return Math.floor(this.random() * max)
  }

  chance(share: number): boolean {
    return this.random() < share
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  key(kind: string): string {
    return `${shardTag(this.shard)}:${this.chance(0.002) ? this.of(KINDS) : kind}:${this.below(4)}`
  }

  /** A list of ops; about two in three are good as a whole. */
  ops(nowMs: number): Op[] {
    const ops: Op[] = []
    if (this.chance(0.1)) ops.push(...this.postings())
    for (let left = this.below(12); left > 0; left -= 1) {
      const write = this.of(WRITES)
      const key = write === 'PEXPIREAT' || write === 'UNLINK' ? this.key(this.of(KINDS)) : this.key(KIND[write])
      // Expiries mostly follow a write of their key, as they do in life.
      if (write === 'PEXPIREAT' && this.chance(0.8)) ops.push({ key, write: 'HSET', args: [this.text(), this.text()] })
      ops.push({ key, write, args: this.chance(0.01) ? this.texts(4) : this.args(write, key, nowMs) })
    }
    if (this.chance(0.01)) ops.push({ key: this.key('hash'), write: 'INCR' as Write, args: [] })
    if (this.chance(0.01))
      ops.push({ key: `${shardTag(this.shard)}:${this.of(['meta', 'journal'])}`, write: 'UNLINK', args: [] })
    if (this.chance(0.02))
      ops.push({ key: this.key('hash'), write: 'HSET', args: this.many(this.of([3_998, 4_000, 4_002])) })
    return ops
  }

  /** A few reads, of keys of the right and rarely of the wrong kind. */
  facts(): Fact[] {
    return Array.from({ length: this.below(8) }, () => this.fact())
  }

  /** An id of the same shard and its sortable entry id. */
  newId(nowMs: number, last: string): { id: string; entryId: string } {
    const id = makeIds({ shard: this.shard, last, random: this.random }).next(nowMs)
    return { id, entryId: sortableEntryId(entryIdOf(id)) }
  }

  /** One entry each for 2 to 50 postings in one bucket. */
  private postings(): Op[] {
    const key = this.key('stream')
    const numbered = key.endsWith(NUMBERED)
    return Array.from({ length: 2 + this.below(49) }, () => ({
      key,
      write: 'XADD' as const,
      args: [numbered ? '*seq' : this.entryId(), 'p', this.text()],
    }))
  }

  private fact(): Fact {
    const count = this.of([0, 1, 2, 50])
    switch (this.below(7)) {
      case 0:
        return {
          read: 'fields',
          key: this.key('hash'),
          fields: this.texts(5),
          ...(this.chance(0.5) && { wholeMax: this.of([0, 3, 1_000]) }),
        }
      case 1:
        return { read: 'hash', key: this.key('hash') }
      case 2: {
        const [from, to] = [
          this.of(['-', '0', `${this.entry - 30}-0`]),
          this.of(['+', `${this.entry}`, `${this.entry - 5}-3`]),
        ]
        return { read: 'range', key: this.key('stream'), from, to, count }
      }
      case 3:
        return { read: 'last', key: this.key('stream') }
      case 4: {
        const [min, max] = [
          this.of([Number.NEGATIVE_INFINITY, 0, 1.5]),
          this.of([Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, 7]),
        ]
        const fact: Fact = { read: 'sorted', key: this.key('sorted'), min, max, count }
        return this.chance(0.5) ? { ...fact, newest: true } : fact
      }
      case 5:
        return { read: 'score', key: this.key('sorted'), member: this.text() }
      default:
        return { read: 'value', key: this.key('text') }
    }
  }

  private args(write: Write, key: string, nowMs: number): (string | Uint8Array)[] {
    switch (write) {
      case 'HSET':
        return this.chance(0.05) ? this.many(2 * (1 + this.below(300))) : this.many(2 * (1 + this.below(3)))
      case 'HDEL':
      case 'ZREM':
        return [this.text(), ...this.texts(3)]
      case 'XADD':
        return [key.endsWith(NUMBERED) ? '*seq' : this.entryId(), ...this.many(2 * (1 + this.below(3)))]
      case 'XTRIM':
        return [
          this.chance(0.02) ? 'MAXLEN' : 'MINID',
          this.chance(0.02) ? this.of(ODD_IDS) : `${this.entry - this.below(60)}-${this.below(3)}`,
        ]
      case 'SET':
        return [
          this.chance(0.1) ? Buffer.alloc(100_000, this.below(256)) : this.text(),
          this.chance(0.02) ? 'PX' : 'PXAT',
          this.instant(nowMs),
        ]
      case 'UNLINK':
        return []
      case 'PEXPIREAT':
        return [this.instant(nowMs)]
      case 'ZADD': {
        const pairs = Array.from({ length: 1 + this.below(4) }, () => [
          this.chance(0.01) ? this.of(ODD_SCORES) : this.of(SCORES),
          this.text(),
        ])
        return [...(this.chance(0.5) ? [this.of(['XX', 'NX', 'LT', 'GT'])] : []), ...pairs.flat()]
      }
    }
  }

  private entryId(): string {
    if (this.chance(0.01)) return this.of(ODD_IDS)
    if (this.chance(0.01)) return `${this.entry - this.below(40)}-0`
    this.entry += 1
    return `${this.entry}-${this.chance(0.5) ? String(4_000_000_000_000_000_000n + BigInt(this.entry)) : `18446744073709${551_000 + this.below(600)}`}`
  }

  /** Far from now on either side, so that both stores see the same. */
  private instant(nowMs: number): string {
    if (this.chance(0.02)) return this.of(['0', '-1', 'x', '01', '1234567890123456'])
    return String(this.chance(0.1) ? 1_000 + this.below(5) : nowMs - (nowMs % 1_000_000) + 10_000_000 + this.below(3))
  }

  private many(count: number): string[] {
    return Array.from({ length: count }, (_, index) => (index % 2 === 0 && count > 20 ? `f${index}` : this.text()))
  }

  private texts(max: number): string[] {
    return Array.from({ length: this.below(max + 1) }, () => this.text())
  }

  private text(): string {
    return this.chance(0.5) ? this.of(TEXTS) : `t${this.below(9)}`
  }
}
