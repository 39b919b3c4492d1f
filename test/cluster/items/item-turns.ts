/** Tests of cluster/item-turns.ts: the states of an item, from its score and its row of claims. */
import { test } from 'tap'
import type {
  Command,
  CommandType,
  Context,
  Decision,
  Facts,
  LaneType,
  Op,
  OutcomeBody,
  States,
} from '../../../cluster/behaviour.ts'
import { FactRounds, FactView } from '../../../cluster/facts/facts.ts'
import { Overlay } from '../../../cluster/facts/overlay.ts'
import {
  CLAIM_RULES,
  CLAIMS_MAX,
  type ClaimRow,
  formatClaim,
  type ItemContext,
  isHeld,
  parseClaim,
} from '../../../cluster/items/claim.ts'
import { claimType, freeType, outcomeType, timerType } from '../../../cluster/items/item-turns.ts'
import { LaneIndex } from '../../../cluster/items/lane-index.ts'
import { type Claim, LaneRunner } from '../../../cluster/items/lane-runner.ts'
import { claimsKey, laneKey } from '../../../cluster/keyspace.ts'

const NOW_MS = 100_000
const HOLD_MS = 9_000
const BODY = { lane: 'send/a', item: 'i1' }
const TURN: Context = { nowMs: NOW_MS, shard: 0, newId: () => 'none' }
const STATES: States = { get: () => ({}) as never, has: () => true, counter: () => null, hasCounter: () => true }
const COMMAND: Command = { name: 'x', cmdId: 'c', body: null }
const NONE = { entities: () => [], counters: () => [], facts: () => [] }
const WAITING: ClaimRow = { worker: '', lane: BODY.lane, attempt: 2, untilMs: 0, claims: 0 }

interface Setup {
  score?: number | null
  row?: ClaimRow | null
  room?: number
  job?: string | null
  outcome?: Decision<unknown>
}

/** A family of lanes, the context of its items and the facts of one item. */
function setUp({ score = NOW_MS, row = null, room = 1, job = 'job', outcome = { kind: 'done', reply: null } }: Setup) {
  const seen: OutcomeBody[] = []
  const lane: LaneType<string, string> = {
    prefix: 'send',
    holdMs: HOLD_MS,
    claimsStand: false,
    prepare: { name: 'prepare', ...NONE, decide: () => ({ kind: 'done', reply: job }) },
    outcome: {
      name: 'outcome',
      ...NONE,
      decide: (body) => {
        seen.push(body)
        return outcome
      },
    },
    room: () => room,
    perform: () => new Promise(() => undefined),
  }
  const runner = new LaneRunner([lane as unknown as LaneType], { failed: () => undefined })
  const context: ItemContext = {
    shard: 0,
    worker: 'me',
    runner,
    lanes: new LaneIndex(),
    rules: CLAIM_RULES,
    standing: new Map(),
    mayClaim: () => true,
  }
  const rounds = new FactRounds()
  const facts = [
    { read: 'score', key: laneKey(0, BODY.lane), member: BODY.item },
    { read: 'score', key: laneKey(0, 'timers'), member: 'tick:a' },
    { read: 'fields', key: claimsKey(0), fields: [BODY.item] },
  ] as const
  rounds.add(1, facts, [score, score, [row === null ? null : formatClaim(row)]])
  const view: Facts = new FactView(rounds, [], new Overlay())
  return { lane: lane as unknown as LaneType, context, view, seen }
}

function decide<Body, Reply>(type: CommandType<Body, Reply>, body: Body, facts: Facts): Decision<Reply> {
  return type.decide(body, STATES, facts, TURN, COMMAND as Command<Body>)
}

const opsOf = (decision: Decision<unknown>): string[] =>
  decision.kind === 'done' ? (decision.ops ?? []).map((op: Op) => [op.write, ...op.args.map(String)].join(' ')) : []

