/** receive - what a mail writes, for whom it is refused, and the minute to the exact recipient. */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { withSum } from '../../../cluster/sum.ts'
import { type ReceiveBody, receive } from '../../../src/actors/inbound/receive.ts'
import type { AccountCounters } from '../../../src/state/account.ts'
import { firstPersonsKey, receivedKey, receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { contentHeadKey, unpackContentHead } from '../../../src/state/received/content-head.ts'
import { parseReceivedEntry } from '../../../src/state/received/entry.ts'
import { unpackStanding } from '../../../src/state/received/standing.ts'
import { makeInboundStream, makeReceive, receiveMail, SENDER } from '../../support/world/inbound.ts'
import { changeState, hmacOf, makeTenant, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)

function open(): { world: World; tenant: Tenant; streamId: string } {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  return { world, tenant, streamId: makeInboundStream(world, tenant) }
}

t.test('receive: a message for each recipient, with everything it needs, in one turn [inbound.receive]', async (t) => {
  const { world, tenant, streamId } = open()
  const ids = receiveMail(world, tenant, { streamId, hashes: [null, 'order-7'] })
  const { serverId } = tenant.live
  const [segment = ''] = [...world.sorted(receivedSegmentsKey(world.shard, serverId)).keys()]
  t.equal(segment, '202611-0-1')
  const entries = world.stream(receivedKey(world.shard, serverId, segment)).map(parseReceivedEntry)
  t.same(entries, [
    { streamId, sender: 1, plusHash: null },
    { streamId, sender: 1, plusHash: hmacOf('order-7').slice(0, 8) },
  ])
  for (const [place, id] of ids.entries()) {
    const standing = world.hash(receivedStateKey(world.shard, serverId, segment)).get(shortId(id)) as string
    t.match(unpackStanding(standing, world.nowMs), {
      sizeBytes: 1000,
      isParsed: false,
      mailboxHash: [null, 'order-7'][place],
    })
    const head = world.hash(contentHeadKey(world.shard, serverId, id)).get(shortId(id)) as string
    t.match(unpackContentHead(head), {
      key: 'a sealed key',
      sender: SENDER,
      session: { ip: '192.0.2.1', helo: 'mail.example.net' },
    })
  }
  t.equal(world.deliveries().filter(({ lane }) => lane === `parse/${tenant.accountId}`).length, 2)
  t.equal([...world.items.values()].filter(({ item }) => item === `received:${serverId}`).length, 1)
  const persons = world.hash(firstPersonsKey(world.shard, tenant.accountId))
  t.equal(persons.get(hmacOf(SENDER)), withSum('1 202611 r'), 'a number')
  t.equal(persons.get('1'), undefined, 'and no address')
  t.same((world.counters.get(`account:${tenant.accountId}`) as AccountCounters).inboundMinute, [
    Math.floor(NOW_MS / 60_000),
    2,
  ])
})

t.test('receive: a notification has no sender [inbound.receive]', async (t) => {
  const { world, tenant, streamId } = open()
  receiveMail(world, tenant, { streamId, sender: null })
  const [segment = ''] = [...world.sorted(receivedSegmentsKey(world.shard, tenant.live.serverId)).keys()]
  t.same(world.stream(receivedKey(world.shard, tenant.live.serverId, segment)).map(parseReceivedEntry), [
    { streamId, sender: 0, plusHash: null },
  ])
})

t.test('receive: the limit per minute is exact to the recipient, all or nothing [inbound.limit]', async (t) => {
  const { world, tenant, streamId } = open()
  changeState(world, 'account', tenant.accountId, { inboundPerMinuteLimit: 3 })
  receiveMail(world, tenant, { streamId, hashes: ['a', 'b'] })
  const two = world.run(receive, makeReceive(world, tenant, { streamId, hashes: ['a', 'b'] }))
  t.same(two, { kind: 'refused', why: 'rate_limited' })
  t.same(world.ops, [], 'a refusal writes nothing')
  receiveMail(world, tenant, { streamId })
  t.same(world.run(receive, makeReceive(world, tenant, { streamId })), { kind: 'refused', why: 'rate_limited' })
  world.nowMs += 30_000
  receiveMail(world, tenant, { streamId, hashes: ['a', 'b', 'c'] })
})

const GONE: readonly [string, (world: World, tenant: Tenant, streamId: string) => Partial<ReceiveBody> | undefined][] =
  [
    ['account closed', (world, { accountId }) => void changeState(world, 'account', accountId, { status: 'closed' })],
    ['stream archived', (world, _tenant, streamId) => void changeState(world, 'stream', streamId, { archivedAtMs: 1 })],
    [
      'stream of another kind',
      (world, _tenant, streamId) => void changeState(world, 'stream', streamId, { kind: 'transactional' }),
    ],
    ['server removed', (world, { live }) => void changeState(world, 'server', live.serverId, { removedAtMs: 1 })],
    [
      'server of another account',
      (world, { live }) => void changeState(world, 'server', live.serverId, { accountId: 'other' }),
    ],
    [
      'stream of another server',
      (world, { test }, streamId) => void changeState(world, 'stream', streamId, { serverId: test.serverId }),
    ],
  ]
for (const [name, change] of GONE) {
  t.test(`receive: ${name}: nothing is received [inbound.recipient]`, async (t) => {
    const { world, tenant, streamId } = open()
    change(world, tenant, streamId)
    t.same(world.run(receive, makeReceive(world, tenant, { streamId })), { kind: 'refused', why: 'gone' })
    t.same(world.ops, [])
  })
}

t.test('receive: paused, pending and unpaid accounts receive [inbound.recipient]', async (t) => {
  for (const changes of [{ status: 'paused' }, { subscriptionActive: false }]) {
    const { world, tenant, streamId } = open()
    changeState(world, 'account', tenant.accountId, changes)
    t.equal(receiveMail(world, tenant, { streamId }).length, 1)
  }
})

t.test('receive: a sender that later gets mail is given its address then [inbound.search]', async (t) => {
  const { world, tenant, streamId } = open()
  receiveMail(world, tenant, { streamId })
  const { send, makeItem, makeRecipient } = await import('../../support/world/tenant.ts')
  send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient(SENDER)] })] })
  const persons = world.hash(firstPersonsKey(world.shard, tenant.accountId))
  t.equal(persons.get(hmacOf(SENDER)), withSum('1 202611'))
  t.equal(persons.get('1'), withSum(SENDER.toLowerCase()))
  receiveMail(world, tenant, { streamId })
  t.equal(persons.get(hmacOf(SENDER)), withSum('1 202611'), 'and keeps it')
})
