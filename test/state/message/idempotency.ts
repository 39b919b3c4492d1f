/** idempotency - replays: same, other, too late, over midnight, with a clock that goes back. */

import t from 'tap'
import { bucketOfHmac } from '../../../src/state/hash-fraction.ts'
import { idempotencyKey } from '../../../src/state/keys.ts'
import { acceptedIds, hmacOf, makeItem, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 10, 20, 22)
const KEY = { hash: hmacOf('key'), fingerprint: 'f'.repeat(64) }
const OTHER = { ...KEY, fingerprint: 'e'.repeat(64) }

type Expected = 'replay' | 'reused' | 'new'

const CASES: readonly { name: string; afterMs: number; key?: typeof KEY; expected: Expected }[] = [
  { name: 'the same at once', afterMs: 0, expected: 'replay' },
  { name: 'the same after midnight', afterMs: 3 * HOUR_MS, expected: 'replay' },
  { name: 'the same a millisecond before 24 h', afterMs: 24 * HOUR_MS - 1, expected: 'replay' },
  { name: 'the same after 24 h', afterMs: 24 * HOUR_MS, expected: 'new' },
  { name: 'the same after two days', afterMs: 50 * HOUR_MS, expected: 'new' },
  { name: 'the same with the clock an hour back', afterMs: -HOUR_MS, expected: 'replay' },
  { name: 'the same with the clock back before midnight', afterMs: -23 * HOUR_MS, expected: 'replay' },
  { name: 'another body or route', afterMs: HOUR_MS, key: OTHER, expected: 'reused' },
  { name: 'another body after 24 h', afterMs: 24 * HOUR_MS, key: OTHER, expected: 'new' },
  { name: 'another key', afterMs: 0, key: { ...KEY, hash: hmacOf('another key') }, expected: 'new' },
]

for (const { name, afterMs, key, expected } of CASES) {
  t.test(`idempotency: ${name} is ${expected} [request.idempotency]`, async (t) => {
    const world = new World(START_MS)
    const tenant = makeTenant(world)
    const first = send(world, tenant, { idempotency: KEY })
    const [firstId] = acceptedIds(first)
    const counters = JSON.stringify([...world.counters])
    world.nowMs += afterMs
    const second = send(world, tenant, { idempotency: key ?? KEY })
    if (expected === 'reused') {
      t.same(second, { kind: 'refused', code: 'idempotency_key_reused', extra: {} })
      return
    }
    if (second.kind !== 'accepted' || first.kind !== 'accepted') throw new Error('Send was refused')
    t.equal(second.replayed, expected === 'replay')
    t.equal(acceptedIds(second)[0] === firstId, expected === 'replay')
    if (expected === 'replay') {
      t.same(second.messages, first.messages)
      t.equal(JSON.stringify([...world.counters]), counters)
      t.same(world.ops, [])
    }
  })
}

t.test('idempotency: a refusal leaves the key free', async (t) => {
  const world = new World(START_MS)
  const tenant = makeTenant(world)
  const messages = [makeItem({ streamId: tenant.test.streamId })]
  const refused = send(world, tenant, { idempotency: KEY, billing: true, messages })
  t.equal(refused.kind, 'refused')
  t.equal(acceptedIds(send(world, tenant, { idempotency: OTHER })).length, 1)
})

t.test('idempotency: a replay of several answers all of them', async (t) => {
  const world = new World(START_MS)
  const tenant = makeTenant(world)
  const body = { idempotency: KEY, messages: [makeItem(), makeItem(), makeItem()] }
  const ids = acceptedIds(send(world, tenant, body))
  t.equal(new Set(ids).size, 3)
  t.same(acceptedIds(send(world, tenant, body)), ids)
})

t.test('idempotency: the record goes an hour after the end of the next day', async (t) => {
  const world = new World(START_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { idempotency: KEY })
  const key = idempotencyKey(world.shard, '20261120', (bucketOfHmac(KEY.hash) >> 4).toString(16))
  t.equal(world.expiries.get(key), Date.UTC(2026, 10, 22, 1))
  t.match(world.hash(key).get(KEY.hash), /^\["f{32}",\d+,\["[\w-]{22}"\]\]~~[\w-]{6}$/)
})
