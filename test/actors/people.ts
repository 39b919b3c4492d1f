/** people - who was not named for 14 months goes, bucket by bucket. */

import t from 'tap'
import { monthStartMs } from '../../src/actors/calendar.ts'
import { personKey } from '../../src/actors/keyspace.ts'
import { firstPeopleDue, people } from '../../src/actors/people.ts'
import { hmacOf } from '../support/tenant.ts'
import { World } from '../support/turn.ts'

const ACCOUNT = '0193b2a4-6c00-7017-8000-0123456789ab'
const NOW_MS = Date.UTC(2027, 2, 1)
const ITEM = `people:${ACCOUNT}:00`

const ROWS: readonly (readonly [month: string, stays: boolean])[] = [
  ['202512', false],
  ['202601', false],
  ['202602', true],
  ['202703', true],
]

t.test('people: rows last named 14 months ago go, newer ones stay, erased ones go by their own month', async (t) => {
  const world = new World(NOW_MS)
  const fields = new Map([['#', '9']])
  for (const [index, [month]] of ROWS.entries()) {
    const number = String((index + 1) * 256)
    fields.set(hmacOf(month), `${number} ${month}`)
    fields.set(number, `${month}@example.net`)
    fields.set(String((index + 5) * 256), `${month} erased-${month}@erased.invalid`)
  }
  const key = personKey(world.shard, ACCOUNT, 0)
  world.keys.set(key, { type: 'hash', fields })
  world.run(people, { item: ITEM })
  const expected = ROWS.flatMap(([month, stays], index) =>
    stays ? [hmacOf(month), String((index + 1) * 256), String((index + 5) * 256)] : [],
  )
  t.same([...world.hash(key).keys()].sort(), ['#', ...expected].sort())
  world.nowMs = Date.UTC(2030, 0, 1)
  world.run(people, { item: ITEM })
  t.notOk(world.keys.has(key), 'the last ones take the bucket with them')
})

t.test('people: one item walks all buckets and comes back next month', async (t) => {
  const world = new World(NOW_MS)
  world.items.set(`timers ${ITEM}`, { lane: 'timers', item: ITEM, atMs: 0, claims: 0 })
  t.equal(world.fireTimers(), 256)
  t.same([...world.items.keys()], [`timers ${ITEM}`])
  const atMs = world.items.get(`timers ${ITEM}`)?.atMs ?? 0
  t.ok(atMs >= Date.UTC(2027, 3, 1) && atMs < Date.UTC(2027, 3, 2))
})

t.test('people: accounts begin their walks at different moments of the first day', async (t) => {
  const times = new Set(['a', 'b', 'c', 'd'].map((id) => firstPeopleDue(id, NOW_MS).atMs))
  t.equal(times.size, 4)
  const nextMs = monthStartMs(2027 * 12 + 3)
  for (const atMs of times) t.ok(atMs >= nextMs && atMs < nextMs + 86_400_000)
})
