/** Tests of cluster/look-list.ts: what is due comes out, in order. */
import { test } from 'tap'
import { LookList } from '../../cluster/look-list.ts'

test('look-list: what is due comes out in the order of its time', async (t) => {
  const list = new LookList<string>()
  t.equal(list.nextMs, Number.POSITIVE_INFINITY)
  list.add('b', 20)
  list.add('d', 40)
  list.add('a', 10)
  list.add('c', 20)
  t.equal(list.nextMs, 10)
  t.same(list.due(5), [])
  t.same(list.due(20), ['a', 'b', 'c'])
  t.equal(list.nextMs, 40)
  t.same(list.due(99), ['d'])
  t.same(list.due(99), [])
})
