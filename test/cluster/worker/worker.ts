/** Tests of cluster/worker.ts: several workers on one real Redis, each over connections of its own. */
import { Redis } from 'ioredis'
import { type Test, test } from 'tap'
import type { CommandType, LaneType, OutcomeBody } from '../../../cluster/behaviour.ts'
import { type Clock, makeClock } from '../../../cluster/clock.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { claimsKey, metaKey, outcomesKey, shardTag } from '../../../cluster/keyspace.ts'
import { Shard } from '../../../cluster/shard/shard.ts'
import type { ShardWorld } from '../../../cluster/shard/world.ts'
import { changeStore } from '../../../cluster/store.ts'
import type { AskResult } from '../../../cluster/work.ts'
import type { WorkerOptions } from '../../../cluster/worker/options.ts'
import { wantedOwner } from '../../../cluster/worker/rendezvous.ts'
import { startWorker, type Worker } from '../../../cluster/worker/worker.ts'
import { watchStalls } from '../../support/machine/stall.ts'
import { until } from '../../support/machine/until.ts'
import { openRedis, openStore } from '../../support/store/redis-shard.ts'
import { STRICT_WIRE } from '../../support/store/strict-wire.ts'

const SHARDS = 16
const WAIT_MS = 20_000
const TAKEOVER_MS = 5_500
const TAKEOVER_TRIES = 3
/** A death that only silence reveals is detected after ten seconds. */
const SILENCE_MS = 9_000
/** Waiting for the attempts under way takes eight seconds. */
const HANDOVER_MS = 6_000
/** Requests to a process that is frozen this long may rightly be refused. */
const STANDSTILL_MS = 1_000
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined }

const KEPT = (shard: number): string => `${shardTag(shard)}:kept`

/** Writes its blob under its name, and answers what it was asked and by which commit. */
const KEEP: CommandType<{ name: string }, string> = {
  name: 'keep',
  ...NONE,
  wire: STRICT_WIRE,
  decide: ({ name }, _states, _facts, { shard }, { blobs = [] }) => ({
    kind: 'done',
    reply: `${name} ${blobs.length}`,
    ops: [{ key: KEPT(shard), write: 'HSET', args: [name, blobs[0] ?? ''] }],
  }),
}

const BREAK: CommandType<{ name: string }, string> = {
  name: 'break',
  ...NONE,
  decide() {
    throw new Error('Thrown on purpose')
  },
}

const PLACE: CommandType<{ item: string }, null> = {
  name: 'place',
  ...NONE,
  decide: ({ item }, _states, _facts, { nowMs }) => ({
    kind: 'done',
    reply: null,
    due: [{ lane: 'job', item, atMs: nowMs }],
  }),
}

interface Performance {
  readonly item: string
  end(): void
}

interface Member {
  readonly worker: Worker
  /** Ends it like kill -9: no farewell, and nothing of it continues. */
  die(): void
  readonly performances: Performance[]
  ask(shard: number, name: string, body: object, blobs?: readonly Uint8Array[]): Promise<AskResult>
}

async function setUp(t: Test) {
  const redis = await openRedis(t)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  let pid = 0
  const ended: string[] = []
  const join = async (more: Partial<WorkerOptions> = {}): Promise<Member> => {
    const store = await openStore(t, redis.socketPath)
    const performances: Performance[] = []
    pid += 1
    const n = pid
    const { clock, stop } = mortalClock()
    const worker = await startWorker({
      store,
      behaviours: {
        entities: [],
        commands: [KEEP, BREAK, PLACE] as CommandType[],
        timers: {},
        lanes: [job(performances, ended)],
      },
      log: QUIET,
      shards: SHARDS,
      random: Math.random,
      clock,
      identity: () => ({
        host: 'h',
        bootId: 'b',
        pidNamespace: 'n',
        pid: n,
        startTime: 's',
        roles: [],
        ...store.identity,
      }),
      ...more,
    })
    let isDead = false
    const die = (): void => {
      isDead = true
      stop()
      store.close()
    }
    t.teardown(() => (isDead ? undefined : worker.stop()))
    const ask: Member['ask'] = (shard, name, body, blobs = []) =>
      worker.ask(shard, { name, cmdId: newCmdId(worker.nowMs(), Math.random), body, blobs })
    return { worker, die, performances, ask }
  }
  const ownersOf = async (): Promise<Map<string, number>> => {
    const counts = new Map<string, number>()
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const owner = (await client.hget(metaKey(shard), 'owner')) ?? ''
      counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
    return counts
  }
  return { redis, client, join, ownersOf, ended }
}

