/** slice - a slice ends with the UTC day or when it is full. */

import t from 'tap'
import { enterSlice, type Slice, sliceEndMs } from '../../../src/state/webhook/slice.ts'

const DAY_MS = 86_400_000
const NOON = Date.UTC(2026, 10, 21, 12)

/** open, at, expected slice, opened */
const CASES: readonly [string, Slice | null, number, Slice, boolean][] = [
  ['none is open', null, NOON, { name: '20261121-0', deliveries: 1 }, true],
  ['room', { name: '20261121-0', deliveries: 2 }, NOON, { name: '20261121-0', deliveries: 3 }, false],
  ['full', { name: '20261121-0', deliveries: 3 }, NOON, { name: '20261121-1', deliveries: 1 }, true],
  ['full again', { name: '20261121-9', deliveries: 3 }, NOON, { name: '20261121-10', deliveries: 1 }, true],
  ['next day', { name: '20261121-4', deliveries: 1 }, NOON + DAY_MS, { name: '20261122-0', deliveries: 1 }, true],
]

t.test('webhook slice: by day, up to its bound', async (t) => {
  for (const [name, open, nowMs, slice, opened] of CASES)
    t.same(enterSlice(open, nowMs, { itemsMax: 3 }), { slice, opened }, name)
})

t.test('webhook slice: ends with its day', async (t) => {
  t.equal(sliceEndMs('20261231-12'), Date.UTC(2027, 0, 1))
})
