/** id - ids that route themselves, sort by time, and never go back. */
import t, { test } from 'tap'
import {
  base36,
  decimalOf,
  entriesOfRank,
  entryIdOf,
  hex3,
  hex12,
  idOfEntry,
  idOfShort,
  isEntryIdAbove,
  isId,
  makeIds,
  msOf,
  parseId,
  plainEntryId,
  rankOf,
  SHARDS,
  shardOf,
  shortId,
  sortableEntryId,
} from '../../cluster/id.ts'

const NOW_MS = 1_732_100_000_000
const least = () => 0
const most = () => 1 - 2 ** -53

/** shard, last, random, nowMs, id */
const MADE: [number, string, () => number, number, string][] = [
  [0, '', least, NOW_MS, '01934934-8900-7000-8000-000000000000'],
  [0x17, '', most, NOW_MS, '01934934-8900-7017-8000-0fffffffffff'],
  [255, '01934934-8900-70ff-8000-000000000000', least, NOW_MS, '01934934-8900-70ff-8000-100000000000'],
  // The clock is behind the last id: the counter continues, the time does not go back.
  [1, '01934934-8900-7001-8000-f00000000000', least, NOW_MS - 60_000, '01934934-8900-7001-8001-000000000000'],
  // The counter is full: the time advances by itself.
  [1, '01934934-8900-7001-bfff-ffffffffffff', least, NOW_MS, '01934934-8901-7001-8000-000000000000'],
  [4095, '01934934-8900-7fff-8000-000000000000', least, NOW_MS + 1, '01934934-8901-7fff-8000-000000000000'],
]

const EDGES = [
  0,
  1,
  9,
  15,
  16,
  255,
  999,
  1_000,
  1_001,
  4_095,
  4_096,
  999_999,
  1_000_000,
  1_679_615,
  2 ** 24 - 1,
  2 ** 24,
]
const LARGE = [2 ** 31, 2 ** 32, 2 ** 44 - 1, 1_732_100_000_000, 2 ** 48 - 1, 1_000_000_007_000, 2 ** 53 - 1]

t.test('id: a rank rises with the ids, and the entry of its id alone has it', async (t) => {
  const ids = makeIds({ shard: 3, last: '', random: Math.random })
  const made = [NOW_MS, NOW_MS, NOW_MS, NOW_MS - 5, NOW_MS + 1].map((nowMs) => ids.next(nowMs))
  made.push('01934934-8901-7003-bfff-ffffffffffff')
  t.same(
    made.map(rankOf).map((rank) => rank.slice(String(NOW_MS).length)),
    ['-0', '-1', '-2', '-3', '-0', '-262143'],
  )
  for (const [at, id] of made.entries()) {
    const { from, to } = entriesOfRank(rankOf(id))
    const entryId = entryIdOf(id)
    t.ok(entryId === from || isEntryIdAbove(entryId, from))
    t.ok(entryId === to || isEntryIdAbove(to, entryId))
    const next = made[at + 1]
    if (next !== undefined) t.ok(isEntryIdAbove(entriesOfRank(rankOf(next)).from, to))
  }
})

t.test('id: makeIds continues above the last id, whatever the clock does', async (t) => {
  for (const [shard, last, random, nowMs, id] of MADE) {
    const ids = makeIds({ shard, last, random })
    t.equal(ids.last, last)
    t.equal(ids.next(nowMs), id)
    t.equal(ids.last, id)
    t.ok(isId(id))
    t.equal(parseId(id).shard, shard)
  }
})

t.test('id: ids of a shard rise strictly under a clock that jumps, as texts and as entry ids', async (t) => {
  const random = [0.99, 0, 0.5, 0.1]
  let at = 0
  const ids = makeIds({ shard: 9, last: '', random: () => random[at++ % 4]! })
  let last = ''
  let lastEntry = ''
  for (let i = 0; i < 3_000; i += 1) {
    const id = ids.next(NOW_MS + (i % 7 === 0 ? -50_000 : (i % 5) * 3))
    const entry = sortableEntryId(entryIdOf(id))
    if (id <= last || entry <= lastEntry) t.fail(`${id} is not above ${last}`)
    last = id
    lastEntry = entry
  }
  t.equal(shardOf(last), 9)
})

