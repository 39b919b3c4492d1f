/** next-claim - a serial lane on a real Redis: one attempt at a time, in due order, one commit for each. */
import { setTimeout as pause } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { CommandType, LaneType } from '../../../cluster/behaviour.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { formatClaim } from '../../../cluster/items/claim.ts'
import { claimsKey, dueKey, laneKey, poisonKey } from '../../../cluster/keyspace.ts'
import { startWorker, type Worker } from '../../../cluster/worker/worker.ts'
import { until } from '../../support/machine/until.ts'
import { openRedis, openStore } from '../../support/store/redis-shard.ts'

const ITEMS = 300
const WAIT_MS = 20_000
/** A worker's clock may be ahead of the store's by half the way of its first reading, which a standstill makes long. */
const CLOCK_MS = 500
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined }
const IDENTITY = () => ({
  host: 'h',
  bootId: 'b',
  pidNamespace: 'n',
  pid: 1,
  startTime: 's',
  clientId: 1,
  runId: 'r',
  roles: [],
})

/** Puts items into lanes, due in the order given. */
const PLACE: CommandType<{ lane: string; items: readonly string[] }, null> = {
  name: 'place',
  ...NONE,
  decide: ({ lane, items }, _states, _facts, { nowMs }) => ({
    kind: 'done',
    reply: null,
    due: items.map((item, n) => ({ lane, item, atMs: nowMs - items.length + n })),
  }),
}

interface Setup {
  /** Items that are not to be performed. */
  readonly left?: readonly string[]
  /** Items whose outcome the behaviour cannot bear. */
  readonly odd?: readonly string[]
  /** Attempts continue until this many have begun. */
  readonly together?: number
}

/** Puts items into a lane whose names are new each time that it is decided. */
const PLACE_NEW: CommandType<{ lane: string; count: number }, null> = {
  name: 'place new',
  ...NONE,
  decide: ({ lane, count }, _states, _facts, { nowMs, newId }) => ({
    kind: 'done',
    reply: null,
    due: Array.from({ length: count }, () => ({ lane, item: newId(), atMs: nowMs })),
  }),
}

/** A worker whose serial lane notes what it performs. */
async function setUp(t: Test, { left = [], odd = [], together = 0 }: Setup = {}) {
  const redis = await openRedis(t)
  const store = await openStore(t, redis.socketPath)
  const started: string[] = []
  const abandoned: string[] = []
  const foretold: (string | null | undefined)[] = []
  const seen = { underWay: 0, most: 0, commits: 0, reads: 0 }
  const read = store.read.bind(store)
  store.read = (...args) => {
    seen.reads += 1
    return read(...args)
  }
  const rooms = new Map<string, number>()
  const lane: LaneType<string, string> = {
    prefix: 'serial',
    holdMs: 5_000,
    claimsStand: true,
    serial: true,
    prepare: {
      name: 'prepare',
      ...NONE,
      facts: ({ item }) => [{ read: 'fields', key: '{s000}:told', fields: [item] }],
      decide: ({ item }) => ({ kind: 'done', reply: left.includes(item) ? null : 'job' }),
    },
    outcome: {
      name: 'outcome',
      ...NONE,
      decide({ item, outcome }) {
        if (outcome === null) abandoned.push(item)
        else if (odd.includes(item)) throw new Error('Thrown on purpose')
        return { kind: 'done', reply: null }
      },
    },
    room: (name) => 1 - (rooms.get(name) ?? 0),
    async perform(_job, { lane: name, item, following }) {
      started.push(item)
      foretold.push(following)
      rooms.set(name, (rooms.get(name) ?? 0) + 1)
      seen.most = Math.max(seen.most, rooms.get(name) ?? 0)
      if (together > 0) await until(() => started.length >= together, WAIT_MS)
      else await pause(0)
      rooms.set(name, (rooms.get(name) ?? 0) - 1)
      return 'ended'
    },
  }
  const open = async (): Promise<Worker> => {
    const worker = await startWorker({
      store,
      behaviours: {
        entities: [],
        commands: [PLACE, PLACE_NEW] as CommandType[],
        timers: {},
        lanes: [lane as unknown as LaneType],
      },
      log: QUIET,
      shards: 1,
      random: Math.random,
      identity: IDENTITY,
      committed: () => {
        seen.commits += 1
      },
    })
    t.teardown(() => worker.stop())
    await until(() => worker.ready(), WAIT_MS)
    return worker
  }
  const place = (worker: Worker, name: string, items: readonly string[]) =>
    worker.ask(0, { name: 'place', cmdId: newCmdId(worker.nowMs(), Math.random), body: { lane: name, items } })
  return { store, started, abandoned, foretold, seen, open, place }
}

