/** posting - one entry for each bucket, each person once. */

import t from 'tap'
import { byPersonKey, byTagKey } from '../../../src/state/keys.ts'
import { bucketOfPosting, bucketOfTag, postingOps } from '../../../src/state/message/posting.ts'

const PLACE = { shard: 1, serverId: 's', segment: '202611-1-64' }

t.test('posting: persons of one bucket share an entry, and one named twice occurs once', async (t) => {
  const ops = postingOps(PLACE, '5-1', { numbers: [256 + 3, 512 + 3, 256 + 4, 256 + 3], tagHash: null })
  t.same(ops, [
    { key: byPersonKey(1, 's', PLACE.segment, 3), write: 'XADD', args: ['5-1', 'p', '259 515'] },
    { key: byPersonKey(1, 's', PLACE.segment, 4), write: 'XADD', args: ['5-1', 'p', '260'] },
  ])
})

t.test('posting: a tag is posted in the bucket of its hash', async (t) => {
  const [, tag, ...more] = postingOps(PLACE, '5-1', { numbers: [259], tagHash: 'abcdefgh' })
  const key = byTagKey(1, 's', PLACE.segment, bucketOfTag('abcdefgh', 64))
  t.same(tag, { key, write: 'XADD', args: ['5-1', 't', 'abcdefgh'] })
  t.same(more, [])
})

t.test('posting: a segment of one bucket has none', async (t) => {
  for (const segment of ['202611-0-1', '20261130-64-1'])
    t.same(postingOps({ ...PLACE, segment }, '5-1', { numbers: [259, 260], tagHash: 'abcdefgh' }), [])
})

t.test('posting: buckets are within the segment', async (t) => {
  t.equal(bucketOfPosting(256 * 9 + 255, 64), 63)
  for (const tag of ['________', 'AAAAAAAA', 'abcdefgh']) t.ok(bucketOfTag(tag, 64) < 64 && bucketOfTag(tag, 1) === 0)
})
