/**
 * replay-dead - what died in a stretch of time is queued again, oldest first, step by step, as far as there is room.
 */

import t from 'tap'
import { makeTrimBacklog } from '../../../src/actors/webhook/backlog.ts'
import { posted } from '../../../src/actors/webhook/posted.ts'
import { preparePost } from '../../../src/actors/webhook/prepare-post.ts'
import { type ReplayCursor, type ReplayDeadReply, replayDead } from '../../../src/actors/webhook/replay.ts'
import { webhookSweep } from '../../../src/actors/webhook/sweep.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { fire, queue, seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
/** Spec 17.11 */
const BACKLOG_MAX = 100_000
const STEPS_MAX = 20

function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { webhookId, serverId } = seedWebhook(world, tenant)
  return { world, webhookId, order: { accountId: tenant.accountId, serverId, keyHash: LIVE_KEY, webhookId } }
}

type Scene = ReturnType<typeof setUp>

/** Queues deliveries and ends them. Returns their ids, oldest first. */
function makeDead({ world, webhookId }: Scene, count: number): string[] {
  const ids = queue(world, webhookId, count)
  fire(world, makeTrimBacklog(0), `backlog:${webhookId}`)
  return ids
}

/** Replays to the end. Returns what every step queued. */
function replayAll({ world, order }: Scene, fromMs = 0, toMs: number | null = null): number[] {
  const steps: number[] = []
  let after: ReplayCursor | null = null
  do {
    const reply: ReplayDeadReply = world.run(replayDead, { ...order, fromMs, toMs, after }) as ReplayDeadReply
    steps.push(reply.queued)
    after = reply.next
  } while (after !== null && steps.length < STEPS_MAX)
  return steps
}

function idsOf({ world }: Scene): string[] {
  return waiting(world).map(({ deliveryId }) => deliveryId)
}

t.test('replay-dead: step after step until nothing is left [webhook.replay]', async (t) => {
  for (const [name, waitMs] of [
    ['fresh', 0],
    ['of a slice of which the dead alone are kept', 33 * DAY_MS],
  ] as const) {
    const scene = setUp()
    const ids = makeDead(scene, 650)
    scene.world.nowMs += waitMs
    fire(scene.world, webhookSweep, `webhook-sweep:${scene.webhookId}`)
    t.same(replayAll(scene).slice(0, 4), [200, 200, 200, 50], `${name}: all of one millisecond`)
    t.same(idsOf(scene), ids, name)
    t.match(scene.world.counters.get(`webhook:${scene.webhookId}`), { pending: 650 })
    t.same(
      replayAll(scene).filter((queued) => queued > 0),
      [],
      `${name}: what waits is not queued twice`,
    )
  }
})

t.test('replay-dead: a cursor moves along the slices, even after an empty step [webhook.replay]', async (t) => {
  const scene = setUp()
  const { world, webhookId } = scene
  const dead: string[] = []
  for (let day = 0; day < 45; day += 1) {
    if (day < 2 || day > 42) dead.push(...makeDead(scene, 1))
    else {
      queue(world, webhookId, 1)
      const [due] = world.deliveries()
      const claim = due && world.claim(preparePost, due)
      if (claim) world.end(posted, claim, { result: 'delivered', statusCode: 200, error: null, final: false })
    }
    world.nowMs += DAY_MS
  }
  t.same(replayAll(scene), [2, 0, 2])
  t.same(idsOf(scene).sort(), dead)
})

t.test('replay-dead: at or after the first instant, before the second [webhook.replay]', async (t) => {
  // Not before the start of the world: ids rise whatever the clock does.
  const firstMs = NOW_MS + 5000
  const times = [firstMs - 1, firstMs, firstMs + 999, firstMs + 1000]
  for (const [fromMs, toMs, expected] of [
    [firstMs, firstMs + 1000, [1, 2]],
    [0, null, [0, 1, 2, 3]],
    [firstMs + 1000, null, [3]],
    [0, firstMs, [0]],
    [firstMs, firstMs, []],
  ] as const) {
    const scene = setUp()
    const ids = times.map((ms) => {
      scene.world.nowMs = ms
      return makeDead(scene, 3)
    })
    t.same(replayAll(scene, fromMs, toMs), [3 * expected.length])
    t.same(
      idsOf(scene).sort(),
      expected.flatMap((place) => ids[place]),
    )
  }
})

t.test(
  'replay-dead: only as many as there is room for, the oldest first [webhook.replay, webhook.backlog]',
  async (t) => {
    for (const [room, steps] of [
      [250, [200, 50]],
      [200, [200]],
      [1, [1]],
      [0, [0]],
    ] as const) {
      const scene = setUp()
      const { world, webhookId } = scene
      const ids = makeDead(scene, 300)
      const counters = world.counters.get(`webhook:${webhookId}`) as object
      world.counters.set(`webhook:${webhookId}`, { ...counters, pending: BACKLOG_MAX - room })
      t.same(replayAll(scene), steps)
      t.same(idsOf(scene), ids.slice(0, room))
      t.match(world.counters.get(`webhook:${webhookId}`), { pending: BACKLOG_MAX })
    }
  },
)
