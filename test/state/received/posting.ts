/** posting - what is posted of a message, in which bucket, and that it is found there again. */
import t from 'tap'
import { makeIds, rankOf } from '../../../cluster/id.ts'
import {
  bucketOfPlusHash,
  bucketOfSender,
  fromPostingOps,
  receivedPostingKeys,
  receivedPostingOps,
  receivedSegmentKeys,
} from '../../../src/state/received/posting.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const PLACE = { shard: 1, serverId: 's', segment: '202611-1-16' }
const LOG_ONLY = { ...PLACE, segment: '202611-0-1' }
const ids = makeIds({ shard: 1, last: '', random: () => 0.5 })
const messageId = ids.next(NOW_MS)

t.test('received-posting: sender and hash are posted with the message, From later [inbound.search]', async (t) => {
  const at = rankOf(messageId)
  const first = receivedPostingOps(PLACE, { messageId, sender: 35, plusHash: 'BAabcdef' })
  t.same(first, [
    { key: '{s001}:received-by-person:s:202611-1-16:3', write: 'XADD', args: [at, 'p', '35'] },
    { key: '{s001}:received-by-hash:s:202611-1-16:4', write: 'XADD', args: [at, 'h', 'BAabcdef'] },
  ])
  const context = { newId: () => ids.next(NOW_MS + 90_000) }
  const [later] = fromPostingOps(context, PLACE, { messageId, sender: 35, from: 3 })
  t.same(later, {
    key: '{s001}:received-by-person:s:202611-1-16:3',
    write: 'XADD',
    args: [`${NOW_MS + 90_000}-0`, 'p', '3 1xg0.0'],
  })
  const entries = [first[0], later].map((op) => {
    const [id = '', ...fields] = (op?.args ?? []) as string[]
    return { id, fields }
  })
  for (const number of [35, 3]) t.same(bucketOfSender(PLACE, number).ranksIn(entries), [at], `person ${number}`)
  t.same(bucketOfSender(PLACE, 19).ranksIn(entries), [], 'another one of the bucket')
  t.equal(bucketOfSender(PLACE, 3).key, later?.key)
  const hash = bucketOfPlusHash(PLACE, 'BAabcdef')
  t.equal(hash.key, first[1]?.key)
  t.same(
    hash.ranksIn([
      { id: at, fields: ['h', 'BAabcdef'] },
      { id: '1-1', fields: ['h', 'BAother_'] },
    ]),
    [at],
  )
})

t.test('received-posting: nothing is posted twice, without a person, or for searches of the log', async (t) => {
  const context = { newId: () => ids.next(NOW_MS) }
  t.same(receivedPostingOps(PLACE, { messageId, sender: 0, plusHash: null }), [])
  t.same(receivedPostingOps(LOG_ONLY, { messageId, sender: 35, plusHash: 'BAabcdef' }), [])
  t.same(fromPostingOps(context, PLACE, { messageId, sender: 35, from: 35 }), [])
  t.same(fromPostingOps(context, PLACE, { messageId, sender: 35, from: 0 }), [])
  t.same(fromPostingOps(context, LOG_ONLY, { messageId, sender: 35, from: 3 }), [])
})

t.test('received-posting: the keys of a segment are known by its name', async (t) => {
  t.equal(receivedPostingKeys(PLACE).length, 32)
  const names = ['received', 'received-state', 'received-blocks']
  t.same(
    receivedSegmentKeys(LOG_ONLY),
    names.map((name) => `{s001}:${name}:s:202611-0-1`),
  )
  t.ok(receivedSegmentKeys(PLACE).includes('{s001}:received-postings:s:202611-1-16'))
  t.ok(receivedSegmentKeys(PLACE).includes('{s001}:received-by-hash:s:202611-1-16:15'))
})