/** The first enqueue opens its connection, and is refused if that takes a second. */
async function warm({ ask }: Member): Promise<void> {
  await until(async () => (await ask(0, 'keep', { name: 'warm' })).kind === 'answer', WAIT_MS)
}

/** A clock that can be stopped for good. */
function mortalClock(): { clock: Clock; stop(): void } {
  const base = makeClock()
  const cancels = new Set<() => void>()
  let isStopped = false
  const after: Clock['after'] = (ms, call) => {
    if (isStopped) return () => undefined
    const cancel = base.after(ms, () => {
      cancels.delete(cancel)
      call()
    })
    cancels.add(cancel)
    return cancel
  }
  const stop = (): void => {
    isStopped = true
    for (const cancel of cancels) cancel()
  }
  return { clock: { ...base, after }, stop }
}

/** A lane whose attempts end when the test ends them. */
function job(performances: Performance[], ended: string[]): LaneType {
  const lane: LaneType<string, string> = {
    prefix: 'job',
    holdMs: 60_000,
    claimsStand: false,
    prepare: { name: 'prepare', ...NONE, decide: () => ({ kind: 'done', reply: 'job' }) },
    outcome: {
      name: 'outcome',
      ...NONE,
      decide(body: OutcomeBody<string>) {
        ended.push(`${body.item} ${body.outcome}`)
        return { kind: 'done', reply: null }
      },
    },
    room: () => 10,
    perform: (_job, { item }) =>
      new Promise((resolve) => {
        performances.push({ item, end: () => resolve('ended') })
      }),
  }
  return lane as unknown as LaneType
}

test('worker: one without shards asks those who have them, bytes and all', async (t) => {
  const { join, client } = await setUp(t)
  const front = await join({ takesShards: false })
  t.equal(front.worker.ready(), false)
  t.same(await front.ask(3, 'keep', { name: 'a' }), { kind: 'unavailable' }, 'nobody takes shards')
  const owner = await join()
  await until(() => front.worker.ready(), WAIT_MS)
  t.equal(owner.worker.stats().running, SHARDS)
  t.equal(front.worker.stats().running, 0)
  await warm(front)
  const bytes = Buffer.from([0, 255, 10, 13, 128, 0])
  t.same(await front.ask(3, 'keep', { name: 'ü' }, [bytes, bytes]), { kind: 'answer', reply: 'ü 2' })
  t.same(await client.hgetBuffer(KEPT(3), 'ü'), bytes)
  t.same(await front.ask(3, 'break', { name: 'x' }), { kind: 'fault' })
  t.same(await client.xlen(`${shardTag(3)}:mailbox`), 0, 'what was executed has left the mailbox')
  const staged = await client.keys('*:staged:*')
  t.equal(staged.length, 1, 'what it said has gone, but for what a behaviour could not bear')
  t.ok((await client.pttl(String(staged[0]))) > 80_000_000, 'which is kept for a day')
  const many = await Promise.all(
    Array.from({ length: 300 }, (_, n) => front.ask(n % SHARDS, 'keep', { name: `n${n}` }, [Buffer.from(`${n}`)])),
  )
  t.ok(many.every((result, n) => result.kind === 'answer' && result.reply === `n${n} 1`))
})

test('worker: a verdict that was slow and says the time does not set the clock back', async (t) => {
  const { join } = await setUp(t)
  const clock = makeClock()
  const worlds: ShardWorld[] = []
  const makeShard = (id: number, world: ShardWorld): Shard => {
    worlds.push(world)
    return new Shard(id, world)
  }
  await join({ clock, makeShard })
  const shownMs = clock.nowMs()
  worlds[0]?.resync(shownMs - 1_000, clock.monotonicMs() - 2_000)
  t.ok(clock.nowMs() >= shownMs, 'the store may have looked at the end of these two seconds, or at their beginning')
  worlds[0]?.resync(shownMs + 60_000, clock.monotonicMs() - 2_000)
  t.ok(clock.nowMs() >= shownMs + 60_000, 'it is at least what the verdict said')
})

