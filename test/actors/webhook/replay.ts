/**
 * replay - a full backlog is trimmed by every kind of queueing; one delivery out of many of a millisecond is found.
 */

import t from 'tap'
import { announceCaps } from '../../../src/actors/webhook/announce.ts'
import { makeTrimBacklog } from '../../../src/actors/webhook/backlog.ts'
import { example, replay } from '../../../src/actors/webhook/replay.ts'
import { webhookSweep } from '../../../src/actors/webhook/sweep.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { fire, queue, recordOf, seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
/** Spec 17.11 */
const BACKLOG_MAX = 100_000

function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const webhook = seedWebhook(world, tenant)
  const { webhookId, serverId } = webhook
  return { world, webhook, order: { accountId: tenant.accountId, serverId, keyHash: LIVE_KEY, webhookId } }
}

type Scene = ReturnType<typeof setUp>

/** The ways to queue a delivery. In: a dead one. */
const QUEUERS: readonly [string, (scene: Scene, deadId: string) => unknown][] = [
  ['an example', ({ world, order }) => world.run(example, { ...order, event: 'bounced' })],
  ['a replay', ({ world, order }, deliveryId) => world.run(replay, { ...order, deliveryId })],
  ['an event', ({ world, webhook }) => announceCap(world, webhook.serverId)],
]

function announceCap(world: World, serverId: string): void {
  const reference = {
    kind: 'cap',
    event: 'cap_reached',
    scope: 'server',
    cap: 1,
    used: 1,
    occurredAtMs: world.nowMs,
  } as const
  world.run(
    {
      name: 'announce',
      entities: () => [],
      counters: () => [],
      facts: () => [],
      decide: (_body, states, facts, context) => {
        const news = [{ reference, serverIds: [serverId], senderId: serverId, topic: 'events' }]
        const told = announceCaps(news, { states, facts, context })
        return told.kind === 'need' ? told : { kind: 'done', reply: null, ...told.staged }
      },
    },
    null,
  )
}

t.test(
  'replay: above 100,000 pending deliveries the oldest is dead, whatever queues the new one [webhook.backlog]',
  async (t) => {
    for (const [name, enqueue] of QUEUERS)
      for (const [pending, trimmed] of [
        [BACKLOG_MAX - 1, 0],
        [BACKLOG_MAX, 1],
      ] as const) {
        const scene = setUp()
        const { world, webhook } = scene
        const owner = `webhook:${webhook.webhookId}`
        const [deadId = ''] = queue(world, webhook.webhookId, 1)
        fire(world, makeTrimBacklog(0), `backlog:${webhook.webhookId}`)
        world.nowMs += 1
        const [oldest = ''] = queue(world, webhook.webhookId, 2)
        world.counters.set(owner, { ...(world.counters.get(owner) as object), pending })
        enqueue(scene, deadId)
        world.fireTimers()
        t.match(world.counters.get(owner), { pending: BACKLOG_MAX }, name)
        t.equal(waiting(world).length, 3 - trimmed, name)
        const first = name === 'a replay' ? deadId : oldest
        t.equal(recordOf(world, webhook, first).status, trimmed ? 'dead' : 'pending', name)
      }
  },
)

t.test('replay: each of thousands of one millisecond is found among the dead [webhook.replay]', async (t) => {
  const { world, webhook, order } = setUp()
  const ids = queue(world, webhook.webhookId, 1_500)
  fire(world, makeTrimBacklog(0), `backlog:${webhook.webhookId}`)
  world.nowMs += 33 * DAY_MS
  fire(world, webhookSweep, `webhook-sweep:${webhook.webhookId}`)
  for (const deliveryId of [ids[0], ids[1_100], ids[1_499]])
    t.match(world.run(replay, { ...order, deliveryId: deliveryId ?? '' }), { kind: 'queued' })
})
