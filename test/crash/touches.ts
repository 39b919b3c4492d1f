/** Tests of chaos/touches.ts: a refusal is laid to the faults of its own time, and to no others. */
import t from 'tap'
import { Touches } from '../chaos/touches.ts'

t.test('touches: what explains a refusal', async (t) => {
  const touches = new Touches()
  t.notOk(touches.explain(1, 0, 10), 'before the first fault nothing does')
  touches.begin(100, new Set([1]))
  touches.begin(200, new Set([2]))
  touches.begin(300, null)
  touches.begin(400, new Set())
  const cases: [string, number, number, number, boolean][] = [
    ['heard before the fault', 1, 50, 99, false],
    ['sent before it, heard during it', 1, 50, 150, true],
    ['sent and heard during it', 1, 120, 150, true],
    ['sent during it, heard in the next', 1, 150, 250, true],
    ['sent after it', 1, 201, 250, false],
    ['of a shard that kept its owner', 2, 120, 150, false],
    ['of the shard of the next fault', 2, 150, 250, true],
    ['a fault of all shards', 7, 310, 350, true],
    ['a time without a fault', 7, 401, 450, false],
    ['from a fault of all into that time', 7, 399, 450, true],
  ]
  for (const [name, shard, sent, heard, isExplained] of cases)
    t.equal(touches.explain(shard, sent, heard), isExplained, name)
  for (let n = 0; n < 64; n += 1) touches.begin(500 + n, new Set())
  t.notOk(touches.explain(1, 120, 150), 'it remembers so many')
})
