/** due-scanner - when a shard looks for due items of a lane: at a tick, or as soon as there is room again. */
import { test } from 'tap'
import type { CommandType, LaneType, Op } from '../../../cluster/behaviour.ts'
import { dueKey, laneKey } from '../../../cluster/keyspace.ts'
import type { Commit } from '../../../cluster/store.ts'
import { Rig } from '../../support/store/shard-rig.ts'

const LANE = 'work'
const SAW = '0:before'
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const ROOM = 2
const ITEMS = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

interface Begun {
  readonly item: string
  readonly attempt: number
}

/** A shard that was left with items due, in a lane with two performers that end when the test ends them. */
async function setUp(more: Partial<LaneType>) {
  const begun: Begun[] = []
  const ended: Begun[] = []
  const prepare: CommandType<never, string> = { name: 'p', ...NONE, decide: () => ({ kind: 'done', reply: 'job' }) }
  const outcome: CommandType<never, null> = { name: 'o', ...NONE, decide: () => ({ kind: 'done', reply: null }) }
  const lane: LaneType = {
    prefix: LANE,
    holdMs: 60_000,
    claimsStand: false,
    prepare: prepare as unknown as LaneType['prepare'],
    outcome: outcome as unknown as LaneType['outcome'],
    room: () => ROOM - (begun.length - ended.length),
    perform: (_job, { item, attempt }) => {
      begun.push({ item, attempt })
      return new Promise(() => undefined)
    },
    ...more,
  }
  const rig = new Rig([lane])
  await rig.store.acquire({ shard: 0, sawToken: '', newToken: SAW, worker: 'other' })
  const dueMs = rig.store.nowMs - 1
  const ops: Op[] = ITEMS.map((item) => ({ key: laneKey(0, LANE), write: 'ZADD', args: [String(dueMs), item] }))
  ops.push({ key: dueKey(0), write: 'ZADD', args: [String(dueMs), LANE] })
  const cursors = { lid: '', firstEntryId: '', cursor: '', outcomesCursor: '' }
  const head = { shard: 0, token: SAW, seq: 0, commitId: 'c', ...cursors }
  const commit: Commit = { ...head, nowMs: rig.store.nowMs, deadlineMs: 0, frees: false, note: '', ops }
  await rig.store.commit(commit)
  await rig.open(SAW)
  rig.shard.tick(0)
  await rig.pass(0)
  const end = async (): Promise<void> => {
    for (const one of begun.slice(ended.length)) {
      ended.push(one)
      rig.shard.report({ lane: LANE, job: null, ...one }, 'ended')
    }
    await rig.pass(0)
  }
  return { rig, begun, end }
}

test('due-scanner: a lane is filled at a tick, and again at the next one', async (t) => {
  const { rig, begun, end } = await setUp({})
  t.equal(begun.length, ROOM)
  await end()
  t.equal(begun.length, ROOM, 'room alone does not begin anything')
  rig.shard.tick(0)
  await rig.pass(0)
  t.equal(begun.length, 2 * ROOM)
})

test('due-scanner: a prompt lane is filled whenever an attempt has ended, without a tick', async (t) => {
  const { rig, begun, end } = await setUp({ prompt: true })
  t.equal(begun.length, ROOM)
  for (let n = 0; n < ITEMS.length; n += 1) await end()
  t.same(
    begun.map(({ item }) => item),
    ITEMS,
  )
  const commits = rig.commits.length
  await end()
  t.equal(rig.commits.length, commits, 'with nothing due nothing is looked for')
})

test('due-scanner: what a commit puts into a prompt lane begins without a tick', async (t) => {
  const { rig, begun, end } = await setUp({ prompt: true })
  for (let n = 0; n < ITEMS.length; n += 1) await end()
  const place: CommandType<object, null> = {
    name: 'place',
    ...NONE,
    decide: (_body, _states, _facts, { nowMs }) => ({
      kind: 'done',
      reply: null,
      due: [{ lane: LANE, item: 'z', atMs: nowMs }],
    }),
  }
  void rig.shard.ask({ name: 'place', cmdId: 'z', body: {} }, place as CommandType, 0)
  await rig.pass(0)
  t.equal(begun.at(-1)?.item, 'z')
})
