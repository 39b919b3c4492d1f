/** cap - a warning once a month at 80 percent, an event when it is reached, and both again after it was raised. */

import t from 'tap'
import { accountOwner } from '../../../src/state/account.ts'
import { changeState, makeItem, makeRecipient, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const NEXT_MONTH = Date.UTC(2026, 11, 3)

function setUp(caps: { monthlyCap?: number; testMonthlyCap?: number }) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { perMinuteLimit: 1_000_000, testPerMinuteLimit: 1_000_000, ...caps })
  return { world, tenant }
}

/** Sends to `count` recipients in one message. */
function sendTo(world: World, tenant: Tenant, count: number, test = false) {
  const recipients = Array.from({ length: count }, (_, n) => makeRecipient(`r${n}@example.net`))
  return send(world, tenant, { test, messages: [makeItem({ recipients, ...(test && { lane: 'simulate' }) })] })
}

/** Events of caps that were queued so far, and who got them. */
function told(world: World) {
  return waiting(world).flatMap(({ reference, webhookId }) =>
    reference.kind === 'cap' ? [{ ...reference, webhookId }] : [],
  )
}

t.test('cap: warned at the send that reaches 80 percent, once a month [event.cap]', async (t) => {
  const { world, tenant } = setUp({ monthlyCap: 10 })
  const { webhookId } = seedWebhook(world, tenant)
  sendTo(world, tenant, 7)
  t.same(told(world), [])
  sendTo(world, tenant, 1)
  const warning = { kind: 'cap', event: 'cap_warning', scope: 'account', cap: 10, used: 8, occurredAtMs: NOW_MS }
  t.same(told(world), [{ ...warning, webhookId }])
  sendTo(world, tenant, 1)
  changeState(world, 'account', tenant.accountId, { monthlyCap: 11 })
  sendTo(world, tenant, 1)
  t.equal(told(world).length, 1, 'no second one, raised or not')
  world.nowMs = NEXT_MONTH
  sendTo(world, tenant, 9)
  t.match(told(world)[1], { event: 'cap_warning', used: 9, cap: 11, occurredAtMs: NEXT_MONTH })
})

t.test('cap: a refusal is announced once per cap and month, and again after it was raised [event.cap]', async (t) => {
  const { world, tenant } = setUp({ monthlyCap: 4 })
  seedWebhook(world, tenant)
  sendTo(world, tenant, 3)
  for (let n = 0; n < 5; n += 1) t.match(sendTo(world, tenant, 2), { kind: 'refused', code: 'cap_reached' })
  const reached = () => told(world).filter(({ event }) => event === 'cap_reached')
  t.match(reached(), [{ scope: 'account', cap: 4, used: 3 }])
  t.same(world.ops, [], 'later refusals write nothing')
  changeState(world, 'account', tenant.accountId, { monthlyCap: 5 })
  sendTo(world, tenant, 2)
  sendTo(world, tenant, 1)
  sendTo(world, tenant, 1)
  t.match(reached(), [{ cap: 4 }, { cap: 5, used: 5 }])
  changeState(world, 'account', tenant.accountId, { monthlyCap: 3 })
  sendTo(world, tenant, 1)
  t.equal(reached().length, 2, 'lowered is not raised')
  world.nowMs = NEXT_MONTH
  sendTo(world, tenant, 4)
  t.match(reached()[2], { cap: 3, used: 0 })
})

t.test(
  'cap: the webhooks that get the event, by scope; filters of streams do not apply [event.cap, webhook.filter]',
  async (t) => {
    const { world, tenant } = setUp({ monthlyCap: 2, testMonthlyCap: 2 })
    const live = seedWebhook(world, tenant, {
      streamId: '01a1f8d8-8300-7017-8000-0e7faee555a7',
      events: ['cap_reached'],
    })
    const test = seedWebhook(world, tenant, { test: true })
    seedWebhook(world, tenant, { enabled: false })
    sendTo(world, tenant, 3)
    t.match(told(world), [{ webhookId: live.webhookId, scope: 'account' }])
    sendTo(world, tenant, 2, true)
    sendTo(world, tenant, 1, true)
    t.match(told(world).slice(1), [
      { webhookId: test.webhookId, scope: 'test', event: 'cap_warning' },
      { webhookId: test.webhookId, scope: 'test', event: 'cap_reached' },
    ])
  },
)

t.test('cap: if account and server refuse, both are announced', async (t) => {
  const { world, tenant } = setUp({ monthlyCap: 2 })
  changeState(world, 'server', tenant.live.serverId, { monthlyCap: 2 })
  seedWebhook(world, tenant)
  t.match(sendTo(world, tenant, 3), { code: 'cap_reached', extra: { scope: 'server' } })
  t.same(
    told(world).map(({ scope }) => scope),
    ['account', 'server'],
  )
  t.equal(told(world).length, 2)
})

t.test('cap: without webhooks nothing is announced, but it is stored all the same', async (t) => {
  const { world, tenant } = setUp({ monthlyCap: 1 })
  sendTo(world, tenant, 2)
  const logged = world.ops.filter(({ write }) => write === 'XADD')
  t.match(logged, [
    { key: `{s023}:events:${tenant.live.serverId}:202611-0`, args: [/^\d+-\d+$/, 'r', /^r\.a\.1\.0\./] },
  ])
  t.match(world.signals, [{ topic: `events:${tenant.accountId}:live` }])
  t.match(world.counters.get(accountOwner(tenant.accountId)), { monthTold: [24322, 0, 1] })
  sendTo(world, tenant, 1)
  t.match(world.counters.get(accountOwner(tenant.accountId)), { monthTold: [24322, 1, 1], month: [24322, 1] })
})

t.test('cap: a clock that is set back a month and returns announces nothing twice', async (t) => {
  const { world, tenant } = setUp({ monthlyCap: 1 })
  seedWebhook(world, tenant)
  world.nowMs = NEXT_MONTH
  sendTo(world, tenant, 2)
  world.nowMs = NOW_MS
  sendTo(world, tenant, 2)
  world.nowMs = NEXT_MONTH
  sendTo(world, tenant, 2)
  t.equal(told(world).length, 1)
})
