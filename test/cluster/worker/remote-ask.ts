/** Tests of cluster/remote-ask.ts: the answer to an asker at another process. */
import { setImmediate as settle } from 'node:timers/promises'
import { test } from 'tap'
import type { CommandType, Wire } from '../../../cluster/behaviour.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { repliesKey } from '../../../cluster/keyspace.ts'
import { PARCEL_COMMANDS_MAX } from '../../../cluster/mailbox/parcel.ts'
import { sliceOf } from '../../../cluster/mailbox/replies.ts'
import { changeStore, type Store } from '../../../cluster/store.ts'
import type { AskResult } from '../../../cluster/work.ts'
import { LookList, RemoteAsks } from '../../../cluster/worker/remote-ask.ts'
import { makeChance } from '../../simulation/prng.ts'
import { SimStore } from '../../simulation/sim-store.ts'
import { VirtualTime, WorkerClock } from '../../simulation/virtual-time.ts'
import { STRICT_WIRE } from '../../support/store/strict-wire.ts'

const LIFE_MS = 4_000
const SAY = { name: 'x' } as CommandType
const STEP_MS = 100

interface Case {
  /** The answer to the enqueue; undefined: the answer of the store. */
  enqueued?: 'busy' | 'lost' | 'unsent'
  /** After so many ms the owner answers. */
  answeredMs?: number
  /** After so many ms the store's clock jumps by this much. */
  jump?: readonly [number, number]
  /** The store answers no question about replies. */
  isDeaf?: boolean
  wire?: Wire
}

/** Asks, lets 40 s pass and returns what the asker received, and when. */
async function outcomeOf({
  enqueued,
  answeredMs,
  jump,
  isDeaf,
  wire,
}: Case): Promise<[AskResult['kind'] | null, number]> {
  const store = new SimStore()
  const time = new VirtualTime()
  const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: store.nowMs })
  const cmdId = newCmdId(store.nowMs, () => 0.5)
  await store.acquire({ shard: 0, sawToken: '', newToken: '1:t', worker: 'w' })
  const linked: Store = changeStore(store, {
    ...(enqueued === undefined ? {} : { enqueue: () => Promise.resolve([enqueued]) }),
    ...(isDeaf === true ? { replies: () => Promise.resolve([]) } : {}),
  })
  let heard: [AskResult['kind'] | null, number] = [null, 0]
  const type = wire === undefined ? SAY : { ...SAY, wire }
  const ask = { shard: 0, type, command: { name: 'x', cmdId, body: {} }, deadlineMs: store.nowMs + LIFE_MS }
  const asks = new RemoteAsks({ store: linked, clock, worker: 'w', random: () => 0.5 })
  asks.ask(ask, ({ kind }) => {
    heard = [kind, time.nowMs]
  })
  for (let step = 0; step < 400 && heard[0] === null; step += 1) {
    await settle()
    if (time.nowMs === answeredMs) await reply(store)
    if (time.nowMs === jump?.[0]) store.nowMs += jump[1]
    time.nowMs += STEP_MS
    store.nowMs += STEP_MS
    for (const timer of time.dueTimers(new Set([clock]))) time.call(timer)
    await settle()
  }
  return heard
}

/** The owner answers the contents of the mailbox. */
async function reply(store: SimStore): Promise<void> {
  const [{ parcelId } = { parcelId: '' }] =
    (await store.entries({ shard: 0, of: 'mailbox', from: '(0-0', count: 1 })) ?? []
  const key = repliesKey(0, sliceOf(parcelId))
  await store.commit({
    shard: 0,
    token: '1:t',
    seq: 0,
    commitId: 'c',
    nowMs: store.nowMs,
    deadlineMs: 0,
    lid: '',
    firstEntryId: '',
    cursor: '',
    outcomesCursor: '',
    frees: false,
    note: '',
    ops: [{ key, write: 'HSET', args: [`${parcelId}/0`, `1 ${JSON.stringify([{ kind: 'answer', reply: 1 }])}`] }],
  })
}

test('remote-ask: what the asker hears', async (t) => {
  const cases: [string, Case, AskResult['kind'], boolean][] = [
    ['the reply, soon after it came', { answeredMs: 500 }, 'answer', true],
    ['the mailbox is full', { enqueued: 'busy' }, 'unavailable', true],
    ['it was never sent', { enqueued: 'unsent' }, 'unavailable', true],
    ['no reply at the deadline', {}, 'unavailable', false],
    ['perhaps sent, and no reply at the deadline', { enqueued: 'lost' }, 'unavailable', false],
    ['the deadline is so long past that a reply may be gone', { jump: [1_000, 60_000] }, 'silent', true],
    ['the store says nothing', { isDeaf: true }, 'silent', false],
    ['a reply that nobody can read', { answeredMs: 500, wire: STRICT_WIRE }, 'silent', true],
  ]
  for (const [name, setup, kind, isEarly] of cases) {
    const [heard, atMs] = await outcomeOf(setup)
    t.equal(heard, kind, name)
    t.equal(atMs <= LIFE_MS, isEarly, `${name}: after ${atMs} ms`)
  }
})

