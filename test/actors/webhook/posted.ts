/** posted - the table of effects of an attempt's end on a delivery, and the schedule of its retries. */

import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { announceMessages } from '../../../src/actors/webhook/announce.ts'
import { makeTrimBacklog } from '../../../src/actors/webhook/backlog.ts'
import { type PostOutcome, posted } from '../../../src/actors/webhook/posted.ts'
import { type PostJob, preparePost } from '../../../src/actors/webhook/prepare-post.ts'
import { replay, replayDead } from '../../../src/actors/webhook/replay.ts'
import { switchWebhook } from '../../../src/actors/webhook/switch.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { deliveryKey } from '../../../src/state/keys.ts'
import { parseDeliveryItem } from '../../../src/state/webhook/item.ts'
import { webhookRef } from '../../../src/state/webhook/webhook.ts'
import { deliverAll, eraseNow, mailTo } from '../../support/world/erasure.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail, SENDER } from '../../support/world/inbound.ts'
import { LIVE_KEY, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { idOf, recordOf, seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const SCHEDULE_S = [30, 120, 600, 1800, 3600, 10_800, 21_600, 43_200]
const OK: PostOutcome = { result: 'delivered', statusCode: 204, error: null, final: false }
const BUSY: PostOutcome = { result: 'failed', statusCode: 503, error: 'http_503', final: false }
const PRIVATE: PostOutcome = { result: 'failed', statusCode: null, error: 'private_address', final: true }

/** A webhook with one delivery that waits. */
function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const webhook = seedWebhook(world, tenant)
  announce(world, webhook.serverId)
  const key = { accountId: tenant.accountId, serverId: webhook.serverId, keyHash: LIVE_KEY }
  return { world, webhook, key, order: { ...key, webhookId: webhook.webhookId } }
}

/** Queues one event of a message. */
function announce(world: World, serverId: string): void {
  const news = [
    { kind: 'message', event: 'bounced', segment: '202611-0-1', messageId: idOf(world), recipient: 0, index: 0 },
  ] as const
  world.run(
    {
      name: 'announce',
      entities: () => [{ kind: 'server', id: serverId }],
      counters: () => [`server:${serverId}`],
      facts: () => [],
      decide: (_body, states, facts, context) => {
        const told = announceMessages({ serverId, news }, { states, facts, context })
        return told.kind === 'need' ? told : { kind: 'done', reply: null, ...told.staged }
      },
    },
    null,
  )
}

/** Claims what is due first and ends it. */
function attempt(world: World, outcome: PostOutcome | null): number {
  const due = world.deliveries().find(({ lane, atMs }) => lane.startsWith('post/') && atMs <= world.nowMs)
  const claim = due === undefined ? null : world.claim(preparePost, due)
  if (claim === null) throw new Error('Nothing is due')
  world.end(posted, claim, outcome)
  return claim.job.attemptsBefore + claim.attempt
}

t.test('posted: a failed attempt is repeated by the schedule, then the delivery is dead [webhook.retry]', async (t) => {
  const { world, webhook } = setUp()
  const [{ deliveryId } = { deliveryId: '' }] = waiting(world)
  for (const [n, seconds] of SCHEDULE_S.entries()) {
    t.equal(attempt(world, BUSY), n + 1)
    t.match(recordOf(world, webhook, deliveryId), {
      status: 'pending',
      attempts: n + 1,
      lastStatusCode: 503,
      lastError: 'http_503',
      nextAttemptAtMs: world.nowMs + seconds * 1000,
    })
    t.same(
      waiting(world).map(({ atMs }) => atMs),
      [world.nowMs + seconds * 1000],
    )
    world.nowMs += seconds * 1000
  }
  t.equal(attempt(world, BUSY), 9)
  t.same(waiting(world), [])
  t.match(recordOf(world, webhook, deliveryId), { status: 'dead', attempts: 9, nextAttemptAtMs: null })
  t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 0 })
})

/** outcome, the status of the record afterwards, whether the delivery still waits */
const ENDS: readonly [string, PostOutcome | null, object, boolean][] = [
  ['a 2xx', OK, { status: 'delivered', deliveredAtMs: NOW_MS, lastStatusCode: 204, lastError: null }, false],
  ['a failure', BUSY, { status: 'pending', nextAttemptAtMs: NOW_MS + 30_000 }, true],
  ['a private address', PRIVATE, { status: 'dead', lastError: 'private_address', attempts: 1 }, false],
  ['five claims without an outcome', null, { status: 'dead', lastError: 'timeout' }, false],
]

t.test('posted: ends of a first attempt [webhook.delivery]', async (t) => {
  for (const [name, outcome, record, waits] of ENDS) {
    const { world, webhook } = setUp()
    const [{ deliveryId } = { deliveryId: '' }] = waiting(world)
    attempt(world, outcome)
    t.match(recordOf(world, webhook, deliveryId), record, name)
    t.equal(waiting(world).length, waits ? 1 : 0, name)
  }
})

