/**
 * send-at-simulation - scheduled broadcasts of many seeds: never released early, no message twice, none lost
 *
 * The clock stands still, jumps ahead and goes back, as after a kill, in a takeover and by a correction. Timers fire
 * before their time, and again after a commit with an unknown outcome. Meanwhile broadcasts are paused, resumed and
 * cancelled.
 */
import t from 'tap'
import { beginBroadcast, beginDue } from '../../../src/actors/broadcast/begin-broadcast.ts'
import { createBroadcast } from '../../../src/actors/broadcast/create-broadcast.ts'
import { orderBroadcast } from '../../../src/actors/broadcast/order-broadcast.ts'
import type { BroadcastState } from '../../../src/state/broadcast/broadcast.ts'
import { type Chance, makeChance } from '../../simulation/prng.ts'
import {
  logged,
  makeBroadcastStream,
  pass,
  people,
  prepare,
  releasedTo,
  seen,
} from '../../support/world/broadcast-world.ts'
import { LIVE_KEY, makeTenant, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const MINUTE_MS = 60_000
const SEEDS = 15
const STEPS = 60
const ORDERS = ['pause', 'resume', 'resume', 'cancel'] as const

class Run {
  readonly world = new World(NOW_MS)
  readonly tenant: Tenant = makeTenant(this.world)
  readonly made: BroadcastState[] = []
  readonly violations: string[] = []
  readonly #chance: Chance
  #released = new Map<string, number>()

  constructor(seed: number) {
    this.#chance = makeChance(seed)
    makeBroadcastStream(this.world, this.tenant, { pacePerMinute: this.#chance.pick([600, 6_000, 60_000]) })
  }

  step(): void {
    const { world } = this
    const chance = this.#chance
    const draw = chance.below(10)
    if (draw < 2) this.#submit()
    else if (draw < 4) this.#order(chance.pick(ORDERS))
    else if (draw < 5) this.#fireAgain()
    // No process runs.
    else if (draw < 6) world.nowMs += chance.below(20 * MINUTE_MS)
    else if (draw < 7) world.nowMs -= chance.below(5_000)
    else for (let n = chance.below(40); n > 0; n -= 1) this.#pass(1 + chance.below(20_000))
    this.#pass(1)
  }

  /** Resumes all, waits for their ends, and checks that each message was released once or was counted as failed. */
  end(): void {
    const { world, tenant } = this
    for (const { broadcastId } of this.made) this.#run(broadcastId, 'resume')
    for (let n = 0; n < 24; n += 1) this.#pass(10 * MINUTE_MS)
    pass(world, 10 * MINUTE_MS, 1_000)
    let all = 0
    for (const { broadcastId, total } of this.made) {
      const { status, released, failed } = seen(world, broadcastId)
      all += released
      if (status === 'completed' ? released !== total : status !== 'cancelled' || released + failed !== total)
        this.violations.push(`${broadcastId} lost: ${status}, ${released} released and ${failed} failed of ${total}`)
    }
    const to = releasedTo(world)
    if (new Set(to).size !== to.length) this.violations.push(`${to.length - new Set(to).size} twice`)
    if (to.length !== all || logged(world, tenant) !== all)
      this.violations.push(`${all} released, ${to.length} items, ${logged(world, tenant)} in the log`)
  }

  #submit(): void {
    const { world, tenant, made } = this
    const chance = this.#chance
    if (made.length === 12) return
    const to = people(1 + chance.below(120), `b${made.length}-`)
    const at = chance.hit(0.8) ? { sendAtMs: world.nowMs - 30_000 + chance.below(40 * MINUTE_MS) } : {}
    const reply = world.run(createBroadcast, { ...prepare(world, tenant, to), ...at })
    if (reply.kind !== 'broadcast') throw new Error(`Broadcast was refused: ${reply.code}`)
    made.push(reply.broadcast)
  }

  #order(order: (typeof ORDERS)[number]): void {
    if (this.made.length > 0) this.#run(this.#chance.pick(this.made).broadcastId, order)
  }

  #run(broadcastId: string, order: (typeof ORDERS)[number]): void {
    const { accountId, live } = this.tenant
    this.world.run(orderBroadcast, { accountId, serverId: live.serverId, keyHash: LIVE_KEY, broadcastId, order })
  }

  #fireAgain(): void {
    if (this.made.length === 0) return
    const { lane, item } = beginDue(this.#chance.pick(this.made))
    this.world.items.delete(`${lane} ${item}`)
    this.world.run(beginBroadcast, { item })
  }

  #pass(ms: number): void {
    const { world } = this
    world.nowMs += ms
    world.fireTimers()
    for (const { broadcastId, sendAtMs = 0 } of this.made) {
      const { released, progress } = seen(world, broadcastId)
      const now = Math.max(released, progress?.released ?? 0)
      if (now > (this.#released.get(broadcastId) ?? 0) && world.nowMs < sendAtMs)
        this.violations.push(`${broadcastId} released ${sendAtMs - world.nowMs} ms early`)
      this.#released.set(broadcastId, now)
    }
  }
}

t.test('send at: never early, never twice, never lost [broadcast.at, broadcast.release]', async (t) => {
  let scheduled = 0
  let cancelled = 0
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const run = new Run(seed)
    for (let n = 0; n < STEPS; n += 1) run.step()
    run.end()
    t.same(run.violations, [], `seed ${seed}`)
    scheduled += run.made.filter(({ sendAtMs }) => sendAtMs !== undefined).length
    cancelled += run.made.filter(({ broadcastId }) => seen(run.world, broadcastId).status === 'cancelled').length
  }
  t.ok(scheduled > 60 && cancelled > 5, `${scheduled} scheduled, ${cancelled} cancelled`)
})
