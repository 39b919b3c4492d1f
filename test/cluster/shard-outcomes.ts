/** Tests of cluster/shard.ts: outcomes that lie there when it is taken, and what it claims beside them. */
import { test } from 'tap'
import type { CommandType, LaneType, Op } from '../../cluster/behaviour.ts'
import { sortableEntryId } from '../../cluster/id.ts'
import { formatClaim } from '../../cluster/item-turns.ts'
import { claimsKey, dueKey, laneKey } from '../../cluster/keyspace.ts'
import { packStaged } from '../../cluster/staged.ts'
import type { Commit, Verdict } from '../../cluster/store.ts'
import { Rig } from '../support/shard-rig.ts'

const LANE = 'send'
const KEY = '{s000}:seen'
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const SAW = '0:before'

/** A lane that notes what it performs, and whose outcomes `<word>` are written down; those that begin with `x` read first. */
function laneOf(performed: string[]): LaneType {
  const prepare: CommandType<never, string> = {
    name: 'prepare',
    ...NONE,
    decide: () => ({ kind: 'done', reply: 'job' }),
  }
  const outcome: CommandType<{ outcome: string }, null> = {
    name: 'outcome',
    ...NONE,
    facts: ({ outcome: word }) => (word.startsWith('x') ? [{ read: 'fields', key: KEY, fields: [word] }] : []),
    decide: ({ outcome: word }) => {
      const ops: Op[] = [{ key: KEY, write: 'HSET', args: [word, '1'] }]
      return { kind: 'done', reply: null, ops }
    },
  }
  return {
    prefix: LANE,
    holdMs: 60_000,
    claimsStand: true,
    prepare: prepare as unknown as LaneType['prepare'],
    outcome: outcome as unknown as LaneType['outcome'],
    room: () => 10,
    perform: (_job, { item }) => {
      performed.push(item)
      return new Promise(() => undefined)
    },
  }
}

/** A shard as another worker has left it: these items lie in the lane, due then, with an attempt that it has claimed. */
async function leftBehind(rig: Rig, items: readonly string[], { dueMs }: { dueMs: number }): Promise<void> {
  await rig.store.acquire({ shard: 0, sawToken: '', newToken: SAW, worker: 'other' })
  const row = formatClaim({ worker: 'other', lane: LANE, attempt: 2, untilMs: dueMs, claims: 1 })
  const ops: Op[] = items.flatMap((item): Op[] => [
    { key: claimsKey(0), write: 'HSET', args: [item, row] },
    { key: laneKey(0, LANE), write: 'ZADD', args: [String(dueMs), item] },
  ])
  ops.push({ key: dueKey(0), write: 'ZADD', args: [String(dueMs), LANE] })
  const named = {
    shard: 0,
    token: SAW,
    seq: 0,
    commitId: 'c',
    lid: '',
    firstEntryId: '',
    cursor: '',
    outcomesCursor: '',
  }
  const commit: Commit = { ...named, nowMs: rig.store.nowMs, deadlineMs: 0, frees: false, note: '', ops }
  if ((await rig.store.commit(commit)).kind !== 'ok') throw new Error('The shard cannot be left')
}

/** Another worker hands an outcome in. */
async function handIn(
  rig: Rig,
  { item, attempt, word }: { item: string; attempt: number; word: string },
): Promise<void> {
  const body = packStaged({ body: { lane: LANE, item, attempt, current: false, outcome: word } })
  await rig.store.handIn({ shard: 0, cmdId: `${item}${attempt}`, body })
}

test('shard: outcomes of other processes are taken up in their order, also where one must be read for', async (t) => {
  const rig = new Rig([laneOf([])])
  await leftBehind(rig, ['a', 'b'], { dueMs: rig.store.nowMs + 600_000 })
  // Of an attempt before: the rows of both items are known from then on.
  for (const item of ['a', 'b']) await handIn(rig, { item, attempt: 1, word: 'old' })
  await rig.open(SAW)
  await rig.pass(500)
  const confirm: (() => void)[] = []
  rig.script = (_commit, apply) => new Promise<Verdict>((resolve) => confirm.push(() => resolve(apply())))
  rig.ask()
  await rig.pass(0)
  rig.ask()
  await rig.pass(0)
  t.equal(confirm.length, 1, 'a commit is under way, and the next batch is open')
  await handIn(rig, { item: 'a', attempt: 2, word: 'x' })
  await handIn(rig, { item: 'b', attempt: 2, word: 'known' })
  rig.shard.ring()
  await rig.pass(0)
  for (let n = 0; n < 10; n += 1) {
    confirm[n]?.()
    await rig.pass(0)
  }
  const seen = rig.commits.flatMap(({ ops }) => ops.filter(({ key }) => key === KEY).map(({ args }) => args[0]))
  t.same(seen, ['old', 'old', 'x', 'known'])
  const cursors = rig.commits.map(({ outcomesCursor }) => outcomesCursor).filter((cursor) => cursor !== '')
  const sorted = cursors.toSorted((a, b) => (sortableEntryId(a) < sortableEntryId(b) ? -1 : 1))
  t.same(cursors, sorted, 'the cursor never goes back')
})

test('shard: what a scan finds after the shard was closed is not claimed', async (t) => {
  const performed: string[] = []
  const rig = new Rig([laneOf(performed)])
  await leftBehind(rig, ['a'], { dueMs: rig.store.nowMs - 1 })
  await rig.open(SAW)
  const confirm: (() => void)[] = []
  rig.script = (_commit, apply) => new Promise<Verdict>((resolve) => confirm.push(() => resolve(apply())))
  rig.ask()
  await rig.pass(0)
  t.equal(confirm.length, 1, 'a commit is under way')
  let open = (): void => undefined
  rig.gate = new Promise((resolve) => {
    open = resolve
  })
  rig.shard.tick(0)
  const closed = rig.shard.close()
  open()
  await rig.pass(0)
  for (let n = 0; n < 10; n += 1) {
    confirm[n]?.()
    await rig.pass(0)
  }
  await closed
  t.same(performed, [])
  t.notOk(
    rig.commits.some(({ ops }) => ops.some(({ key }) => key === claimsKey(0))),
    'nor by any commit',
  )
})