test('item-turns: what may be claimed', async (t) => {
  const claimed = { ...BODY, attempt: 1, job: 'job' }
  const cases: [string, Setup, Claim | null, number][] = [
    ['due now', {}, claimed, 2],
    ['due later', { score: NOW_MS + 1 }, null, 0],
    ['gone', { score: null }, null, 0],
    ['no room', { room: 0 }, null, 0],
    ['waiting for its third attempt', { row: WAITING }, { ...claimed, attempt: 3 }, 2],
    ['claimed by another, and lapsed', { row: { ...WAITING, worker: 'w', claims: 4 } }, { ...claimed, attempt: 3 }, 2],
    ['finished, says the behaviour', { job: null }, null, 0],
  ]
  for (const [name, setup, expected, ops] of cases) {
    const { lane, context, view } = setUp(setup)
    const decision = decide(claimType(lane, context), BODY, view)
    if (decision.kind !== 'done') return t.fail(name)
    t.same(decision.reply, expected, name)
    t.equal(opsOf(decision).length, ops, name)
  }
})

test('item-turns: a full store keeps nobody from claiming, ending or freeing', async (t) => {
  const { lane, context } = setUp({})
  for (const { frees, name } of [claimType(lane, context), outcomeType(lane, context), freeType(context)])
    t.equal(frees, true, name)
})

test('item-turns: a claim moves the score with XX and counts', async (t) => {
  const { lane, context, view } = setUp({ row: { ...WAITING, claims: 1 } })
  const row = { worker: 'me', lane: BODY.lane, attempt: 3, untilMs: NOW_MS + HOLD_MS, claims: 2 }
  t.same(opsOf(decide(claimType(lane, context), BODY, view)), [
    `ZADD XX ${NOW_MS + HOLD_MS} i1`,
    `HSET i1 ${formatClaim(row)}`,
  ])
  t.same(parseClaim(formatClaim(row)), row)
  t.equal(parseClaim(null), null)
})

test('item-turns: what is performed here is held, not claimed again', async (t) => {
  const { lane, context, view } = setUp({})
  context.runner.start({ ...BODY, attempt: 1, job: 'job' }, { shard: 0, report: () => undefined })
  t.same(opsOf(decide(claimType(lane, context), BODY, view)), [`ZADD XX ${NOW_MS + HOLD_MS} i1`])
})

test('item-turns: claims without an outcome end the item', async (t) => {
  const { lane, context, view, seen } = setUp({ row: { ...WAITING, worker: 'w', claims: CLAIMS_MAX } })
  const decision = decide(claimType(lane, context), BODY, view)
  t.same(decision.kind === 'done' && decision.done, [BODY])
  t.same(
    seen.map(({ outcome, current }) => [outcome, current]),
    [[null, true]],
  )
  t.match(opsOf(decision)[0], /^XADD \*seq c x i i1 e /)
})

test('item-turns: what an outcome leaves behind', async (t) => {
  const again: Decision<unknown> = { kind: 'done', reply: null, due: [{ ...BODY, atMs: NOW_MS + 5 }] }
  const ends: Decision<unknown> = { kind: 'done', reply: null, done: [BODY] }
  const row = { ...WAITING, worker: 'me', claims: 3 }
  const cases: [string, Setup, number, boolean, boolean, number][] = [
    ['the latest attempt ends it', { row }, 2, true, true, 0],
    ['an earlier one alone does not', { row }, 1, false, false, 0],
    ['an earlier one that is final does', { row, outcome: ends }, 1, false, true, 0],
    ['it waits again, its claims forgotten', { row, outcome: again }, 2, true, false, 1],
    ['one that comes a second time changes nothing', { row: WAITING }, 2, false, false, 0],
    ['an unknown item is left alone', { row: null }, 1, false, false, 0],
  ]
  for (const [name, setup, attempt, current, leaves, ops] of cases) {
    const { lane, context, view, seen } = setUp(setup)
    const decision = decide(outcomeType(lane, context), { ...BODY, attempt, current: false, outcome: 'ok' }, view)
    if (decision.kind !== 'done') return t.fail(name)
    t.equal(seen[0]?.current, current, name)
    t.equal((decision.done ?? []).length > 0, leaves, name)
    t.equal(opsOf(decision).length, ops, name)
    if (ops > 0) t.same(parseClaim(String(decision.ops?.[0]?.args[1])), { ...WAITING, attempt: 2 }, name)
  }
})

