/**
 * Tests of cluster/worker/holdings.ts: a store that has forgotten that a shard was taken here, and a worker without a
 * record.
 */
import { test } from 'tap'
import { KnownCommits } from '../../../cluster/shard/known-commits.ts'
import type { Shard } from '../../../cluster/shard/shard.ts'
import type { Meta, Store, WorkerRecord } from '../../../cluster/store.ts'
import { Holdings } from '../../../cluster/worker/holdings.ts'
import { Members } from '../../../cluster/worker/members.ts'
import { VirtualTime, WorkerClock } from '../../simulation/virtual-time.ts'

const ME = 'me'

/** Holds shard 0, taken under the epoch 3 when it had 10 commits, with two more confirmed since. */
async function held(now: Partial<Meta>): Promise<{ losses: number[]; isDropped: boolean }> {
  const known = new KnownCommits()
  known.begin({ seq: 10, token: '3:mine' })
  known.note(11, 1_100)
  known.note(12, 1_200)
  const [losses, state] = [[] as number[], { isDropped: false }]
  const shard = {
    id: 0,
    token: '3:mine',
    seq: 12,
    accepts: true,
    halted: false,
    running: true,
    knownCommits: known,
    noteLoss: (storeSeq: number) => losses.push(known.lossAt(storeSeq)?.commits ?? 0),
    drop: () => {
      state.isDropped = true
    },
  } as unknown as Shard
  const metas: Store['metas'] = async () => [{ owner: ME, seq: 12, token: '3:mine', ...now } as Meta]
  const holdings = new Holdings({
    me: ME,
    store: { metas } as Store,
    clock: new WorkerClock(new VirtualTime(), { rate: 1, originMs: 0, storeMs: 0 }),
    members: new Members(ME),
    count: 1,
    takesShards: true,
    makeShard: () => shard,
    ails: () => false,
    lost: () => undefined,
    beat: async () => true,
    hasLapsed: () => false,
  })
  holdings.shards.set(0, shard)
  await holdings.check()
  return { losses, ...state }
}

test('holdings: commits under a grant that the store has forgotten are lost, however far others have come', async (t) => {
  t.same(await held({}), { losses: [], isDropped: false }, 'as it was')
  t.same(await held({ owner: ME, token: '4:next' }), { losses: [], isDropped: true }, 'the next owner')
  t.same(await held({ token: '2:before', seq: 14 }), { losses: [2], isDropped: true }, 'the owner before, who goes on')
  t.same(
    await held({ token: '3:theirs', seq: 12 }),
    { losses: [2], isDropped: true },
    'another grant of the same epoch',
  )
  t.same(await held({ seq: 11 }), { losses: [1], isDropped: true }, 'a store that stands before what was confirmed')
})

/** The losses that are reported after a shard has ended here, while the store has this `meta` of it. */
async function lostAfterEnd(now: Partial<Meta>): Promise<number[]> {
  const known = new KnownCommits()
  known.begin({ seq: 10, token: '3:mine' })
  known.note(11, 1_100)
  known.note(12, 1_200)
  const losses: number[] = []
  const shard = { id: 0, knownCommits: known } as unknown as Shard
  const metas: Store['metas'] = async () => [{ owner: 'other', ...now } as Meta]
  const members = new Members(ME)
  const record = { takesShards: true } as WorkerRecord
  members.note(new Map([['other', JSON.stringify(record)]]), 0)
  const holdings = new Holdings({
    me: ME,
    store: { metas } as Store,
    clock: new WorkerClock(new VirtualTime(), { rate: 1, originMs: 0, storeMs: 0 }),
    members,
    count: 1,
    takesShards: true,
    makeShard: () => shard,
    ails: () => false,
    lost: (_shard, { commits }) => losses.push(commits),
    beat: async () => true,
    hasLapsed: () => false,
  })
  holdings.shards.set(0, shard)
  await holdings.gone(shard)
  await holdings.check()
  return losses
}

test('holdings: a shard that ended here is compared with the store, also if another worker has taken it since', async (t) => {
  t.same(await lostAfterEnd({ seq: 12, token: '4:next' }), [], 'the next owner found everything')
  t.same(await lostAfterEnd({ seq: 11, token: '4:next' }), [1])
  t.same(await lostAfterEnd({ seq: 13, token: '3:theirs' }), [2], 'the grant is lost, and others have come further')
  t.same(await lostAfterEnd({ seq: 13, token: '2:before', owner: '' }), [2], 'the owner before has ended')
})

/** Which of two free shards a worker takes whose heartbeats have lapsed; the second one is its own. */
async function taken({ isHeard, hasLapsed }: { isHeard: boolean; hasLapsed: boolean }) {
  const opened: number[] = []
  let beats = 0
  const metas: Store['metas'] = async () => [
    { owner: '', seq: 0, token: '1:theirs' } as Meta,
    { owner: ME, seq: 0, token: '1:mine' } as Meta,
  ]
  const holdings = new Holdings({
    me: ME,
    store: { metas } as Store,
    clock: new WorkerClock(new VirtualTime(), { rate: 1, originMs: 0, storeMs: 0 }),
    members: new Members(ME),
    count: 2,
    takesShards: true,
    makeShard: (id) => ({ open: async () => opened.push(id) < 0 }) as unknown as Shard,
    ails: () => false,
    lost: () => undefined,
    beat: async () => {
      beats += 1
      return isHeard
    },
    hasLapsed: () => hasLapsed,
  })
  await holdings.check()
  return { opened, beats }
}

test('holdings: a worker whose record may be gone writes it before it takes a shard of another one', async (t) => {
  t.same(await taken({ hasLapsed: false, isHeard: false }), { opened: [0, 1], beats: 0 })
  t.same(await taken({ hasLapsed: true, isHeard: true }), { opened: [0, 1], beats: 1 })
  t.same(await taken({ hasLapsed: true, isHeard: false }), { opened: [1], beats: 1 }, 'only what is its own')
})
