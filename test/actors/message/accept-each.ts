/** accept-each - a partial send: each message is judged alone, limits one by one, and a retry gets the same answer. */

import t from 'tap'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import type { Accepted, SendBody } from '../../../src/actors/message/send.ts'
import type { AccountCounters } from '../../../src/state/account.ts'
import { SEGMENT_BOUNDS } from '../../../src/state/segment.ts'
import {
  changeState,
  hmacOf,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)
const KEY = { hash: hmacOf('key'), fingerprint: 'f'.repeat(64) }

function setUp(): { world: World; tenant: Tenant } {
  const world = new World(NOW_MS)
  return { world, tenant: makeTenant(world) }
}

function sendEach(world: World, tenant: Tenant, messages: SendBody['messages'], changes: Partial<SendBody> = {}) {
  const reply = send(world, tenant, { messages, partial: true, ...changes })
  if (reply.kind !== 'accepted') throw new Error(`The whole request was refused: ${reply.code}`)
  return reply
}

function shapeOf({ messages, refused }: Accepted) {
  return { accepted: messages.length, refused: (refused ?? []).map(({ place, code }) => `${place} ${code}`) }
}

function used(world: World, tenant: Tenant): number {
  const counters = world.counters.get(`account:${tenant.accountId}`) as AccountCounters | undefined
  return counters?.minute?.[1] ?? 0
}

const GOOD = makeItem()
const FOREIGN = makeItem({ from: { ...GOOD.from, domain: 'other.example' } })
const LOST = makeItem({ streamId: '01a1f8d8-8300-7000-8000-00000000000f' })
const LARGE = makeItem({ builtBytes: 10_485_761 })

t.test('partial send: one bad message leaves the others accepted, in order [batch.partial]', async (t) => {
  const { world, tenant } = setUp()
  const reply = sendEach(world, tenant, [GOOD, FOREIGN, GOOD, LOST, LARGE, GOOD])
  t.same(shapeOf(reply), {
    accepted: 3,
    refused: ['1 domain_not_verified', '3 stream_not_found', '4 message_too_large'],
  })
  t.equal(used(world, tenant), 3, 'what is refused counts nothing')
  t.notOk(
    reply.refused?.some(({ extra }) => 'index' in extra),
    'the place says which one',
  )
})

t.test('partial send: limits are decided message by message [batch.partial]', async (t) => {
  const { world, tenant } = setUp()
  changeState(world, 'account', tenant.accountId, { perMinuteLimit: 4 })
  const three = makeItem({ recipients: ['a', 'b', 'c'].map((name) => makeRecipient(`${name}@example.net`)) })
  const reply = sendEach(world, tenant, [GOOD, GOOD, three, GOOD, GOOD, GOOD])
  t.same(shapeOf(reply), { accepted: 4, refused: ['2 rate_limited', '5 rate_limited'] })
  t.match(reply.refused?.[0]?.extra, { used: 2, requested: 3, limit: 4 })
  t.equal(reply.rate[0]?.left, 0)
  t.equal(used(world, tenant), 4)
})

t.test('partial send: the same key replays accepted and refused messages [request.idempotency]', async (t) => {
  const { world, tenant } = setUp()
  const first = sendEach(world, tenant, [FOREIGN, GOOD, LOST], { idempotency: KEY })
  const again = sendEach(world, tenant, [FOREIGN, GOOD, LOST], { idempotency: KEY })
  t.equal(again.replayed, true)
  t.same(again.messages, first.messages)
  t.same(again.refused, first.refused)
  t.equal(used(world, tenant), 1)
})

t.test('partial send: without an accepted message nothing is stored [batch.partial]', async (t) => {
  const { world, tenant } = setUp()
  const before = world.keys.size
  const first = sendEach(world, tenant, [FOREIGN, LOST], { idempotency: KEY })
  t.same(shapeOf(first), { accepted: 0, refused: ['0 domain_not_verified', '1 stream_not_found'] })
  t.equal(world.keys.size, before)
  t.equal(sendEach(world, tenant, [GOOD], { idempotency: KEY }).replayed, false, 'the key is free')
})

t.test('partial send: content of an accepted message has the place of the request in its name', async (t) => {
  const { world, tenant } = setUp()
  sendEach(world, tenant, [FOREIGN, GOOD])
  const names = [...world.keys].flatMap(([key, value]) =>
    /:bodies:|:content:/.test(key) && value.type === 'hash' ? [...value.fields.keys()] : [],
  )
  t.equal(names.length, 1)
  t.match(names[0], /-1(?:[.:]|$)/)
})

t.test('partial send: a refusal of the whole request stays a refusal [batch.partial]', async (t) => {
  const { world, tenant } = setUp()
  changeState(world, 'account', tenant.accountId, { status: 'paused' })
  t.match(send(world, tenant, { messages: [GOOD, FOREIGN], partial: true }), {
    kind: 'refused',
    code: 'account_paused',
  })
  t.equal(makeAccept(SEGMENT_BOUNDS).name, 'accept')
})
