/** Tests of cluster/batch.ts: the writes of several turns, as one commit. */
import { test } from 'tap'
import type { CommandType, Decision, EntityType, LaneType, Op } from '../../../cluster/behaviour.ts'
import { FactRounds, FactView } from '../../../cluster/facts/facts.ts'
import { Memory } from '../../../cluster/facts/memory.ts'
import { isId, makeIds } from '../../../cluster/id.ts'
import { CLAIM_RULES } from '../../../cluster/items/claim.ts'
import { LaneIndex } from '../../../cluster/items/lane-index.ts'
import { LaneRunner } from '../../../cluster/items/lane-runner.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { sliceOf } from '../../../cluster/mailbox/replies.ts'
import { type BatchContext, decideBatch, discardPlan, type Plan } from '../../../cluster/shard/batch.ts'
import { damagedValue, withSum } from '../../../cluster/sum.ts'
import { internalWork, type Work, type WorkSource } from '../../../cluster/work.ts'

const NOW_MS = 1_700_000_000_000
const REF = { kind: 'sum', id: 'a' }
const SUM: EntityType<number, number> = { kind: 'sum', version: 3, empty: 0, apply: (state, event) => state + event }
const NONE = { entities: () => [], counters: () => [], facts: () => [] }

type Turn = (context: Parameters<CommandType['decide']>) => Decision<unknown>

/** A work whose decision is `turn`. */
function workOf(turn: Turn, source: WorkSource = 'local', more: Partial<Work> = {}): Work {
  const type: CommandType = { name: 'x', ...NONE, decide: (...args) => turn(args) }
  const command = { name: 'x', cmdId: 'loyw3u3z294a3ijtgk', body: {} }
  return { ...internalWork(source, type, { command, lane: '', item: '', cameAtMs: 0 }), ...more }
}

function contextOf(room = 1): BatchContext & { threwCount: () => number; lanes: LaneIndex; runner: LaneRunner } {
  const lane: LaneType = {
    prefix: 'send',
    holdMs: 9_000,
    claimsStand: false,
    prepare: { name: 'p', ...NONE, decide: () => ({ kind: 'done', reply: 'job' }) },
    outcome: { name: 'o', ...NONE, decide: () => ({ kind: 'done', reply: null }) },
    room: () => room,
    perform: () => new Promise(() => undefined),
  }
  const runner = new LaneRunner([lane], { failed: () => undefined })
  const lanes = new LaneIndex()
  const memory = new Memory()
  memory.loadEntity(REF, 10, NOW_MS)
  memory.loadCounter('a', { n: 1 }, NOW_MS)
  let threw = 0
  return {
    items: { shard: 0, worker: 'me', runner, lanes, rules: CLAIM_RULES, standing: new Map(), mayClaim: () => true },
    memory,
    entities: new Map([['sum', SUM as unknown as EntityType]]),
    ids: makeIds({ shard: 0, last: '', random: () => 0.5 }),
    nowMs: NOW_MS,
    seq: 7,
    view: (staged) => new FactView(new FactRounds(), [], staged),
    threw: () => {
      threw += 1
    },
    threwCount: () => threw,
    lanes,
    runner,
  }
}

function planOf(works: readonly Work[], context: BatchContext): Plan {
  const decided = decideBatch(works, context)
  if (decided.kind !== 'plan') throw new Error('Not a plan')
  return decided.plan
}

const written = ({ ops }: Pick<Plan, 'ops'>): string[] =>
  ops.map(({ key, write, args }: Op) => `${write} ${key} ${args.map(String).join(' ')}`)

test('batch: later turns see what earlier ones staged', async (t) => {
  const add: Turn = ([, states]) => {
    const { n } = states.counter<{ n: number }>('a')!
    return {
      kind: 'done',
      reply: [states.get<number>(REF), n],
      events: [{ ref: REF, event: 5 }],
      counters: [{ owner: 'a', value: { n: n + 1 } }],
    }
  }
  const context = contextOf()
  const plan = planOf([workOf(add), workOf(add)], context)
  t.same(
    plan.replies.map(({ reply }) => reply),
    [
      [10, 1],
      [15, 2],
    ],
  )
  t.same(written(plan), [
    `XADD {s000}:sum:a 7-0 ev [5,5] st ${withSum('20')} v 3 by x`,
    `HSET {s000}:counters a ${withSum('{"n":3}')}`,
  ])
  t.equal(context.memory.entity(REF, NOW_MS), 10, 'the memory waits for the commit')
})

