/** Tests of cluster/lane-index.ts. */
import { test } from 'tap'
import { LaneIndex } from '../../../cluster/items/lane-index.ts'

const NEVER = Number.POSITIVE_INFINITY

test('lane-index: a lane is due from its bound on', async (t) => {
  const lanes = new LaneIndex()
  lanes.load('a', 100)
  t.same([...lanes.due(99)], [])
  t.same([...lanes.due(100)], ['a'])
})

test('lane-index: the store needs a lower bound only where its own is higher', async (t) => {
  const lanes = new LaneIndex()
  t.equal(lanes.lowers('a', 100), true, 'unknown lane')
  lanes.touch('a', 100)
  lanes.written('a', 100)
  t.equal(lanes.lowers('a', 100), false)
  t.equal(lanes.lowers('a', 99), true)
  lanes.touch('a', 50)
  t.equal(lanes.lowers('a', 99), true, 'what was only touched is not written')
})

test('lane-index: a read that saw nothing due raises the bound', async (t) => {
  const lanes = new LaneIndex()
  lanes.load('a', 100)
  const mark = lanes.scan('a')
  t.same([...lanes.due(100)], [], 'one read at a time')
  t.equal(lanes.scanned('a', mark, 500), true, 'the store is to be told')
  t.equal(lanes.earliestMs('a'), 500)
})

test('lane-index: a commit during the read keeps the bound low', async (t) => {
  const lanes = new LaneIndex()
  lanes.load('a', 100)
  const mark = lanes.scan('a')
  lanes.touch('a', 300)
  t.equal(lanes.scanned('a', mark, NEVER), false)
  t.equal(lanes.earliestMs('a'), 100)
  t.same([...lanes.due(100)], ['a'], 'it is read again')
})

test('lane-index: a read that failed changes nothing', async (t) => {
  const lanes = new LaneIndex()
  lanes.load('a', 100)
  t.equal(lanes.scanned('a', lanes.scan('a'), null), false)
  t.equal(lanes.earliestMs('a'), 100)
})

test('lane-index: an empty lane is forgotten once the store has forgotten it', async (t) => {
  const lanes = new LaneIndex()
  lanes.load('a', 100)
  lanes.scanned('a', lanes.scan('a'), NEVER)
  t.equal(lanes.size, 1)
  lanes.written('a', NEVER)
  t.equal(lanes.size, 0)
  lanes.load('b', 100)
  lanes.written('b', NEVER)
  t.equal(lanes.size, 1, 'something came meanwhile: it stays')
})

test('lane-index: an unknown lane is no lane', async (t) => {
  const lanes = new LaneIndex()
  t.equal(lanes.scanned('a', lanes.scan('a'), 5), false)
  lanes.written('a', 5)
  t.equal(lanes.earliestMs('a'), NEVER)
})