t.test('posted: a replay continues the count, and restarts the schedule [webhook.replay]', async (t) => {
  const { world, webhook, order } = setUp()
  const [{ deliveryId } = { deliveryId: '' }] = waiting(world)
  attempt(world, BUSY)
  world.nowMs += 30_000
  attempt(world, BUSY)
  t.match(world.run(replay, { ...order, deliveryId }), { kind: 'queued', record: { status: 'pending', attempts: 2 } })
  t.equal(attempt(world, BUSY), 3, 'one that waits is due at once')
  t.match(recordOf(world, webhook, deliveryId), { nextAttemptAtMs: world.nowMs + 30_000 })
  world.nowMs += 30_000
  attempt(world, PRIVATE)
  for (const outcome of [OK, OK]) {
    const before = recordOf(world, webhook, deliveryId).attempts
    world.run(replay, { ...order, deliveryId })
    t.equal(attempt(world, outcome), before + 1)
  }
  t.match(recordOf(world, webhook, deliveryId), { status: 'delivered', attempts: 6 })
  t.match(world.run(replay, { ...order, deliveryId: idOf(world) }), { kind: 'refused', code: 'not_found' })
})

type Scene = ReturnType<typeof setUp>

/** Claims what waits, whenever it is due, and leaves it under way. */
function begin({ world }: Scene) {
  const due = world.deliveries().find(({ lane }) => lane.startsWith('post/'))
  return due === undefined ? null : world.claim(preparePost, due)
}

function turn({ world, order }: Scene, enabled: boolean): void {
  world.run(switchWebhook, { ...order, enabled })
  world.nowMs += 1
}

/** The course of a delivery before its replay, the attempts begun by then, and the count and status of its record. */
const BEFORE_REPLAY: readonly [string, (scene: Scene) => void, number, object][] = [
  [
    'switched off while it is attempted',
    (scene) => {
      const claim = begin(scene)
      turn(scene, false)
      scene.world.fireTimers()
      if (claim !== null) scene.world.end(posted, claim, BUSY)
      turn(scene, true)
    },
    1,
    { status: 'dead', attempts: 1, lastError: 'webhook_disabled' },
  ],
  [
    'switched off after two claims without an outcome, ended by the next',
    (scene) => {
      begin(scene)
      begin(scene)
      turn(scene, false)
      begin(scene)
      turn(scene, true)
    },
    2,
    { status: 'dead', attempts: 2 },
  ],
  [
    'too many waited while it was attempted',
    (scene) => {
      attempt(scene.world, BUSY)
      begin(scene)
      scene.world.run(makeTrimBacklog(0), { item: `backlog:${scene.webhook.webhookId}` })
    },
    2,
    { status: 'dead', attempts: 2, lastError: 'backlog_full' },
  ],
  [
    'an earlier attempt succeeds while the next is made',
    (scene) => {
      const first = begin(scene)
      begin(scene)
      if (first !== null) scene.world.end(posted, first, OK)
    },
    2,
    { status: 'delivered', attempts: 2 },
  ],
  [
    'off and on before anybody came to write it down',
    (scene) => {
      attempt(scene.world, BUSY)
      scene.world.nowMs += 30_000
      attempt(scene.world, BUSY)
      turn(scene, false)
      turn(scene, true)
    },
    2,
    { status: 'pending', attempts: 2 },
  ],
]

t.test('posted: after a replay the next attempt is one above all that were begun [webhook.replay]', async (t) => {
  for (const [name, run, begun, record] of BEFORE_REPLAY)
    for (const isAll of [false, true]) {
      const scene = setUp()
      const { world, webhook, order } = scene
      const [{ deliveryId } = { deliveryId: '' }] = waiting(world)
      run(scene)
      t.match(recordOf(world, webhook, deliveryId), record, name)
      if (isAll && recordOf(world, webhook, deliveryId).status === 'dead')
        world.run(replayDead, { ...order, fromMs: 0, toMs: null, after: null })
      else world.run(replay, { ...order, deliveryId })
      world.fireTimers()
      t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 1 }, name)
      t.equal(attempt(world, BUSY), begun + 1, name)
      t.match(recordOf(world, webhook, deliveryId), {
        attempts: begun + 1,
        nextAttemptAtMs: world.nowMs + 30_000,
      })
      world.nowMs += 30_000
      t.equal(attempt(world, OK), begun + 2, name)
      world.run(replay, { ...order, deliveryId })
      t.equal(attempt(world, OK), begun + 3, name)
    }
})

t.test('posted: an attempt that is not the latest counts only when it was a success', async (t) => {
  const { world, webhook } = setUp()
  const [one] = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
  const first = one && world.claim(preparePost, one)
  const second = one && world.claim(preparePost, one)
  if (!first || !second) throw new Error('Nothing is due')
  const { deliveryId } = second.job.delivery
  world.end(posted, first, BUSY)
  t.match(recordOf(world, webhook, deliveryId), { status: 'pending', attempts: 0 })
  world.end(posted, first, OK)
  t.match(recordOf(world, webhook, deliveryId), { status: 'delivered' })
  world.end(posted, second, BUSY)
  t.match(recordOf(world, webhook, deliveryId), { status: 'delivered' })
})