const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `i${String(n).padStart(4, '0')}`)

test('next-claim: a lane goes on by itself, in due order, one commit for each item', async (t) => {
  const { started, foretold, seen, open, place, store } = await setUp(t)
  const worker = await open()
  await place(worker, 'serial/a', names(ITEMS))
  await until(() => started.length >= ITEMS, WAIT_MS)
  t.same(started, names(ITEMS))
  t.equal(seen.most, 1)
  await until(async () => (await store.views.exists(laneKey(0, 'serial/a'), claimsKey(0))) === 0, WAIT_MS)
  t.ok(seen.commits < ITEMS + 20, `${seen.commits} commits`)
  t.ok(seen.reads < ITEMS / 2, `${seen.reads} reads: what stands first is remembered`)
  const told = foretold.filter((item) => typeof item === 'string')
  t.ok(told.length > ITEMS / 2, `${told.length} were told what comes next`)
  t.ok(foretold.every((item, at) => typeof item !== 'string' || item === started[at + 1]))
})

test('next-claim: what is not to be performed is passed over, and the lane goes on at once', async (t) => {
  const all = names(40)
  const left = all.filter((_, n) => n % 3 === 1)
  const { started, open, place } = await setUp(t, { left })
  const worker = await open()
  await place(worker, 'serial/a', all)
  const wanted = all.filter((name) => !left.includes(name))
  await until(() => started.length >= wanted.length, WAIT_MS)
  t.same(started, wanted)
})

test('next-claim: an outcome that throws ends its item, and the lane goes on', async (t) => {
  const all = names(40)
  const odd = all.filter((_, n) => n % 5 === 0)
  const { started, abandoned, open, place, store } = await setUp(t, { odd })
  const worker = await open()
  await place(worker, 'serial/a', all)
  await until(async () => (await store.views.exists(laneKey(0, 'serial/a'))) === 0, WAIT_MS)
  t.same(started, all)
  // A decision may have to be repeated because a fact is missing.
  t.same([...new Set(abandoned)], odd)
})

test('next-claim: what a batch places while it ends an attempt has its turn after the commit', async (t) => {
  const { started, abandoned, open, store } = await setUp(t)
  const worker = await open()
  const placed: Promise<unknown>[] = []
  for (let n = 0; n < 150; n += 1) {
    const body = { lane: 'serial/a', count: 2 }
    placed.push(worker.ask(0, { name: 'place new', cmdId: newCmdId(worker.nowMs(), Math.random), body }))
    await new Promise(setImmediate)
  }
  await Promise.all(placed)
  await until(() => started.length >= 300, WAIT_MS)
  t.same(started, [...started].sort(), 'ids rise')
  t.same([started.length, new Set(started).size, abandoned], [300, 300, []])
  await until(async () => (await store.views.exists(laneKey(0, 'serial/a'), claimsKey(0))) === 0, WAIT_MS)
  t.equal(await store.views.exists(poisonKey(0)), 0)
})

test('next-claim: lanes do not wait for each other', async (t) => {
  const { started, seen, open, place } = await setUp(t, { together: 40 })
  const worker = await open()
  await Promise.all(Array.from({ length: 40 }, (_, n) => place(worker, `serial/${n}`, [`a${n}`])))
  await until(() => started.length >= 40, WAIT_MS)
  t.equal(seen.most, 1, 'all at once, not one after the other, and one of each')
})

test('next-claim: a claim of another worker holds its lane until it lapses, and no other lane', async (t) => {
  const { store, started, open, place } = await setUp(t)
  const untilMs = Date.now() + 1_500
  const row = { worker: 'other', lane: 'serial/a', attempt: 1, untilMs, claims: 1 }
  await store.views.hset(claimsKey(0), 'i0000', formatClaim(row))
  await store.views.zadd(laneKey(0, 'serial/a'), untilMs, 'i0000')
  await store.views.zadd(dueKey(0), untilMs, 'serial/a')
  const worker = await open()
  await place(worker, 'serial/a', ['i0001'])
  await place(worker, 'serial/b', ['j'])
  await until(() => started.includes('j'), WAIT_MS)
  t.ok(!started.includes('i0001') || Date.now() >= untilMs - CLOCK_MS)
  await until(() => started.length === 3, WAIT_MS)
  t.ok(Date.now() >= untilMs - CLOCK_MS)
})