test('item-turns: a serial lane is held until every attempt of another worker has ended or lapsed', async (t) => {
  const { lane, context } = setUp({})
  const unknown = { has: () => false, field: () => null } as unknown as Facts
  const serial = outcomeType({ ...lane, serial: true }, context)
  const first = { item: 'i1', attempt: 1, untilMs: NOW_MS + 5 }
  const second = { item: 'i2', attempt: 4, untilMs: NOW_MS + 9 }
  const ends = ({ item, attempt }: typeof first) =>
    decide(serial, { lane: BODY.lane, item, attempt, current: false, outcome: 'ok' }, unknown)
  context.standing.set(BODY.lane, [first, second])
  ends(second)
  t.same(context.standing.get(BODY.lane), [first], 'the other one is still under way')
  t.ok(isHeld(context, BODY.lane, NOW_MS))
  ends({ ...first, attempt: 2 })
  t.ok(isHeld(context, BODY.lane, NOW_MS), 'an attempt that it does not know of changes nothing')
  ends(first)
  t.notOk(isHeld(context, BODY.lane, NOW_MS))
  context.standing.set(BODY.lane, [second, first])
  t.ok(isHeld(context, BODY.lane, second.untilMs - 1))
  t.notOk(isHeld(context, BODY.lane, second.untilMs), 'all have lapsed')
})

test('item-turns: a timer fires when due, and leaves unless it arms itself again', async (t) => {
  const body = { item: 'tick:a' }
  const item = { lane: 'timers', item: 'tick:a' }
  let fired = 0
  const timer = (due: boolean): CommandType<{ item: string }, unknown> => ({
    name: 'tick',
    ...NONE,
    decide: () => {
      fired += 1
      return { kind: 'done', reply: null, due: due ? [{ ...item, atMs: NOW_MS + 1 }] : [] }
    },
  })
  for (const [score, arms, leaves, fires] of [
    [NOW_MS, false, true, 1],
    [NOW_MS, true, false, 1],
    [NOW_MS + 1, true, false, 0],
    [null, true, false, 0],
  ] as const) {
    fired = 0
    const { context, view } = setUp({ score })
    const decision = decide(timerType(timer(arms), context), body, view)
    t.equal(fired, fires)
    t.same(decision.kind === 'done' ? (decision.done ?? []) : null, leaves ? [item] : [])
  }
})

test('item-turns: claims of the dead are due at once, those that have left, are due or another holds are not touched', async (t) => {
  const of = (worker: string) => ({ worker, lane: BODY.lane, attempt: 1, untilMs: NOW_MS + 5, claims: 1 })
  for (const [score, row, due] of [
    [NOW_MS + 5, of('dead'), 1],
    [NOW_MS, of('dead'), 0],
    [null, of('dead'), 0],
    [NOW_MS + 5, of('other'), 0],
    [NOW_MS + 5, of(''), 0],
    [NOW_MS + 5, null, 0],
  ] as const) {
    const { context, view } = setUp({ score, row })
    const decision = decide(freeType(context), { items: [{ ...BODY, worker: 'dead', afterMs: 0 }] }, view)
    const dues =
      decision.kind === 'done' ? (decision.due ?? []).map(({ lane, item, atMs }) => ({ lane, item, atMs })) : null
    t.same(dues, due === 1 ? [{ ...BODY, atMs: NOW_MS }] : [], `${score} ${row?.worker}`)
  }
})
