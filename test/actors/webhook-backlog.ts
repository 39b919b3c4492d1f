/** webhook-backlog - the oldest that wait are ended, and no more than are too many, over slices. */

import t from 'tap'
import { Queue } from '../../src/actors/announce.ts'
import { makeTrimBacklog } from '../../src/actors/webhook-backlog.ts'
import { webhookSweep } from '../../src/actors/webhook-sweep.ts'
import { makeTenant } from '../support/tenant.ts'
import { World } from '../support/turn.ts'
import { idOf, recordOf, seedWebhook, waiting } from '../support/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
const PENDING_MAX = 250

function setUp() {
  const world = new World(NOW_MS)
  const webhook = seedWebhook(world, makeTenant(world))
  return { world, webhook }
}

/** Queues examples. Out: their ids, oldest first. */
function queue(world: World, webhookId: string, count: number): string[] {
  return Array.from({ length: count }, () =>
    world.run(
      {
        name: 'queue',
        entities: () => [],
        counters: () => [`webhook:${webhookId}`],
        facts: () => [],
        decide: (_body, states, facts, context) => {
          const one = new Queue({ states, facts, context })
          const { deliveryId } = one.add(webhookId, { kind: 'example', event: 'bounced', madeUpId: context.newId() })
          return { kind: 'done', reply: deliveryId, ...one.staged() }
        },
      },
      null,
    ),
  )
}

/** Fires a timer of the webhook until it is due no more. */
function fire(world: World, type: ReturnType<typeof makeTrimBacklog>, item: string): void {
  for (let steps = 0; steps < 100; steps += 1) {
    world.items.delete(`timers ${item}`)
    world.run(type, { item })
    const again = world.items.get(`timers ${item}`)
    if (again === undefined || again.atMs > world.nowMs) return
  }
  throw new Error('The timer is due without end')
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

t.test(
  'webhook backlog: of an old slice the dead stay, of one past its age nothing [retention.delivery]',
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
