/** Tests of cluster/worker/protocol.ts. */
import { test } from 'tap'
import type { Beat, Protocol, WorkerRecord } from '../../../cluster/store.ts'
import { meetOthers, PROTOCOL, understandEachOther } from '../../../cluster/worker/protocol.ts'

const ME = 'me'
const identity = () => ({
  host: 'here',
  bootId: 'b',
  pidNamespace: 'p',
  pid: 1,
  startTime: '1',
  clientId: 1,
  runId: 'r',
  roles: [],
})

/**
 * A newcomer by a clock that runs ahead. `records` is what else the store has at each time, or null if it is silent.
 */
function newcomer(records: (atMs: number) => Record<string, object> | null, protocol?: Protocol) {
  const world = { nowMs: 0, said: [] as WorkerRecord[], hasLeft: false }
  const clock = {
    monotonicMs: () => world.nowMs,
    after(ms: number, call: () => void) {
      world.nowMs += ms
      setImmediate(call)
      return () => undefined
    },
  }
  const heartbeat = async ({ record }: { record: WorkerRecord }): Promise<Beat> => {
    world.said.push(record)
    const all = records(world.nowMs)
    if (all === null) return { kind: 'failed' }
    const texts = Object.entries({ ...all, [ME]: record }).map(
      ([worker, one]) => [worker, JSON.stringify(one)] as const,
    )
    return { kind: 'ok', nowMs: world.nowMs, workers: new Map(texts) }
  }
  const retire = async () => {
    world.hasLeft = true
  }
  const store = { heartbeat, retire }
  const processGone = ({ pid }: WorkerRecord) => pid === 13
  return { world, met: meetOthers({ worker: ME, store, clock, identity, protocol, processGone }) }
}

const NEXT = { speaks: 3, understands: 2 }

test('protocol: the release before is understood, one before that is not', async (t) => {
  t.equal(understandEachOther(NEXT, { speaks: 2, understands: 1 }), true)
  t.equal(understandEachOther(NEXT, { speaks: 1, understands: 1 }), false)
  t.equal(understandEachOther(NEXT, { speaks: 5, understands: 4 }), false)
  t.equal(understandEachOther(PROTOCOL, PROTOCOL), true)
  t.equal(understandEachOther(PROTOCOL, { speaks: 1, understands: 1 }), false, 'it cannot read rows with a checksum')
})

test('protocol: who understands all that live starts at once, and so does who meets nobody', async (t) => {
  for (const records of [{}, { a: { protocol: PROTOCOL }, b: { protocol: { speaks: 3, understands: 2 } } }]) {
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
  await t.rejects(met, { name: 'StrangersLive', message: /2 other processes with protocol 1, this release uses 3/ })
  t.equal(world.nowMs, 30_000)
  t.equal(world.hasLeft, true, 'and its record is gone')
})

test('protocol: who is coming says so, takes no shards meanwhile, and is seen to live', async (t) => {
  const { world, met } = newcomer((atMs) => (atMs < 7_000 ? { old: { beats: atMs } } : {}), NEXT)
  await met
  t.ok(
    world.said.every(({ isComing, takesShards, protocol }) => isComing === true && !takesShards && protocol === NEXT),
  )
  t.equal(new Set(world.said.map(({ beats }) => beats)).size, world.said.length)
})

test('protocol: of two that come together the second waits for the first, and not the other way round', async (t) => {
  const first = newcomer((atMs) => (atMs > 400 && atMs < 9_000 ? { late: { beats: atMs, isComing: true } } : {}), NEXT)
  await first.met
  t.equal(first.world.nowMs, 0)
  // Which waits for one that runs already does not wait for one that came after it, too.
  const between = (atMs: number) => ({
    ...(atMs < 2_000 && { old: { beats: atMs } }),
    ...(atMs >= 400 && { late: { beats: atMs, isComing: true } }),
  })
  const waiting = newcomer(between, NEXT)
  await waiting.met
  t.equal(waiting.world.nowMs, 2_000)
  const second = newcomer((atMs) => ({ first: { beats: atMs, ...(atMs < 3_000 && { isComing: true }) } }), NEXT)
  await t.rejects(second.met, { name: 'StrangersLive' })
})

test('protocol: a store that does not answer is asked again, for half a minute', async (t) => {
  const late = newcomer((atMs) => (atMs < 4_000 ? null : {}))
  await late.met
  t.equal(late.world.nowMs, 4_000)
  const never = newcomer(() => null)
  await t.rejects(never.met, { message: /does not answer/ })
})

test('protocol: records of the dead refuse nobody', async (t) => {
  const silent = newcomer(() => ({ old: { beats: 1 } }), NEXT)
  await silent.met
  t.equal(silent.world.nowMs, 10_000)
  const gone = newcomer((atMs) => ({ old: { beats: atMs, pid: 13 } }), NEXT)
  await gone.met
  t.equal(gone.world.nowMs, 0)
})