test('remote-ask: asks of a turn are parcels of one request, their looks one look', async (t) => {
  const store = new SimStore()
  const time = new VirtualTime()
  const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: store.nowMs })
  const sent: number[][] = []
  let looks = 0
  const linked = changeStore(store, {
    async enqueue({ parcels }) {
      sent.push(parcels.map(({ count }) => count))
      return parcels.map(({ shard }) => (shard === 3 ? 'busy' : 'ok'))
    },
    async replies(parcels) {
      looks += 1
      return store.replies(parcels)
    },
  })
  const chance = makeChance(1)
  const asks = new RemoteAsks({ store: linked, clock, worker: 'w', random: () => chance.next() })
  const heard: [string, unknown][] = []
  const ask = (name: string, shard: number, blobs: readonly Uint8Array[] = []): void =>
    asks.ask(
      { shard, type: SAY, command: { name, cmdId: name, body: {}, blobs }, deadlineMs: store.nowMs + LIFE_MS },
      (result) => heard.push([name, result.kind === 'answer' ? result.reply : result.kind]),
    )
  const pass = async (ms: number): Promise<void> => {
    time.nowMs += ms
    for (const timer of time.dueTimers(new Set([clock]))) time.call(timer)
    for (let i = 0; i < 4; i += 1) await settle()
  }
  for (const [name, shard] of [
    ['a', 1],
    ['b', 2],
    ['c', 1],
    ['full', 3],
  ] as const)
    ask(name, shard)
  ask('large', 2, [Buffer.alloc(2_000_000)])
  t.equal(asks.size, 5)
  await pass(0)
  t.same(sent, [[2, 1, 1, 1]])
  t.same(heard, [['full', 'unavailable']])
  const [a] = [newCmdId(store.nowMs, () => 0.5).slice(0, 8)]
  for (const odd of ['', 'odd', '/', `${a}/0`, `${a}/0 {`, 'x/0 []', 'x/y []']) asks.heard(odd)
  await pass(600)
  t.equal(looks, 1)
  for (let i = 0; i < 60; i += 1) await pass(700)
  t.same(
    heard.slice(1).map(([, kind]) => kind),
    ['silent', 'silent', 'silent', 'silent'],
    'the clock stood still',
  )
  t.equal(asks.size, 0)
})

interface Gathering {
  /** Commands of the parcels of each request. */
  readonly sent: number[][]
  /** The owner's answer to all commands of a parcel. */
  readonly told: string[]
  /** Has the store answer the oldest request that it holds. */
  readonly answerEnqueue: () => void
  readonly asks: RemoteAsks
  readonly ask: (shard: number, answered?: () => void) => void
  readonly heard: () => number
  readonly pass: (ms: number) => Promise<void>
}

/** A store that reports what is put into mailboxes; shard 9 is full, and requests may be held. */
function gathering({ isHeld }: { isHeld: boolean }): Gathering {
  const store = new SimStore()
  const time = new VirtualTime()
  const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: store.nowMs })
  const sent: number[][] = []
  const told: string[] = []
  const held: (() => void)[] = []
  const linked = changeStore(store, {
    enqueue({ parcels }) {
      sent.push(parcels.map(({ count }) => count))
      const results = (count: number): string => JSON.stringify(Array(count).fill({ kind: 'answer', reply: 1 }))
      told.push(...parcels.map(({ parcelId, count }) => `${parcelId}/0 ${results(count)}`))
      return new Promise((resolve) => {
        held.push(() => resolve(parcels.map(({ shard }) => (shard === 9 ? 'busy' : 'ok'))))
        if (!isHeld) held.shift()?.()
      })
    },
  })
  const chance = makeChance(1)
  const asks = new RemoteAsks({ store: linked, clock, worker: 'w', random: () => chance.next() })
  let heard = 0
  const ask = (shard: number, answered?: () => void): void => {
    const command = { name: 'x', cmdId: 'x', body: {} }
    asks.ask({ shard, type: SAY, command, deadlineMs: store.nowMs + LIFE_MS }, () => {
      heard += 1
      answered?.()
    })
  }
  const pass = async (ms: number): Promise<void> => {
    time.nowMs += ms
    for (let i = 0; i < 4; i += 1) {
      for (const timer of time.dueTimers(new Set([clock]))) time.call(timer)
      await settle()
    }
  }
  return { sent, told, answerEnqueue: () => held.shift()?.(), asks, ask, heard: () => heard, pass }
}

