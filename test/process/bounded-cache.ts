/** bounded-cache - what is evicted, by entries, by bytes, by age, and what is never cached. */
import t from 'tap'
import { BoundedCache } from '../../src/process/bounded-cache.ts'

function open(bounds: { entriesMax?: number; bytesMax?: number; entryBytesMax?: number } = {}) {
  const clock = { nowMs: 0 }
  const cache = new BoundedCache<number>({
    entriesMax: 100,
    bytesMax: 1_000_000,
    entryBytesMax: 4096,
    ...bounds,
    nowMs: () => clock.nowMs,
  })
  return { clock, cache, set: (key: string, bytes = 0, untilMs = 1000) => cache.set(key, 1, { bytes, untilMs }) }
}

t.test('bounded-cache: the least recently used entry goes first', async (t) => {
  const { cache, set } = open({ entriesMax: 2 })
  set('a')
  set('b')
  t.equal(cache.get('a'), 1)
  set('c')
  t.same([cache.get('a'), cache.get('b'), cache.get('c')], [1, undefined, 1])
})

t.test('bounded-cache: bytes of all entries, with their keys', async (t) => {
  const { cache, set } = open({ bytesMax: 10_000 })
  for (let n = 0; n < 100; n += 1) {
    set(`${n}`, 1000)
    t.ok(cache.bytes <= 10_000, `${cache.bytes} bytes`)
  }
  t.equal(cache.size, 7)
  set('99', 10)
  set('k'.repeat(1000), 10)
  t.ok(cache.bytes > 2000 + 6 * 1000 && cache.bytes <= 10_000, `${cache.bytes} bytes: a key counts`)
})

t.test('bounded-cache: a large entry is not cached and removes the former one', async (t) => {
  const { cache, set } = open()
  set('a')
  set('a', 4096)
  set('k'.repeat(3000))
  t.same([cache.get('a'), cache.size, cache.bytes], [undefined, 0, 0])
})

t.test('bounded-cache: expired entries are removed, asked for or not', async (t) => {
  const { cache, clock, set } = open()
  set('old', 0, 1000)
  set('long', 0, 100_000)
  clock.nowMs = 999
  t.equal(cache.get('old'), 1)
  clock.nowMs = 1000
  t.equal(cache.get('old'), undefined)
  clock.nowMs = 60_000
  set('new', 0, 70_000)
  t.same([cache.size, cache.get('long'), cache.get('new')], [2, 1, 1])
})
