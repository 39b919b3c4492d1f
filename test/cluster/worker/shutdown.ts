/** Tests of cluster/worker/shutdown.ts. */
import { test } from 'tap'
import type { LaneType } from '../../../cluster/behaviour.ts'
import { type Claim, LaneRunner, LOST_CLAIM } from '../../../cluster/items/lane-runner.ts'
import type { Holdings } from '../../../cluster/worker/holdings.ts'
import { OutcomeSender } from '../../../cluster/worker/outcome-sender.ts'
import { Shutdown } from '../../../cluster/worker/shutdown.ts'

const CLAIM = { lane: 'deliver/a', item: 'i', attempt: 1, job: null } as unknown as Claim

/**
 * A worker that is cut off by a clock that runs ahead: its attempt ends, and outcomes are accepted, from the given
 * times on.
 */
function cutOff({ endsAtMs, takenFromMs }: { endsAtMs: number; takenFromMs: number }) {
  const world = { nowMs: 0, cut: [] as unknown[], takenFromMs, taken: 0, hasClosed: false }
  const clock = {
    nowMs: () => world.nowMs,
    monotonicMs: () => world.nowMs,
    set: () => undefined,
    after(ms: number, call: () => void) {
      setImmediate(() => {
        world.nowMs += ms / 2
        setImmediate(call)
      })
      return () => undefined
    },
  }
  const ended = async (_: unknown, { signal }: { signal: AbortSignal }): Promise<unknown> => {
    signal.addEventListener('abort', () => world.cut.push(signal.reason))
    while (world.nowMs < endsAtMs) await new Promise(setImmediate)
    return { kind: 'delivered' }
  }
  const lane = { prefix: 'deliver', room: () => 1, perform: ended } as unknown as LaneType
  const runner = new LaneRunner([lane], { failed: () => undefined })
  const handIn = async (): Promise<boolean> => {
    const isTaken = world.nowMs >= world.takenFromMs
    if (isTaken) world.taken += 1
    return isTaken
  }
  const sender = new OutcomeSender({ store: { handIn } as never, clock, random: Math.random })
  runner.start(CLAIM, { shard: 1, report: (claim, outcome) => void sender.send(1, claim, outcome) })
  const close = async (): Promise<void> => {
    world.hasClosed = true
  }
  const holdings = { shards: new Map(), close } as unknown as Holdings
  return { world, runner, shutdown: new Shutdown({ clock, runner, holdings, sender }) }
}

test('shutdown: who gives up goes when the store knows how its attempts ended, and takes nothing meanwhile', async (t) => {
  const { world, runner, shutdown } = cutOff({ endsAtMs: 3_000, takenFromMs: 40_000 })
  await shutdown.giveUp()
  t.equal(world.taken, 1)
  t.ok(world.nowMs >= 40_000 && world.nowMs < 60_000, String(world.nowMs))
  t.same([world.hasClosed, runner.room('deliver/a')], [true, 0])
  t.same(world.cut, [LOST_CLAIM], 'an attempt that waits for its final answer alone goes on')
})

test('shutdown: who gives up and has nothing under way goes at once, who is cut off for good when its claims are over', async (t) => {
  const idle = cutOff({ endsAtMs: 0, takenFromMs: 0 })
  await idle.shutdown.giveUp()
  t.ok(idle.world.nowMs < 1_000)
  const never = cutOff({ endsAtMs: 0, takenFromMs: Number.POSITIVE_INFINITY })
  await never.shutdown.giveUp()
  t.ok(never.world.nowMs >= 60_000 && never.world.nowMs < 61_000, String(never.world.nowMs))
  never.world.takenFromMs = 0
})