test('batch: a refusal leaves what it records and nothing else; a throw leaves poison', async (t) => {
  const op: Op = { key: '{s000}:told', write: 'HSET', args: ['a', '1'] }
  const context = contextOf()
  const plan = planOf(
    [
      workOf(() => ({ kind: 'refuse', answer: 'no', records: { ops: [op] } })),
      workOf(() => ({ kind: 'refuse', answer: 'no' })),
      workOf(() => {
        throw new Error('Thrown on purpose')
      }),
      workOf(() => ({
        kind: 'done',
        reply: 'yes',
        events: [{ ref: { kind: 'unknown', id: 'a' }, event: 1 }],
        ops: [op],
      })),
      workOf(() => {
        throw damagedValue('row')
      }),
    ],
    context,
  )
  t.same(
    plan.replies.map(({ reply, fault }) => [reply, fault]),
    [
      ['no', null],
      ['no', null],
      [null, { kind: 'fault' }],
      [null, { kind: 'fault' }],
      [null, { kind: 'fault', isDamaged: true }],
    ],
  )
  t.same(written(plan).filter((line) => line.includes('told')).length, 1)
  t.same(written(plan).filter((line) => line.startsWith('XADD {s000}:poison')).length, 3)
  t.equal(context.threwCount(), 3)
})

test('batch: a need stops the whole batch, and gives back what was reserved', async (t) => {
  const context = contextOf()
  const claims: Turn = () => ({
    kind: 'done',
    reply: 1,
    due: [{ lane: 'send/a', item: 'i1', atMs: NOW_MS, job: 'job' }],
  })
  const needs = workOf(() => ({ kind: 'need', facts: [{ read: 'value', key: 't' }] }))
  t.equal(decideBatch([workOf(claims), needs], context).kind, 'need')
  t.equal(needs.needs, 1)
  t.equal(context.runner.room('send/a'), 1)
  for (let round = 1; round < 8; round += 1) decideBatch([needs], context)
  const { replies } = planOf([needs], context)
  t.same(replies[0]?.fault, { kind: 'fault' }, 'the ninth time is a fault')
})

test('batch: ids rise and the plan names the first and the last', async (t) => {
  const ids: string[] = []
  const make: Turn = ([, , , turn]) => {
    ids.push(turn.newId(), turn.newId())
    return { kind: 'done', reply: null, ops: [] }
  }
  const plan = planOf([workOf(make), workOf(make)], contextOf())
  t.ok(ids.every(isId))
  t.same([...ids].sort(), ids)
  t.same([plan.firstId, plan.lid], [ids[0], ids[3]])
})

test('batch: an item with a job is claimed by its own commit while there is room', async (t) => {
  let made = 0
  const due: Turn = () => {
    made += 1
    return { kind: 'done', reply: 1, due: [{ lane: 'send/a', item: `i${made}`, atMs: NOW_MS, job: 'job' }] }
  }
  const context = contextOf(1)
  const plan = planOf([workOf(due), workOf(due)], context)
  t.equal(plan.claims.length, 1)
  t.same(plan.absent, [{ key: claimsKey(0), fields: ['i1'] }], 'its row need not be read')
  t.same(
    plan.placed.map(({ atMs, bound }) => [atMs - NOW_MS, bound]),
    [[0, true]],
  )
  discardPlan(plan, context.items)
  t.equal(context.runner.room('send/a'), 1)
})

test('batch: an item that comes back from outside of the lanes counts its attempts on', async (t) => {
  const item = { lane: 'send/a', item: 'i1', atMs: NOW_MS }
  const rowOf = (attempts?: number) =>
    written(
      planOf(
        [workOf(() => ({ kind: 'done', reply: 1, due: [{ ...item, ...(attempts !== undefined && { attempts }) }] }))],
        contextOf(),
      ),
    ).filter((line) => line.includes(':claims'))
  t.same(rowOf(3), [`HSET {s000}:claims i1 ["","send/a",3,0,0]`])
  t.same([rowOf(0), rowOf()], [[], []])
})

test('batch: an item that ends in the batch that claims it is not performed', async (t) => {
  const item = { lane: 'send/a', item: 'i1' }
  const context = contextOf()
  const plan = planOf(
    [
      workOf(() => ({ kind: 'done', reply: 1, due: [{ ...item, atMs: NOW_MS, job: 'job' }] })),
      workOf(() => ({ kind: 'done', reply: 1, done: [item] })),
    ],
    context,
  )
  t.same(plan.claims, [])
  t.equal(context.runner.room('send/a'), 1)
})

