/** Tests of cluster/mailbox-reader.ts: which entries are read, and which are taken without a read. */
import { test } from 'tap'
import { MailboxReader } from '../../../cluster/mailbox/reader.ts'
import type { EntriesRequest, Store } from '../../../cluster/store.ts'
import { SimStore } from '../../simulation/sim-store.ts'

/** A reader, the start of its reads, and the arrival of its parcels. */
function setUp() {
  const store = new SimStore()
  const froms: string[] = []
  const linked: Store = Object.assign(Object.create(store) as SimStore, {
    entries: (request: EntriesRequest) => {
      froms.push(request.from)
      return store.entries(request)
    },
  })
  const come = async (...names: readonly string[]): Promise<string[]> => {
    const parcels = names.map((parcelId) => ({ shard: 3, parcelId, count: 3, said: Buffer.from('x') }))
    await store.enqueue({ replyTo: 'w', commandsMax: 99, parcels })
    const all = (await store.entries({ shard: 3, of: 'mailbox', from: '(0-0', count: 99 })) ?? []
    return all.map(({ id }) => id)
  }
  return { reader: new MailboxReader(3, 'mailbox', linked), froms, come }
}

test('mailbox-reader: an entry is taken without a read only if it follows the last one', async (t) => {
  const { reader, froms, come } = setUp()
  const [first = '', second = '', third = ''] = await come('a', 'b', 'c')
  reader.start('')
  t.equal(reader.take(second, first), false, 'there is one before')
  t.equal(reader.take(first, '0-0'), true)
  const read = reader.read()
  t.equal(reader.take(second, first), false, 'it may be in what is being read')
  t.same(
    (await read)?.map(({ entry }) => entry.id),
    [second, third],
  )
  t.equal(reader.take(third, second), false, 'it has been read')
  t.same(froms, [`(${first}`])
})

test('mailbox-reader: a cursor within an entry reads that entry once more, if it is there', async (t) => {
  const { reader, froms, come } = setUp()
  const [first = '', second = ''] = await come('a', 'b')
  reader.start(`${first}/2`)
  t.equal(reader.take(second, first), false)
  t.same(
    (await reader.read())?.map(({ entry, done }) => [entry.parcelId, done]),
    [
      ['a', 2],
      ['b', 0],
    ],
  )
  t.same(froms, [first])
  reader.start('1-1/2')
  t.same(
    (await reader.read())?.map(({ done }) => done),
    [0, 0],
    'it is gone',
  )
  reader.start('odd')
  t.equal((await reader.read())?.length, 2)
})
