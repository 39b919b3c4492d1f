/** Tests of cluster/bell.ts: the contents of a bell, and the result for anything else. */
import { test } from 'tap'
import { BellReader } from '../../../cluster/mailbox/bell.ts'

const RING = { entry: null, before: '' }
const [P, Q] = [Buffer.from('p 2\n[]a b'), Buffer.from('q 2\n[]')]

test('bell: entries come along whole, and what is none rings', async (t) => {
  const entry = { id: '5-1', parcelId: 'p', replyTo: 'w', body: P }
  const cases: [string, unknown[]][] = [
    ['', []],
    ['3', [{ shard: 3, ...RING }]],
    ['3 5-1 4-9 p w', [{ shard: 3, entry, before: '4-9' }]],
    [
      '3 5-1 4-9 p w\n17\n255 5-1 5-0 q w',
      [
        { shard: 3, entry, before: '4-9' },
        { shard: 17, ...RING },
        { shard: 255, entry: { ...entry, parcelId: 'q', body: Q }, before: '5-0' },
      ],
    ],
    ['3 5-1 5-1 p w', [{ shard: 3, ...RING }]],
    ['3 5-1 17-0 p w', [{ shard: 3, ...RING }]],
    ['3 5-1 4-9 other w', [{ shard: 3, ...RING }]],
    ['3 5-1 4-9', [{ shard: 3, ...RING }]],
    ['3 5-1 4-9  w', [{ shard: 3, ...RING }]],
    [
      '3 NaN 4-9 p w\n4',
      [
        { shard: 3, ...RING },
        { shard: 4, ...RING },
      ],
    ],
    ['x\n3\n-1\n', [{ shard: 3, ...RING }]],
  ]
  for (const [text, bells] of cases) {
    const reader = new BellReader()
    for (const parcel of [P, Q, Buffer.from(''), Buffer.from(' 2\n[]')]) reader.parcel(parcel)
    t.same(reader.bells(text), bells, JSON.stringify(text))
  }
})

test('bell: a parcel is there for the next bell alone, and no more are kept than one request brings', async (t) => {
  const reader = new BellReader()
  const entriesOf = (name: string) => reader.bells(`3 5-1 4-9 ${name} w`).map(({ entry }) => entry?.body ?? null)
  for (const odd of ['', 'odd', '\n']) reader.parcel(Buffer.from(odd))
  reader.parcel(P)
  t.same(entriesOf('q'), [null])
  t.same(entriesOf('p'), [null], 'what was heard before another bell may be of long ago')
  for (let n = 0; n < 257; n += 1) reader.parcel(Buffer.from(`${n} 2\n[]`))
  t.same(entriesOf('0'), [null])
  reader.parcel(P)
  t.same(entriesOf('p'), [P])
})
