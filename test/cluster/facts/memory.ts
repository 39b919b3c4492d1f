/** Tests of cluster/memory.ts. */
import { test } from 'tap'
import type { EntityType } from '../../../cluster/behaviour.ts'
import { Draft, type EntityTable, Memory } from '../../../cluster/facts/memory.ts'
import { Fault } from '../../../cluster/fault.ts'

const SUM: EntityType<number, number> = {
  kind: 'sum',
  version: 1,
  empty: 0,
  apply(state, event) {
    if (event < 0) throw new Error('Negative')
    return state + event
  },
}
const TYPES: EntityTable = new Map([['sum', SUM as unknown as EntityType]])
const A = { kind: 'sum', id: 'a' }
const B = { kind: 'sum', id: 'b' }

const draftOf = (memory: Memory, entryId = '1-0'): Draft => new Draft(memory, TYPES, { nowMs: 0, entryId })

test('memory: a draft sees its own events, the memory only what was taken', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, 5, 0)
  const draft = draftOf(memory)
  draft.apply(
    [
      { ref: A, event: 2 },
      { ref: A, event: 3 },
    ],
    'add',
  )
  t.equal(draft.get(A), 10)
  t.equal(memory.entity(A, 0), 5)
  t.same(draft.entities.get('sum:a')?.events, [2, 3])
  memory.take(draft, 0)
  t.equal(memory.entity(A, 0), 10)
})

test('memory: events of one turn apply all or none', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, 5, 0)
  const draft = draftOf(memory)
  t.throws(
    () =>
      draft.apply(
        [
          { ref: A, event: 2 },
          { ref: A, event: -1 },
        ],
        'add',
      ),
    { message: 'Negative' },
  )
  t.equal(draft.get(A), 5)
  t.throws(() => draft.apply([{ ref: { kind: 'other', id: 'x' }, event: 1 }], 'add'), { name: 'Fault' })
})

test('memory: what was not named is a fault, what is new begins empty', async (t) => {
  const draft = draftOf(new Memory())
  t.throws(() => draft.get(A), { name: 'Fault' })
  t.throws(() => draft.counter('a'), { name: 'Fault' })
  t.equal(draft.has(A), false)
  draft.apply([{ ref: A, event: 4 }], 'make')
  t.equal(draft.get(A), 4)
  t.equal(draft.has(A), true)
})

test('memory: a read never overwrites what is newer', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, 5, 0)
  memory.loadEntity(A, 1, 0)
  memory.loadCounter('a', { n: 2 }, 0)
  memory.loadCounter('a', { n: 1 }, 0)
  t.equal(memory.entity(A, 0), 5)
  t.same(memory.counter('a', 0), { n: 2 })
})

test('memory: a state that nobody can read fails who asks for it, again and again', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, new Fault('Unreadable'), 0)
  memory.loadCounter('a', new Fault('Unreadable'), 0)
  const draft = draftOf(memory)
  t.throws(() => draft.get(A), { message: 'Unreadable' })
  t.throws(() => draft.apply([{ ref: A, event: 1 }], 'add'), { message: 'Unreadable' })
  t.throws(() => draft.counter('a'), { message: 'Unreadable' })
})

test('memory: counters are absolute, null counts as loaded', async (t) => {
  const memory = new Memory()
  memory.loadCounter('a', null, 0)
  const draft = draftOf(memory)
  t.equal(draft.counter('a'), null)
  draft.counters.set('a', { n: 1 })
  t.same(draft.counter('a'), { n: 1 })
  t.equal(memory.counter('a', 0), null)
  memory.take(draft, 0)
  t.same(memory.counter('a', 0), { n: 1 })
})

test('memory: what was idle for ten minutes is forgotten', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, 1, 0)
  memory.loadEntity(B, 1, 0)
  memory.entity(B, 500_000)
  memory.sweep(600_000)
  t.equal(memory.size, 2)
  memory.sweep(600_001)
  t.same([memory.hasEntity(A), memory.hasEntity(B), memory.size], [false, true, 1])
})

test('memory: an entity keeps the ids of its last sixteen entries', async (t) => {
  const memory = new Memory()
  memory.loadEntity(A, 0, 0)
  for (let seq = 1; seq <= 20; seq += 1) {
    const draft = draftOf(memory, `${seq}-0`)
    draft.apply([{ ref: A, event: 1 }], 'add')
    memory.take(draft, 0)
  }
  const kept = memory.entriesAfter(A, '21-0')
  t.same([kept.length, kept[0], kept[15]], [16, '6-0', '21-0'])
})
