/** Tests of cluster/parcel-replies.ts: the kept and sent replies to parcels. */
import { test } from 'tap'
import { ParcelReplies, parseResults, parseTold, sliceOf } from '../../../cluster/mailbox/replies.ts'
import type { AskResult } from '../../../cluster/work.ts'

const NOW_MS = 1_700_000_000_000
const [A, B, LATER] = ['loyw3u3z294a3ijtgk', 'loyw3u3z294a3ijtgz', 'loyw5u3z294a3ijtgk']
const YES: AskResult = { kind: 'answer', reply: 'ä\n' }
const NO: AskResult = { kind: 'unavailable' }

test('parcel-replies: one field of a parcel and commit, one key of a slice, one text of a worker', async (t) => {
  const replies = new ParcelReplies()
  const [a, b, later] = [A, B, LATER].map((parcelId, n) => ({ parcelId, replyTo: n === 1 ? 'v' : 'w', count: 9 }))
  replies.add(a!, 2, YES)
  replies.add(a!, 3, NO)
  replies.add(b!, 0, NO)
  replies.add(later!, 0, YES)
  const ops = replies.close(7, NOW_MS)
  t.not(sliceOf(A), sliceOf(LATER))
  t.same(
    ops.map(({ key, write, args }) => [key, write, args.length]),
    [A, LATER].flatMap((parcelId, n) => [
      [`{s007}:replies:${sliceOf(parcelId)}`, 'HSET', n === 0 ? 4 : 2],
      [`{s007}:replies:${sliceOf(parcelId)}`, 'PEXPIREAT', 1],
    ]),
  )
  t.same(ops[0]?.args.slice(0, 2), [`${A}/2`, `2 ${JSON.stringify([YES, NO])}`])
  t.same([...replies.told.keys()], ['w', 'v'])
  const told = replies.told.get('w')?.split('\n') ?? []
  t.same(told.map(parseTold), [
    { parcelId: A, from: 2, results: [YES, NO] },
    { parcelId: LATER, from: 0, results: [YES] },
  ])
  t.same(parseResults([`2 ${JSON.stringify([YES, NO])}`, `1 ${JSON.stringify([NO])}`]), [YES, NO, NO])
})

test('parcel-replies: what is no reply says nothing', async (t) => {
  for (const line of ['', 'x', `${A}/0`, `${A} 0/1`, `${A}/0 {`, `${A}/0 {}`, `${A}/x []`])
    t.equal(parseTold(line), null)
})

test('parcel-replies: results end where a field cannot be read, or does not hold as many as it says', async (t) => {
  const [good, next] = [`2 ${JSON.stringify([YES, NO])}`, `1 ${JSON.stringify([YES])}`]
  for (const odd of [
    '1 {',
    'odd',
    '2',
    '',
    '1 {}',
    '[]',
    `3 ${JSON.stringify([YES, NO])}`,
    `x ${JSON.stringify([NO])}`,
  ])
    t.same(parseResults([good, odd, next]), [YES, NO], odd)
})
