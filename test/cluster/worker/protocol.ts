/** Tests of cluster/worker/protocol.ts. */
import { test } from 'tap'
import type { Protocol } from '../../../cluster/store.ts'
import { meetOthers, PROTOCOL, understandEachOther } from '../../../cluster/worker/protocol.ts'

/** A newcomer by a clock that runs ahead; `records` says what lies in the store at each time. */
function newcomer(records: (atMs: number) => Record<string, object>, protocol?: Protocol) {
  const world = { nowMs: 0 }
  const clock = {
    monotonicMs: () => world.nowMs,
    after(ms: number, call: () => void) {
      world.nowMs += ms
      setImmediate(call)
      return () => undefined
    },
  }
  const look = async () => {
    const texts = Object.entries(records(world.nowMs)).map(
      ([worker, record]) => [worker, JSON.stringify(record)] as const,
    )
    return { workers: new Map(texts), connected: new Set<number>() }
  }
  return { world, met: meetOthers({ store: { look }, clock, protocol, processGone: ({ pid }) => pid === 13 }) }
}

const NEXT = { speaks: 3, understands: 2 }

test('protocol: the release before is understood, one before that is not', async (t) => {
  t.equal(understandEachOther(NEXT, { speaks: 2, understands: 1 }), true)
  t.equal(understandEachOther(NEXT, { speaks: 1, understands: 1 }), false)
  t.equal(understandEachOther(NEXT, { speaks: 5, understands: 4 }), false)
  t.equal(understandEachOther(PROTOCOL, PROTOCOL), true)
})

test('protocol: who understands all that live starts at once, and so does who meets nobody', async (t) => {
  for (const records of [
    {},
    { a: { beats: 1 } },
    { a: { protocol: PROTOCOL }, b: { protocol: { speaks: 2, understands: 1 } } },
  ]) {
    const { world, met } = newcomer(() => records)
    await met
    t.equal(world.nowMs, 0)
  }
})

test('protocol: a newcomer waits until those that it cannot talk to have left', async (t) => {
  const { world, met } = newcomer((atMs) => (atMs < 7_000 ? { old: { beats: atMs } } : {}), NEXT)
  await met
  t.equal(world.nowMs, 7_000)
})

test('protocol: after half a minute it refuses, in a sentence', async (t) => {
  const { world, met } = newcomer((atMs) => ({ old: { beats: atMs }, older: { beats: atMs } }), NEXT)
  await t.rejects(met, { name: 'StrangersLive', message: /2 other processes of protocol 1, this release speaks 3/ })
  t.equal(world.nowMs, 30_000)
})

test('protocol: records of the dead refuse nobody', async (t) => {
  const silent = newcomer(() => ({ old: { beats: 1 } }), NEXT)
  await silent.met
  t.equal(silent.world.nowMs, 10_000)
  const gone = newcomer((atMs) => ({ old: { beats: atMs, pid: 13 } }), NEXT)
  await gone.met
  t.equal(gone.world.nowMs, 0)
})
