/** backlog - the oldest pending deliveries are ended, exactly as many as exceed the bound, across slices. */

import t from 'tap'
import { makeTrimBacklog } from '../../../src/actors/webhook/backlog.ts'
import { replay, replayDead } from '../../../src/actors/webhook/replay.ts'
import { webhookSweep } from '../../../src/actors/webhook/sweep.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { fire, idOf, queue, recordOf, seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
const PENDING_MAX = 250

function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const webhook = seedWebhook(world, tenant)
  const { webhookId, serverId } = webhook
  const order = { accountId: tenant.accountId, serverId, keyHash: LIVE_KEY, webhookId }
  return { world, webhook, order }
}

t.test('webhook backlog: the oldest are dead, the rest waits [webhook.backlog]', async (t) => {
  const { world, webhook } = setUp()
  const { webhookId } = webhook
  const old = queue(world, webhookId, 220)
  world.nowMs += DAY_MS
  const all = [...old, ...queue(world, webhookId, 450)]
  const trim = makeTrimBacklog(PENDING_MAX)
  fire(world, trim, `backlog:${webhookId}`)
  const excess = all.length - PENDING_MAX
  t.same(
    waiting(world).map(({ deliveryId }) => deliveryId),
    all.slice(excess),
  )
  t.match(world.counters.get(`webhook:${webhookId}`), { pending: PENDING_MAX })
  for (const id of [all[0], all[219], all[220], all[excess - 1]])
    t.match(recordOf(world, webhook, id ?? ''), { status: 'dead', lastError: 'backlog_full' })
  t.equal(recordOf(world, webhook, all[excess] ?? '').status, 'pending')
  const more = queue(world, webhookId, 3)
  fire(world, trim, `backlog:${webhookId}`)
  t.equal(waiting(world).length, PENDING_MAX)
  t.equal(waiting(world).at(-1)?.deliveryId, more.at(-1))
  fire(world, trim, `backlog:${webhookId}`)
  t.same(world.ops, [], 'nothing is too many')
})

/** The delivery to replay, and how long after its death. */
const REPLAYS: readonly [string, number][] = [
  ['at once', 0],
  ['on a later day', 2 * DAY_MS],
  ['from a slice of which the dead alone are kept', 33 * DAY_MS],
]

t.test('webhook backlog: a replayed delivery is older than later ones [webhook.backlog]', async (t) => {
  for (const [name, waitMs] of REPLAYS) {
    const { world, webhook, order } = setUp()
    const { webhookId } = webhook
    const trim = makeTrimBacklog(10)
    const old = queue(world, webhookId, 30)
    fire(world, trim, `backlog:${webhookId}`)
    world.nowMs += waitMs
    fire(world, webhookSweep, `webhook-sweep:${webhookId}`)
    const later = queue(world, webhookId, 10)
    fire(world, trim, `backlog:${webhookId}`)
    t.same(idsOf(world), later, `${name}: all that is older is dead`)
    world.run(replay, { ...order, deliveryId: old[7] ?? '' })
    fire(world, trim, `backlog:${webhookId}`)
    t.same(idsOf(world), later, `${name}: one that is replayed is the oldest`)
    t.match(recordOf(world, webhook, old[7] ?? ''), { status: 'dead', lastError: 'backlog_full' })
    world.run(replayDead, { ...order, fromMs: 0, toMs: null, after: null })
    t.equal(idsOf(world).length, 40, name)
    const newest = queue(world, webhookId, 5)
    fire(world, trim, `backlog:${webhookId}`)
    t.same(idsOf(world), [...later.slice(5), ...newest], `${name}: nothing dies at its birth`)
    t.match(world.counters.get(`webhook:${webhookId}`), { pending: 10 })
  }
})

function idsOf(world: World): string[] {
  return waiting(world)
    .map(({ deliveryId }) => deliveryId)
    .sort()
}

t.test(
  'webhook backlog: of an old slice the dead deliveries stay, of one past its age nothing [retention.delivery]',
  async (t) => {
    const { world, webhook } = setUp()
    const { webhookId } = webhook
    const ids = queue(world, webhookId, 410)
    fire(world, makeTrimBacklog(400), `backlog:${webhookId}`)
    for (const { deliveryId } of waiting(world)) {
      const key = `{s023}:delivery:${webhookId}:20261121-0`
      const short = Buffer.from(deliveryId.replaceAll('-', ''), 'hex').toString('base64url')
      world.apply({ key, write: 'HSET', args: [short, '["v",1,200,5]'] })
    }
    const kept = () =>
      world.keyNames().filter((key) => key.includes(webhookId) && /:(queue|delivery|dead|slices):/.test(key))
    fire(world, webhookSweep, `webhook-sweep:${webhookId}`)
    t.equal(world.stream(`{s023}:queue:${webhookId}:20261121-0`).length, ids.length, 'nothing is old')
    world.nowMs += 31 * DAY_MS
    fire(world, webhookSweep, `webhook-sweep:${webhookId}`)
    t.equal(world.stream(`{s023}:queue:${webhookId}:20261121-0`).length, 0)
    t.equal(world.hash(`{s023}:delivery:${webhookId}:20261121-0`).size, 10, 'the dead')
    t.equal(world.sorted(`{s023}:dead:${webhookId}:20261121-0`).size, 10)
    world.nowMs = Date.UTC(2028, 0, 1)
    fire(world, webhookSweep, `webhook-sweep:${webhookId}`)
    t.same(kept(), [])
    t.ok(idOf(world) > (ids[0] ?? ''))
  },
)
