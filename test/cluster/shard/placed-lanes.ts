/** Tests of cluster/placed-lanes.ts. */
import { test } from 'tap'
import { LaneIndex } from '../../../cluster/items/lane-index.ts'
import { LaneRunner } from '../../../cluster/items/lane-runner.ts'
import { PlacedLanes } from '../../../cluster/shard/placed-lanes.ts'

function lanesOf(known: Readonly<Record<string, number>> = {}): PlacedLanes {
  const lanes = new LaneIndex()
  for (const [lane, atMs] of Object.entries(known)) lanes.load(lane, atMs)
  return new PlacedLanes({ shard: 0, runner: new LaneRunner([], { failed: () => undefined }), lanes })
}

test('placed-lanes: the least time of a lane goes on, and lowers the bound of the store where that is higher', async (t) => {
  const placed = lanesOf({ b: 50 })
  t.same(
    [placed.put('a', 90), placed.put('a', 90), placed.put('a', 95), placed.put('a', 80)],
    [true, false, false, true],
  )
  t.same([placed.put('b', 60), placed.put('b', 50), placed.put('b', 40)], [false, false, true])
  t.same([placed.put('c', 1), placed.put('b', 45)], [true, false])
  t.same(
    placed.list().map(({ lane, atMs, bound }) => [lane, atMs, bound]),
    [
      ['a', 80, true],
      ['b', 40, true],
      ['c', 1, true],
    ],
  )
})

test('placed-lanes: a lane that is only looked at has nothing placed', async (t) => {
  const placed = lanesOf({ b: 50 })
  t.equal(placed.at('a').key, '{s000}:due:a')
  t.equal(placed.at('a'), placed.at('a'))
  placed.put('b', 60)
  t.same(
    placed.list().map(({ lane, bound }) => [lane, bound]),
    [['b', false]],
  )
})
