/** Tests of cluster/remote-ask.ts: what an asker at another process is told. */
import { setImmediate as settle } from 'node:timers/promises'
import { test } from 'tap'
import { newCmdId } from '../../cluster/cmd-id.ts'
import { repliesKey } from '../../cluster/keyspace.ts'
import { RemoteAsks } from '../../cluster/remote-ask.ts'
import type { Store } from '../../cluster/store.ts'
import { changeStore } from '../../cluster/store-change.ts'
import type { AskResult } from '../../cluster/work.ts'
import { SimStore } from '../simulation/sim-store.ts'
import { VirtualTime, WorkerClock } from '../simulation/virtual-time.ts'

const LIFE_MS = 4_000
const STEP_MS = 100

interface Case {
  /** What the enqueue answers; undefined: what the store says. */
  enqueued?: 'busy' | 'lost' | 'unsent'
  /** After so many ms the owner answers. */
  answeredMs?: number
  /** After so many ms the store's clock jumps by this much. */
  jump?: readonly [number, number]
  /** The store answers no question about replies. */
  isDeaf?: boolean
}

/** Asks, lets 40 s pass and says what the asker heard, and when. */
async function outcomeOf({ enqueued, answeredMs, jump, isDeaf }: Case): Promise<[AskResult['kind'] | null, number]> {
  const store = new SimStore()
  const time = new VirtualTime()
  const clock = new WorkerClock(time, { rate: 1, originMs: 0, storeMs: store.nowMs })
  const cmdId = newCmdId(store.nowMs, () => 0.5)
  const key = repliesKey(0, Math.floor(store.nowMs / 2_000))
  await store.acquire({ shard: 0, sawToken: '', newToken: '1:t', worker: 'w' })
  const linked: Store = changeStore(store, {
    ...(enqueued === undefined ? {} : { enqueue: () => Promise.resolve(enqueued) }),
    ...(isDeaf === true ? { reply: () => Promise.resolve(null) } : {}),
  })
  let heard: [AskResult['kind'] | null, number] = [null, 0]
  const ask = { shard: 0, command: { name: 'x', cmdId, body: {} }, deadlineMs: store.nowMs + LIFE_MS }
  const asks = new RemoteAsks({ store: linked, clock, worker: 'w' })
  void asks.ask(ask).then(({ kind }) => {
    heard = [kind, time.nowMs]
  })
  for (let step = 0; step < 400 && heard[0] === null; step += 1) {
    await settle()
    if (time.nowMs === answeredMs) await reply(store, { key, cmdId })
    if (time.nowMs === jump?.[0]) store.nowMs += jump[1]
    time.nowMs += STEP_MS
    store.nowMs += STEP_MS
    for (const timer of time.dueTimers(new Set([clock]))) time.call(timer)
    await settle()
  }
  return heard
}

async function reply(store: SimStore, { key, cmdId }: { key: string; cmdId: string }): Promise<void> {
  const packed = JSON.stringify({ kind: 'answer', reply: 1 })
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
    ops: [{ key, write: 'HSET', args: [cmdId, packed] }],
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
  ]
  for (const [name, setup, kind, isEarly] of cases) {
    const [heard, atMs] = await outcomeOf(setup)
    t.equal(heard, kind, name)
    t.equal(atMs <= LIFE_MS, isEarly, `${name}: after ${atMs} ms`)
  }
})