t.test('posted: a switch-off ends pending deliveries, and nothing else [webhook.states]', async (t) => {
  const { world, webhook, order } = setUp()
  const [{ deliveryId: before } = { deliveryId: '' }] = waiting(world)
  world.run(switchWebhook, { ...order, enabled: false })
  world.run(switchWebhook, { ...order, enabled: true })
  announce(world, webhook.serverId)
  const [, { deliveryId: after } = { deliveryId: '' }] = waiting(world)
  world.fireTimers()
  t.match(recordOf(world, webhook, before), { status: 'dead', lastError: 'webhook_disabled' })
  t.same(
    waiting(world).map(({ deliveryId }) => deliveryId),
    [after],
    'whatever the clock says',
  )
  t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 1 })
  attempt(world, OK)
  t.match(recordOf(world, webhook, after), { status: 'delivered' })
})

t.test('posted: a switch-off ends the other deliveries if the row of one is damaged', async (t) => {
  const { world, webhook, order } = setUp()
  announce(world, webhook.serverId)
  const [damaged, other] = waiting(world).map(({ deliveryId }) => deliveryId) as [string, string]
  const { slice } = parseDeliveryItem(world.deliveries().find(({ lane }) => lane.startsWith('post/'))?.item ?? '')
  const key = deliveryKey(world.shard, webhook.webhookId, slice)
  world.apply({ key, write: 'HSET', args: [shortId(damaged), '["p",1]~~AAAAAA'] })
  world.run(switchWebhook, { ...order, enabled: false })
  world.fireTimers()
  t.match(recordOf(world, webhook, other), { status: 'dead', lastError: 'webhook_disabled' })
})

t.test('posted: a delivery queued before a switch-off is not attempted, in any order of events', async (t) => {
  const { world, webhook, order } = setUp()
  const [due] = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
  const [{ deliveryId } = { deliveryId: '' }] = waiting(world)
  world.run(switchWebhook, { ...order, enabled: false })
  t.equal(due && world.claim(preparePost, due), null)
  t.match(recordOf(world, webhook, deliveryId), { status: 'dead', lastError: 'webhook_disabled' })
  t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 0 })
})

t.test('posted: an attempt under way at a switch-off counts when it succeeds', async (t) => {
  for (const [outcome, status] of [
    [OK, 'delivered'],
    [BUSY, 'dead'],
  ] as const) {
    const { world, webhook, order } = setUp()
    const [due] = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
    const claim = due && world.claim(preparePost, due)
    if (!claim) throw new Error('Nothing is due')
    world.run(switchWebhook, { ...order, enabled: false })
    world.fireTimers()
    world.end(posted, claim, outcome)
    t.equal(recordOf(world, webhook, claim.job.delivery.deliveryId).status, status)
    t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 0 })
  }
})

t.test('posted: for a removed webhook nothing is attempted or written', async (t) => {
  const { world, webhook } = setUp()
  const [due] = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
  world.seedState(webhookRef(webhook.webhookId), { ...webhook, removedAtMs: world.nowMs })
  t.equal(due && world.claim(preparePost, due), null)
  t.same(world.ops, [])
})

t.test('posted: for a message past its age nothing is posted [retention.delivery]', async (t) => {
  const { world, webhook } = setUp()
  const [due] = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
  t.equal(msOf(waiting(world)[0]?.deliveryId ?? ''), NOW_MS)
  world.nowMs = Date.UTC(2027, 11, 22)
  t.equal(due && world.claim(preparePost, due), null)
  t.match(world.counters.get(`webhook:${webhook.webhookId}`), { pending: 0 })
})

t.test(
  'posted: a receiver’s response about mail that is erased meanwhile is not kept [erasure.messages] [erasure.received]',
  async (t) => {
    for (const outcome of [OK, BUSY, { ...PRIVATE, statusCode: 410, error: 'http_410' } as const]) {
      const world = new World(NOW_MS)
      const tenant = makeTenant(world)
      const webhook = seedWebhook(world, tenant)
      const streamId = makeInboundStream(world, tenant)
      for (const address of [SENDER, 'bob@example.org']) send(world, tenant, { messages: [mailTo(address)] })
      deliverAll(world, makeDelivered(250, '250 Ok'))
      receiveMail(world, tenant, { streamId })
      parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
      const posts = world.deliveries().filter(({ lane }) => lane.startsWith('post/'))
      const claims = posts.flatMap((due) => world.claim<PostJob>(preparePost, due) ?? [])
      t.equal(claims.length, 3)
      eraseNow(world, tenant, SENDER)
      for (const claim of claims) world.end(posted, claim, { ...outcome, response: 'Ada is no customer' })
      t.same(
        claims.map(({ job }) => recordOf(world, webhook, job.delivery.deliveryId).lastResponse),
        [null, 'Ada is no customer', null],
        outcome.result,
      )
    }
  },
)
