/** Tests of cluster/shard/verdict.ts: the action for each verdict, as a table. */
import t from 'tap'
import type { CommandType } from '../../../cluster/behaviour.ts'
import { type Action, actionOn } from '../../../cluster/shard/verdict.ts'
import type { Verdict } from '../../../cluster/store.ts'
import { internalWork, type Work, type WorkSource } from '../../../cluster/work.ts'

const TYPE: CommandType = {
  name: 'x',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: () => ({ kind: 'done', reply: null }),
}
const SEQ = 7

function workOf(source: WorkSource, cmdId: string): Work {
  return internalWork(source, TYPE, { command: { name: 'x', cmdId, body: {} }, lane: '', item: '', cameAtMs: 0 })
}

const ask = workOf('local', 'ask')
const entry = workOf('mailbox', 'entry')
const outcome = workOf('outcome', 'outcome')
const works = [ask, entry, outcome]
const on = (verdict: Verdict, of: readonly Work[] = works): Action =>
  actionOn(verdict, { plan: { works: of }, commit: { seq: SEQ }, isDoubted: false })

const CASES: [string, Verdict, Action][] = [
  ['what was committed is confirmed', { kind: 'ok' }, { kind: 'confirm' }],
  ['so is what an earlier sending committed', { kind: 'dup' }, { kind: 'confirm' }],
  ['another owner is asked', { kind: 'fenced' }, { kind: 'ask next owner' }],
  ['a store that has lost commits: given up', { kind: 'conflict', seq: 6 }, { kind: 'give up', storeSeq: 6 }],
  [
    'a store that is ahead: halted',
    { kind: 'conflict', seq: 8 },
    { kind: 'halt', reason: 'Sequence number 8 is above mine, 7', storeSeq: 8 },
  ],
  ['a torn one as well', { kind: 'torn', reason: 'Why' }, { kind: 'halt', reason: 'Why' }],
  ['a clock that is off is set', { kind: 'clock', nowMs: 5 }, { kind: 'again', works, refused: [], storeNowMs: 5 }],
  ['also by a deadline', { kind: 'late', nowMs: 5 }, { kind: 'again', works, refused: [], storeNowMs: 5 }],
  ['never sent: again, after a pause', { kind: 'unsent' }, { kind: 'again', works, refused: [], pauses: true }],
  [
    'a full store refuses asks of this process alone',
    { kind: 'refused', reason: 'OOM' },
    { kind: 'again', works: [entry, outcome], refused: [ask], isFull: true, pauses: true },
  ],
  [
    'an ask whose content has expired is refused',
    { kind: 'missing', key: '{s000}:content:ask-0:body' },
    { kind: 'again', works: [entry, outcome], refused: [ask], areLate: true },
  ],
  [
    'a command of the mailbox as well, and its entry is passed',
    { kind: 'missing', key: '{s000}:content:entry-0:body' },
    { kind: 'again', works, refused: [entry], areLate: true },
  ],
]

t.test('verdict: the action for each one', async (t) => {
  for (const [name, verdict, action] of CASES) t.strictSame(on(verdict), action, name)
  t.ok(
    works.every(({ late, broken, answer }) => !late && broken === null && answer === null),
    'nothing is changed',
  )
  t.throws(() => on({ kind: 'lost' }), /unknown outcome/)
})

t.test('verdict: an unknown commit that did not happen: reads since then are repeated, with the shard', async (t) => {
  const doubted = (verdict: Verdict): Action =>
    actionOn(verdict, { plan: { works }, commit: { seq: SEQ }, isDoubted: true })
  t.strictSame(doubted({ kind: 'late', nowMs: 5 }), { kind: 'give up', storeNowMs: 5 })
  t.strictSame(doubted({ kind: 'clock', nowMs: 5 }), { kind: 'give up', storeNowMs: 5 })
  t.strictSame(doubted({ kind: 'missing', key: '{s000}:content:ask-0:body' }), { kind: 'give up' })
  t.strictSame(doubted({ kind: 'badop', reason: 'Why' }), { kind: 'give up' })
  for (const verdict of [{ kind: 'ok' }, { kind: 'dup' }, { kind: 'fenced' }, { kind: 'conflict', seq: 6 }] as const)
    t.strictSame(doubted(verdict), on(verdict), `${verdict.kind} says what it says`)
})

t.test('verdict: a commit against the rules is halved until one command is left, which is blamed, once', async (t) => {
  const verdict: Verdict = { kind: 'badop', reason: 'Why' }
  t.strictSame(on(verdict, [...works, outcome]), {
    kind: 'halve',
    reason: 'Why',
    first: [ask, entry],
    rest: [outcome, outcome],
    blame: null,
  })
  const blamed = on(verdict, [ask])
  if (blamed.kind !== 'halve' || blamed.blame === null) return t.fail('nobody is blamed')
  t.same([blamed.first, blamed.rest], [[ask], []])
  t.match(blamed.blame.message, /refused what the command ordered/)
  const broken = { ...ask, broken: blamed.blame }
  t.strictSame(on(verdict, [broken]), { kind: 'halt', reason: 'Why', isAgainstRules: true })
  t.equal(
    on(verdict, [{ ...ask, broken: new Error('of its own') }]).kind,
    'halve',
    'what threw by itself is no such thing',
  )
  t.equal(on({ kind: 'missing', key: 'of nobody' }, [outcome]).kind, 'halve', 'nor is a key that no ask brought')
})
