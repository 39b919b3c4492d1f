/** people - who was not named for 14 months goes, hash by hash. */

import t from 'tap'
import { firstPeopleDue, people } from '../../../src/actors/account/people.ts'
import { monthStartMs } from '../../../src/state/calendar.ts'
import { firstPersonsKey, personKey } from '../../../src/state/keys.ts'
import { FIRST_PERSONS } from '../../../src/state/person/buckets.ts'
import { hmacOf } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const ACCOUNT = '0193b2a4-6c00-7017-8000-0123456789ab'
const NOW_MS = Date.UTC(2027, 2, 1)
const ITEM = `people:${ACCOUNT}:0`

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
  const key = firstPersonsKey(world.shard, ACCOUNT)
  world.keys.set(key, { type: 'hash', fields })
  world.run(people, { item: ITEM })
  const expected = ROWS.flatMap(([month, stays], index) =>
    stays ? [hmacOf(month), String((index + 1) * 256), String((index + 5) * 256)] : [],
  )
  t.same([...world.hash(key).keys()].sort(), ['#', ...expected].sort())
  world.nowMs = Date.UTC(2030, 0, 1)
  world.run(people, { item: ITEM })
  t.notOk(world.keys.has(key), 'the last ones take the hash with them')
})

t.test('people: an account that has only first persons is walked in one step', async (t) => {
  const world = new World(NOW_MS)
  world.items.set(`timers ${ITEM}`, { lane: 'timers', item: ITEM, atMs: 0, claims: 0 })
  t.equal(world.fireTimers(), 1)
})

t.test('people: one item walks all buckets and comes back next month', async (t) => {
  const world = new World(NOW_MS)
  const key = firstPersonsKey(world.shard, ACCOUNT)
  const fields = new Map([
    ['#', String(FIRST_PERSONS)],
    [hmacOf('a'), '1 202512'],
    ['1', 'a@example.net'],
  ])
  world.keys.set(key, { type: 'hash', fields })
  world.items.set(`timers ${ITEM}`, { lane: 'timers', item: ITEM, atMs: 0, claims: 0 })
  t.equal(world.fireTimers(), 1 + 256)
  t.same([...world.hash(key).keys()], ['#'], 'what says that there are buckets stays')
  t.same([...world.items.keys()], [`timers ${ITEM}`])
  const atMs = world.items.get(`timers ${ITEM}`)?.atMs ?? 0
  t.ok(atMs >= Date.UTC(2027, 3, 1) && atMs < Date.UTC(2027, 3, 2))
})

t.test('people: the walk goes down to the deepest level in use, and makes room in full buckets', async (t) => {
  const world = new World(NOW_MS)
  const number = 2 ** 27 + 4096 + 4095
  const rows = (stays: number): Map<string, string> => {
    const fields = new Map([['#', '2']])
    for (const [at, month] of ['202512', '202703'].entries()) fields.set(hmacOf(month), `${stays + at} ${month}`)
    return fields.set(String(stays), 'old@example.net').set(String(stays + 1), 'new@example.net')
  }
  world.keys.set(firstPersonsKey(world.shard, ACCOUNT), {
    type: 'hash',
    fields: new Map([['#', String(FIRST_PERSONS + 1)]]),
  })
  const keys = [
    [personKey(world.shard, ACCOUNT, 'ff'), FIRST_PERSONS + 256],
    [personKey(world.shard, ACCOUNT, 'fff'), number],
  ] as const
  for (const [key, first] of keys) world.keys.set(key, { type: 'hash', fields: rows(first) })
  world.items.set(`timers ${ITEM}`, { lane: 'timers', item: ITEM, atMs: 0, claims: 0 })
  t.equal(world.fireTimers(), 1 + 256 + 4096 / 32)
  for (const [key, first] of keys)
    t.same(
      [...world.hash(key)],
      [
        ['#', '2 1'],
        [hmacOf('202703'), `${first + 1} 202703`],
        [String(first + 1), 'new@example.net'],
      ],
    )
})

t.test('people: accounts begin their walks at different moments of the first day', async (t) => {
  const times = new Set(['a', 'b', 'c', 'd'].map((id) => firstPeopleDue(id, NOW_MS).atMs))
  t.equal(times.size, 4)
  const nextMs = monthStartMs(2027 * 12 + 3)
  for (const atMs of times) t.ok(atMs >= nextMs && atMs < nextMs + 86_400_000)
})