t.test('id: a full counter spans 262,144 ids of one millisecond', async (t) => {
  const ids = makeIds({ shard: 0, last: '', random: least })
  for (let i = 0; i < 2 ** 18; i += 1) ids.next(NOW_MS)
  t.same(parseId(ids.last), { ms: NOW_MS, shard: 0, counter: 2 ** 18 - 1 })
  t.same(parseId(ids.next(NOW_MS)), { ms: NOW_MS + 1, shard: 0, counter: 0 })
})

/** id, entry id */
const ENTRIES: [string, string][] = [
  ['01934934-8900-7017-8000-000000000000', `${NOW_MS}-0`],
  ['01934934-8900-7017-8000-000000000001', `${NOW_MS}-1`],
  ['01934934-8900-7017-bfff-ffffffffffff', `${NOW_MS}-4611686018427387903`],
  ['01934934-8900-7017-9234-56789abcdef0', `${NOW_MS}-${0x123456789abcdef0n}`],
]

t.test('id: an entry id holds the time and all 62 low bits, and gives the id back', async (t) => {
  for (const [id, entry] of ENTRIES) {
    t.equal(entryIdOf(id), entry)
    t.equal(idOfEntry(entry, 0x17), id)
    t.equal(idOfShort(shortId(id)), id)
    t.equal(shortId(id).length, 22)
    t.equal(msOf(id), NOW_MS)
  }
})

t.test('id: sortable entry ids compare like the ids', async (t) => {
  const entries = ['0-0', '0-1', '0-10', '9-2', '10-1', `${NOW_MS}-0`, `${NOW_MS}-18446744073709551615`]
  const sortable = entries.map(sortableEntryId)
  t.same([...sortable].sort(), sortable)
  t.same(new Set(sortable.map((id) => id.length)), new Set([36]))
  t.same(sortable.map(plainEntryId), entries)
  for (const [at, id] of entries.entries())
    for (const [otherAt, other] of entries.entries()) t.equal(isEntryIdAbove(id, other), at > otherAt, `${id} ${other}`)
})

/** text, shard or null */
const SHARD_CASES: [string, number | null][] = [
  ['01934934-8900-7017-8000-000000000000', 0x17],
  ['01934934-8900-70ff-8000-000000000000', SHARDS - 1],
  ['01934934-8900-7100-8000-000000000000', null],
  ['01934934-8900-4017-8000-000000000000', null],
  ['01934934-8900-7017-c000-000000000000', null],
  ['01934934-8900-7017-8000-00000000000G', null],
  ['01934934-8900-7017-8000-00000000000A', null],
  ['01934934-8900-7017-8000-0000000000000', null],
  ['', null],
]

t.test('id: shardOf knows only ids of its layout and shards of the installation', async (t) => {
  for (const [text, shard] of SHARD_CASES) t.equal(shardOf(text), shard, text)
  t.equal(shardOf('01934934-8900-7017-8000-000000000000', 16), null)
  t.throws(() => makeIds({ shard: 4096, last: '', random: least }), { name: 'Fault' })
  t.throws(() => makeIds({ shard: -1, last: '', random: least }), { name: 'Fault' })
})

test('digits: hex, with zeros before it', async (t) => {
  for (let value = 0; value < 4_096; value += 1) t.equal(hex3(value), value.toString(16).padStart(3, '0'))
  for (const value of [...EDGES, ...LARGE])
    if (value < 2 ** 48) t.equal(hex12(value), value.toString(16).padStart(12, '0'))
})

test('digits: decimal', async (t) => {
  for (const value of [...EDGES, ...LARGE, Number.NaN, Infinity]) t.equal(decimalOf(value), String(value))
})

test('digits: base 36, with zeros before it', async (t) => {
  for (const value of EDGES) if (value < 36 ** 4) t.equal(base36(value), value.toString(36).padStart(4, '0'))
})