test('batch: the lower bound of a lane counts the items that the same batch places', async (t) => {
  const context = contextOf()
  context.lanes.load('send/a', 100)
  context.lanes.scanned('send/a', context.lanes.scan('send/a'), NOW_MS + 60_000)
  const place: Turn = () => ({ kind: 'done', reply: 1, due: [{ lane: 'send/a', item: 'i1', atMs: NOW_MS + 5 }] })
  const index = workOf(() => ({ kind: 'done', reply: null }), 'index', { lane: 'send/a' })
  const plan = planOf([index, workOf(place)], context)
  t.same(plan.indexed, [{ lane: 'send/a', atMs: NOW_MS + 5 }])
  t.equal(written(plan).at(-1), `ZADD {s000}:due ${NOW_MS + 5} send/a`)
})

const PARCEL = 'loyw3u3z294a3ijtgz'
const YES = '[{"kind":"answer","reply":"yes"}]'
const LATE_AND_TWO = '[{"kind":"unavailable"},{"kind":"answer","reply":2}]'

test('batch: mailbox commands are answered in the store, and the cursor passes them', async (t) => {
  const one = { parcelId: PARCEL, replyTo: 'w', count: 1 }
  const two = { parcelId: `${PARCEL}2`, replyTo: 'w', count: 2 }
  const plan = planOf(
    [
      workOf(() => ({ kind: 'done', reply: 'yes' }), 'mailbox', { entryId: '5-0', origin: one, place: 0 }),
      workOf(() => t.fail('a late command was decided') as never, 'mailbox', {
        entryId: '6-0',
        late: true,
        origin: two,
        place: 0,
      }),
      workOf(() => ({ kind: 'done', reply: 2 }), 'mailbox', { entryId: '6-0', origin: two, place: 1 }),
    ],
    contextOf(),
  )
  t.equal(plan.cursor, '6-0')
  const slice = sliceOf(PARCEL)
  t.same(written(plan), [
    `UNLINK {s000}:staged:${PARCEL} `,
    `UNLINK {s000}:staged:${PARCEL}2 `,
    'XTRIM {s000}:mailbox MINID 6-1',
    `HSET {s000}:replies:${slice} ${PARCEL}/0 1 ${YES} ${PARCEL}2/0 2 ${LATE_AND_TWO}`,
    `PEXPIREAT {s000}:replies:${slice} ${NOW_MS + 120_000}`,
  ])
  t.same([...plan.told], [['w', `${PARCEL}/0 ${YES}\n${PARCEL}2/0 ${LATE_AND_TWO}`]])
})

test('batch: a parcel may be done in part; what a behaviour could not bear is kept, and nothing else', async (t) => {
  const origin = { parcelId: PARCEL, replyTo: 'w', count: 4 }
  const from = { entryId: '5-3', origin }
  const throws = (): never => {
    throw new Error('Thrown on purpose')
  }
  const first = planOf(
    [
      workOf(() => ({ kind: 'done', reply: 0 }), 'mailbox', { ...from, place: 1 }),
      workOf(throws, 'mailbox', { ...from, place: 2 }),
    ],
    contextOf(),
  )
  t.equal(first.cursor, '5-3/3')
  const lines = written(first)
  t.ok(lines.includes('XTRIM {s000}:mailbox MINID 5-3'), 'the entry stays')
  t.notOk(
    lines.some((line) => line.startsWith('UNLINK')),
    'so does what it says',
  )
  const cmdId = 'loyw3u3z294a3ijtgk'
  t.ok(lines.includes(`SET {s000}:staged:${cmdId} 2\n{} PXAT ${NOW_MS + 86_400_000}`))
  t.match([...first.told.values()], [new RegExp(`^${PARCEL}/1 .*"fault"`)])
  const last = planOf([workOf(() => ({ kind: 'done', reply: 0 }), 'mailbox', { ...from, place: 3 })], contextOf())
  t.equal(last.cursor, '5-3')
  t.ok(written(last).includes(`UNLINK {s000}:staged:${PARCEL} `))
})

test('batch: streams without ids of their own are numbered by the commit', async (t) => {
  const op: Op = { key: '{s000}:q', write: 'XADD', args: ['*seq', 'f', '1'] }
  const plan = planOf([workOf(() => ({ kind: 'done', reply: 1, ops: [op, op] }))], contextOf())
  t.same(written(plan), ['XADD {s000}:q 7-0 f 1', 'XADD {s000}:q 7-1 f 1'])
})