test('worker: with nobody listening, what was asked is found and answered all the same', async (t) => {
  const { join, redis } = await setUp(t)
  const deaf = async () => changeStore(await openStore(t, redis.socketPath), { listen: () => ({ close() {} }) })
  await join({ store: await deaf() })
  const front = await join({ store: await deaf(), takesShards: false })
  await until(() => front.worker.ready(), WAIT_MS)
  await warm(front)
  for (let n = 0; n < 6; n += 1) {
    // A request that is not found within its four seconds is refused.
    t.match(await front.ask(n, 'keep', { name: 'a' }), { kind: 'answer' })
  }
})

test('worker: what is asked in one turn is one entry, and may be more than a batch holds', async (t) => {
  const { join, client } = await setUp(t)
  await join()
  const front = await join({ takesShards: false })
  await until(() => front.worker.ready(), WAIT_MS)
  await warm(front)
  const large = Buffer.alloc(2_000, 'x')
  for (const [shard, count] of [
    [4, 200],
    [5, 300],
  ] as const) {
    const names = Array.from({ length: count }, (_, n) => `n${n}`)
    const results = await Promise.all(
      names.map((name, n) => front.ask(shard, 'keep', { name }, n % 4 === 0 ? [large] : [])),
    )
    t.same(
      results.map((result) => result.kind === 'answer' && result.reply),
      names.map((name, n) => `${name} ${n % 4 === 0 ? 1 : 0}`),
    )
    t.equal(await client.hlen(KEPT(shard)), count)
  }
  const added = async (shard: number): Promise<unknown> => {
    const info = (await client.xinfo('STREAM', `${shardTag(shard)}:mailbox`)) as unknown[]
    return info[info.indexOf('entries-added') + 1]
  }
  t.equal(await added(4), 1)
  t.equal(await added(5), 2, 'a parcel holds 256 commands')
  t.same(await client.keys('*:staged:*'), [])
})

test('worker: odd entries and bells, and a mailbox that a restart has emptied, make nobody deaf', async (t) => {
  const { join, client } = await setUp(t)
  const owner = await join()
  const front = await join({ takesShards: false })
  await until(() => front.worker.ready(), WAIT_MS)
  await warm(front)
  const mailbox = `${shardTag(3)}:mailbox`
  const bell = `{cl}:bell:${owner.worker.id}`
  await client.set(`${shardTag(3)}:staged:odd`, 'odd')
  await client.hset(`${shardTag(3)}:staged:hash`, 'a', 'b')
  for (const [name, value] of [
    ['parcel', 'odd'],
    ['parcel', 'hash'],
    ['parcel', 'none'],
    ['a', 'b'],
  ] as const)
    await client.xadd(mailbox, '*', name, value)
  for (const odd of ['', 'odd', '3', '999', '3 5-1 0-0 p w', '3 1-1 9-9 p w']) {
    for (const said of ['', 'p', 'p odd']) await client.publish(`{cl}:parcel:${owner.worker.id}`, said)
    await client.publish(bell, odd)
  }
  t.same(await front.ask(3, 'keep', { name: 'a' }), { kind: 'answer', reply: 'a 0' })
  await until(async () => (await client.xlen(mailbox)) === 0, WAIT_MS)
  t.equal(await client.xlen(`${shardTag(3)}:poison`), 1, 'what no parcel is said is noted')
  await client.del(mailbox)
  for (const name of ['b', 'c']) t.match(await front.ask(3, 'keep', { name }), { kind: 'answer' })
})

test('worker: one that joins gets its share, and no ask is refused meanwhile', async (t) => {
  const { join, ownersOf } = await setUp(t)
  const first = await join()
  const front = await join({ takesShards: false })
  await until(() => front.worker.ready(), WAIT_MS)
  await warm(front)
  const stalls = watchStalls(t)
  let going = true
  const results = new Set<string>()
  const load = (async () => {
    for (let n = 0; going; n += 1) {
      const from = n % 2 === 0 ? front : first
      const askedAtMs = performance.now()
      const { kind } = await from.ask(n % SHARDS, 'keep', { name: `n${n}` })
      if (kind !== 'unavailable' || stalls.during(askedAtMs) < STANDSTILL_MS) results.add(kind)
    }
  })()
  const second = await join()
  const ids = [first.worker.id, second.worker.id]
  const share = Array.from({ length: SHARDS }, (_, shard) => wantedOwner(shard, ids))
  const sizeOf = (id: string): number => share.filter((owner) => owner === id).length
  await until(async () => {
    const owners = await ownersOf()
    return ids.every((id) => (owners.get(id) ?? 0) === sizeOf(id))
  }, WAIT_MS)
  await until(() => first.worker.stats().running + second.worker.stats().running === SHARDS, WAIT_MS)
  going = false
  await load
  t.same([...results], ['answer'])
})

