/** Tests of cluster/shard.ts: outcomes that are present when it is taken, and the claims it makes along with them. */
import { test } from 'tap'
import type { CommandType, Fact, LaneType, Op } from '../../cluster/behaviour.ts'
import { sortableEntryId } from '../../cluster/id.ts'
import { formatClaim } from '../../cluster/items/claim.ts'
import { claimsKey, dueKey, laneKey, metaKey } from '../../cluster/keyspace.ts'
import { packStaged } from '../../cluster/mailbox/staged.ts'
import type { Commit, Verdict } from '../../cluster/store.ts'
import { Rig } from '../support/store/shard-rig.ts'

const LANE = 'send'
const KEY = '{s000}:seen'
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const SAW = '0:before'

/**
 * A lane that notes what it performs, and whose outcomes `<word>` are written down; those that begin with `x` read
 * first, `asks` asks for more when it is decided.
 */
function laneOf(performed: string[], more: Partial<LaneType> = {}): LaneType {
  const prepare: CommandType<never, string> = {
    name: 'prepare',
    ...NONE,
    decide: () => ({ kind: 'done', reply: 'job' }),
  }
  const fact = (word: string): Fact => ({ read: 'fields', key: KEY, fields: [word] })
  const outcome: CommandType<{ outcome: string | null }, null> = {
    name: 'outcome',
    ...NONE,
    facts: ({ outcome: word }) => (word?.startsWith('x') === true ? [fact(word)] : []),
    decide: ({ outcome }, _states, facts) => {
      const word = outcome ?? 'abandoned'
      if (word === 'asks' && !facts.has(fact(word))) return { kind: 'need', facts: [fact(word)] }
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
    ...more,
  }
}

/**
 * A shard as another worker left it: these items are in the lane, the first one due then, with an attempt that it
 * claimed.
 */
async function leftBehind(
  rig: Rig,
  items: readonly string[],
  { dueMs, firstMs = dueMs }: { dueMs: number; firstMs?: number },
): Promise<void> {
  await rig.store.acquire({ shard: 0, sawToken: '', newToken: SAW, worker: 'other' })
  const row = formatClaim({ worker: 'other', lane: LANE, attempt: 2, untilMs: dueMs, claims: 1 })
  const ops: Op[] = items.flatMap((item): Op[] => [
    { key: claimsKey(0), write: 'HSET', args: [item, row] },
    { key: laneKey(0, LANE), write: 'ZADD', args: [String(item === items[0] ? firstMs : dueMs), item] },
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

/** The outcomes in the commits. */
function wordsOf({ commits }: Rig): (string | Uint8Array | undefined)[] {
  return commits.flatMap(({ ops }) => ops.filter(({ key }) => key === KEY).map(({ args }) => args[0]))
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
  // Of an earlier attempt. The rows of both items are known from then on.
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
  t.same(wordsOf(rig), ['old', 'old', 'x', 'known'])
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

test('shard: the end of an attempt claims nothing while outcomes that lay there are not taken up', async (t) => {
  const performed: string[] = []
  const rig = new Rig([laneOf(performed, { serial: true })])
  // More than a batch. The outcome of the item that is due first comes last.
  const items = Array.from({ length: 70 }, (_, n) => `i${n}`)
  const nowMs = rig.store.nowMs
  await leftBehind(rig, items, { dueMs: nowMs - 1_000, firstMs: nowMs - 2_000 })
  for (const item of [...items.slice(1), 'i0']) await handIn(rig, { item, attempt: 2, word: item })
  await rig.open(SAW)
  await rig.pass(1_000)
  t.equal(wordsOf(rig).length, items.length, 'all are taken up')
  t.same(performed, [])
})

test('shard: what ends while a shard is given back goes to the next owner, and is not decided', async (t) => {
  const rig = new Rig([laneOf([])])
  await leftBehind(rig, ['a'], { dueMs: rig.store.nowMs + 600_000 })
  await rig.open(SAW)
  const commits = rig.commits.length
  let released = (_is: boolean): void => undefined
  rig.store.release = () =>
    new Promise((resolve) => {
      released = resolve
    })
  const closed = rig.shard.close()
  await rig.pass(0)
  rig.shard.report({ lane: LANE, item: 'a', attempt: 2, job: null }, 'ended')
  await rig.pass(100)
  t.equal(rig.commits.length, commits)
  released(true)
  await closed
  t.same(
    rig.forwarded.map(({ source, item }) => [source, item]),
    [['outcome', 'a']],
  )
})

test('shard: an outcome whose commit is in doubt goes to the next owner as well', async (t) => {
  const rig = new Rig([laneOf([])])
  await leftBehind(rig, ['a'], { dueMs: rig.store.nowMs + 600_000 })
  await rig.open(SAW)
  rig.script = () => Promise.resolve({ kind: 'lost' })
  rig.shard.report({ lane: LANE, item: 'a', attempt: 2, job: null }, 'ended')
  await rig.pass(100)
  t.ok(rig.commits.length > 0, 'it was sent')
  rig.shard.drop()
  t.same(
    rig.forwarded.map(({ source, item }) => [source, item]),
    [['outcome', 'a']],
  )
})

test('shard: while nothing can be read, nothing is given up for having asked too often', async (t) => {
  const rig = new Rig([laneOf([])])
  await leftBehind(rig, ['a'], { dueMs: rig.store.nowMs + 600_000 })
  await rig.open(SAW)
  const report = (attempt: number, word: string): void =>
    rig.shard.report({ lane: LANE, item: 'a', attempt, job: null }, word)
  report(1, 'late')
  await rig.pass(100)
  const read = rig.store.read.bind(rig.store)
  rig.store.read = () => Promise.resolve(null)
  report(2, 'asks')
  await rig.pass(3_000)
  t.same(wordsOf(rig), ['late'])
  rig.store.read = read
  await rig.pass(1_000)
  t.same(wordsOf(rig), ['late', 'asks'])
})

test('shard: after a move nothing is claimed before the outcomes have come that nobody took during it', async (t) => {
  const performed: string[] = []
  const rig = new Rig([laneOf(performed)])
  await leftBehind(rig, ['a', 'b'], { dueMs: rig.store.nowMs - 1 })
  rig.store.write({ key: metaKey(0), write: 'HSET', args: ['freed', String(rig.store.nowMs - 100)] })
  await rig.open(SAW)
  for (let n = 0; n < 3; n += 1) {
    rig.shard.tick(0)
    await rig.pass(250)
  }
  t.same(performed, [], 'both are over their time')
  await handIn(rig, { item: 'a', attempt: 2, word: 'late' })
  rig.shard.ring()
  await rig.pass(1_000)
  t.same(wordsOf(rig), ['late'])
  await rig.pass(250)
  rig.shard.tick(0)
  await rig.pass(0)
  t.same(performed, ['b'])
})

test('shard: what a scan finds while the clock is set back to before the end of the wait is found again', async (t) => {
  const performed: string[] = []
  const rig = new Rig([laneOf(performed)])
  await leftBehind(rig, ['a', 'b'], { dueMs: rig.store.nowMs - 1 })
  rig.store.write({ key: metaKey(0), write: 'HSET', args: ['freed', String(rig.store.nowMs)] })
  await rig.open(SAW)
  await rig.pass(2_000)
  let open = (): void => undefined
  rig.gate = new Promise((resolve) => {
    open = resolve
  })
  rig.shard.tick(0)
  rig.store.nowMs -= 10
  rig.clock.set(rig.store.nowMs, rig.time.nowMs)
  open()
  await rig.pass(0)
  t.same(performed, [], 'the wait after the move has not ended by this clock')
  await rig.pass(250)
  rig.shard.tick(0)
  await rig.pass(0)
  t.same(performed, ['a', 'b'])
})