test('remote-ask: asks gather while a parcel of their shard is unanswered, five milliseconds at most', async (t) => {
  const { sent, told, asks, ask, heard, pass } = gathering({ isHeld: false })
  ask(1)
  ask(1)
  ask(2)
  await pass(0)
  t.same(sent, [[2, 1]], 'what was asked in one turn goes with its end')
  ask(1)
  ask(3)
  await pass(0)
  t.same(sent, [[2, 1], [1]], 'other shards do not wait')
  ask(1)
  await pass(4)
  t.same(sent.length, 2)
  asks.heard(told[0]!)
  ask(1)
  await pass(0)
  t.same([sent, heard()], [[[2, 1], [1], [3]], 2], 'answered, what has gathered goes, with what is asked in that turn')
  ask(1)
  await pass(4)
  ask(1)
  t.same(sent.length, 3)
  await pass(1)
  t.same(sent[3], [2], 'or five milliseconds are over')
  asks.heard(told[3]!)
  ask(1)
  await pass(4)
  t.same(sent.length, 4, 'with two unanswered, both are waited for')
  asks.heard(told[4]!)
  await pass(0)
  t.same(sent[4], [1])
  for (const line of told) asks.heard(line)
  await pass(20)
  t.same([sent.length, heard(), asks.size], [5, 10, 0], 'and nothing is sent twice')
  for (let i = 0; i < 3; i += 1) {
    ask(9)
    await pass(0)
  }
  t.same([sent.slice(5), heard()], [[[1], [1], [1]], 13], 'what the store refuses holds up nobody')
})

test('remote-ask: a shard with several parcels is answered when all of them are', async (t) => {
  const { sent, told, asks, ask, pass } = gathering({ isHeld: false })
  for (let i = 0; i <= PARCEL_COMMANDS_MAX; i += 1) ask(1)
  await pass(0)
  t.same(sent, [[PARCEL_COMMANDS_MAX, 1]])
  asks.heard(told[1]!)
  ask(1)
  await pass(0)
  t.equal(sent.length, 1, 'one is not')
  asks.heard(told[0]!)
  await pass(0)
  t.same(sent[1], [1])
  asks.heard(told[2]!)
  ask(1)
  await pass(0)
  t.same(sent[2], [1], 'and none is owed')
})

test('remote-ask: what an answer asks goes with the answers beside it', async (t) => {
  const { sent, told, asks, ask, pass } = gathering({ isHeld: false })
  ask(1, () => ask(1))
  ask(1)
  await pass(0)
  asks.heard(told[0]!)
  ask(1)
  await pass(0)
  t.same(sent, [[2], [2]])
  await pass(20)
  t.equal(sent.length, 2)
})

test('remote-ask: all asks gather while two requests are under way, five milliseconds at most', async (t) => {
  const { sent, answerEnqueue, ask, pass } = gathering({ isHeld: true })
  ask(1)
  await pass(0)
  ask(2)
  await pass(0)
  ask(3)
  await pass(0)
  ask(4)
  await pass(4)
  t.same(sent, [[1], [1]])
  answerEnqueue()
  await pass(0)
  t.same(sent, [[1], [1], [1, 1]], 'until one is answered')
  ask(5)
  await pass(4)
  t.same(sent.length, 3)
  ask(6)
  await pass(1)
  t.same(sent[3], [1, 1], 'or five milliseconds are over')
  ask(6)
  await pass(6)
  await pass(3)
  t.same(sent.length, 4, 'what waits for both its shard')
  await pass(2)
  t.same(sent[4], [1], 'and requests waits twice as long')
  await pass(20)
  answerEnqueue()
  await pass(20)
  t.same(sent.length, 5, 'and nothing is sent twice')
})

test('look-list: what is due comes out in the order of its time', async (t) => {
  const list = new LookList<string>()
  t.equal(list.nextMs, Number.POSITIVE_INFINITY)
  list.add('b', 20)
  list.add('d', 40)
  list.add('a', 10)
  list.add('c', 20)
  t.equal(list.nextMs, 10)
  t.same(list.due(5), [])
  t.same(list.due(20), ['a', 'b', 'c'])
  t.equal(list.nextMs, 40)
  t.same(list.due(99), ['d'])
  t.same(list.due(99), [])
})