test('worker: what was asked of an owner that is none any more is answered by the next one', async (t) => {
  const { join, client } = await setUp(t)
  const [first, second] = [await join(), await join()]
  await until(() => first.worker.owned.length > 0 && second.worker.stats().running > 0, WAIT_MS)
  const [shard = -1] = first.worker.owned
  const token = (await client.hget(metaKey(shard), 'tok')) ?? ''
  const store = await openStore(t, client.options.path ?? '')
  await store.acquire({ shard, sawToken: token, newToken: `${token}9`, worker: second.worker.id })
  const ask = () => first.ask(shard, 'keep', { name: 'a' })
  const heard = await ask()
  t.same(heard.kind === 'unavailable' ? await ask() : heard, { kind: 'answer', reply: 'a 0' })
})

/** One of two workers dies. Out: after how long the other one has all shards. */
async function replace(t: Test): Promise<number> {
  const { join, client, ownersOf } = await setUp(t)
  const first = await join()
  const second = await join()
  await until(async () => (await client.hlen('{cl}:workers')) === 2, WAIT_MS)
  const stalls = watchStalls(t)
  const goneAtMs = performance.now()
  first.die()
  await until(async () => (await ownersOf()).get(second.worker.id) === SHARDS, WAIT_MS)
  const tookMs = performance.now() - goneAtMs - stalls.during(goneAtMs)
  await until(async () => (await second.ask(1, 'keep', { name: 'a' })).kind === 'answer', WAIT_MS)
  return tookMs
}

test('worker: one whose connection is gone is replaced within five seconds', async (t) => {
  // Other work may delay the store for longer than the margin, but not each time.
  let tookMs = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TAKEOVER_TRIES && tookMs >= TAKEOVER_MS; tries += 1) {
    tookMs = await replace(t)
    t.ok(tookMs < SILENCE_MS, `before its silence alone would tell, after ${Math.round(tookMs)} ms`)
  }
  t.ok(tookMs < TAKEOVER_MS, `after ${Math.round(tookMs)} ms`)
})

test('worker: one that leaves gives its shards away at once; an attempt under way reports to their next owner', async (t) => {
  const { join, client, ownersOf, ended } = await setUp(t)
  const first = await join()
  await first.ask(5, 'place', { item: 'a' })
  await until(() => first.performances.length === 1, WAIT_MS)
  const second = await join()
  await until(async () => (await client.hlen('{cl}:workers')) === 2, WAIT_MS)
  await until(() => second.worker.ready(), WAIT_MS)
  const stalls = watchStalls(t)
  const leftAtMs = performance.now()
  const stopped = first.worker.stop()
  await until(async () => (await ownersOf()).get(second.worker.id) === SHARDS, WAIT_MS)
  const tookMs = performance.now() - leftAtMs - stalls.during(leftAtMs)
  t.ok(tookMs < HANDOVER_MS, `after ${Math.round(tookMs)} ms`)
  t.equal(await client.hlen(claimsKey(5)), 1, 'the claim of the living stands')
  first.performances[0]?.end()
  await stopped
  await until(() => ended.length === 1, WAIT_MS)
  t.same(ended, ['a ended'])
  await until(async () => (await client.hlen(claimsKey(5))) === 0, WAIT_MS)
  t.equal(second.performances.length, 0, 'it was not performed again')
  t.equal(await client.xlen(outcomesKey(5)), 0)
  t.equal(await client.hlen('{cl}:workers'), 1, 'and it has signed off')
})

test('worker: what a dead one had under way is performed by the next', async (t) => {
  const { join } = await setUp(t)
  const first = await join()
  await first.ask(5, 'place', { item: 'a' })
  await until(() => first.performances.length === 1, WAIT_MS)
  first.die()
  const second = await join({ processGone: ({ pid }) => pid === 1 })
  await until(() => second.performances.length === 1, WAIT_MS)
  t.equal(second.performances[0]?.item, 'a')
  second.performances[0]?.end()
})
