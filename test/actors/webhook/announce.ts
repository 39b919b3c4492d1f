/** announce - which webhooks get which events, in which order, and that accounts without webhooks pay nothing. */

import t from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { serverOwner } from '../../../src/state/server.ts'
import type { WebhookState } from '../../../src/state/webhook/webhook.ts'
import { acceptedIds, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const MINUTE_MS = 60_000
const ADA = {
  address: 'ada@example.net',
  streamId: '01a1f8d8-8300-7017-8000-0e7faee555a7',
  sizeBytes: 900,
  retryAfterMs: null,
  hmac: () => 'h'.repeat(22),
}
const OUTCOMES = {
  delivered: reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), ADA),
  deferred: reportOutcome(makeRefused({ phase: 'rcpt', response: '451 4.3.0 Try later' }), ADA),
  bounced: reportOutcome(makeRefused({ phase: 'rcpt', response: '550 5.1.1 Unknown' }), ADA),
}

function setUp() {
  const world = new World(NOW_MS)
  return { world, tenant: makeTenant(world) }
}

/** Claims the last item to attempt and ends it. */
function end(world: World, result: keyof typeof OUTCOMES): void {
  const due = world.deliveries().findLast(({ lane }) => !lane.startsWith('post/'))
  const claim = due === undefined ? null : world.claim(prepareAttempt, due)
  if (claim === null) throw new Error('Nothing is to be attempted')
  world.end(attemptOutcome, claim, OUTCOMES[result])
}

/** Sends a message and ends its attempt. */
function attempt(
  world: World,
  tenant: Tenant,
  result: keyof typeof OUTCOMES,
  changes: Parameters<typeof send>[2] = {},
) {
  const [messageId = ''] = acceptedIds(send(world, tenant, changes))
  end(world, result)
  return messageId
}

t.test('announce: without webhooks an event is logged, and nothing is read [event.announce]', async (t) => {
  const { world, tenant } = setUp()
  attempt(world, tenant, 'delivered')
  t.equal(world.rounds, 1)
  const writes = world.ops.map(({ key, write }) => `${write} ${key.split(':')[1]}`)
  t.same(writes, ['HSET status', 'ZADD event-slices', 'XADD events'])
  t.same(waiting(world), [])
  t.same(world.signals, [])
})

t.test('announce: each event of an attempt is queued once per webhook [event.announce]', async (t) => {
  const { world, tenant } = setUp()
  const first = seedWebhook(world, tenant)
  const second = seedWebhook(world, tenant)
  for (const result of ['delivered', 'deferred', 'bounced'] as const) {
    const messageId = attempt(world, tenant, result)
    const queued = waiting(world).slice(-2)
    t.same(queued.map(({ webhookId }) => webhookId).sort(), [first.webhookId, second.webhookId].sort())
    for (const { reference, atMs } of queued) {
      t.match(reference, { kind: 'message', event: result, messageId, recipient: 0, index: 0 })
      t.equal(atMs, world.nowMs)
    }
    world.nowMs += 1
  }
  t.same(world.counters.get(`webhook:${first.webhookId}`), { pending: 3, slice: { name: '20261121-0', deliveries: 3 } })
})

t.test('announce: later events of a recipient are announced by their place', async (t) => {
  const { world, tenant } = setUp()
  seedWebhook(world, tenant)
  attempt(world, tenant, 'deferred')
  world.nowMs += MINUTE_MS
  end(world, 'delivered')
  t.same(
    waiting(world).map(({ reference }) => [reference.event, reference.kind === 'message' && reference.index]),
    [
      ['deferred', 0],
      ['delivered', 1],
    ],
  )
})

/** changes of the webhook, event, whether it gets it */
const FILTERS: readonly [Partial<WebhookState>, keyof typeof OUTCOMES, boolean][] = [
  [{ events: ['bounced'] }, 'bounced', true],
  [{ events: ['bounced', 'inbound'] }, 'delivered', false],
  [{ enabled: false }, 'delivered', false],
  [{ streamId: 'own' }, 'delivered', true],
  [{ streamId: '01a1f8d8-8300-7017-8000-0e7faee555a7' }, 'delivered', false],
]

t.test('announce: filters of a webhook [webhook.filter]', async (t) => {
  for (const [changes, result, gets] of FILTERS) {
    const { world, tenant } = setUp()
    const own = changes.streamId === 'own' ? { streamId: tenant.live.streamId } : {}
    seedWebhook(world, tenant, { ...changes, ...own })
    attempt(world, tenant, result)
    t.equal(waiting(world).length, gets ? 1 : 0, JSON.stringify(changes))
  }
})

t.test('announce: a webhook gets events of its own server only', async (t) => {
  const { world, tenant } = setUp()
  seedWebhook(world, tenant, { test: true })
  attempt(world, tenant, 'delivered')
  t.same(waiting(world), [])
})

t.test('announce: deliveries are due in the order of their ids, whatever the clock does', async (t) => {
  const { world, tenant } = setUp()
  seedWebhook(world, tenant)
  const sent: string[] = []
  for (const step of [0, 5, -4_000, 0, 3, -1, 9_000]) {
    world.nowMs += step
    sent.push(attempt(world, tenant, 'delivered'))
  }
  t.same(
    waiting(world).map(({ reference }) => reference.kind === 'message' && reference.messageId),
    sent,
  )
})

t.test('announce: subscribers are notified by a signal without personal data', async (t) => {
  const { world, tenant } = setUp()
  const owner = serverOwner(tenant.live.serverId)
  world.counters.set(owner, { ...(world.counters.get(owner) as object), listenedUntilMs: NOW_MS + MINUTE_MS })
  attempt(world, tenant, 'delivered')
  t.match(world.signals, [{ topic: `events:${tenant.live.serverId}`, text: /^d\.202611-0-1\.[\w-]{22}\.0\.0$/ }])
  world.nowMs += MINUTE_MS
  attempt(world, tenant, 'delivered')
  t.same(world.signals, [])
})
