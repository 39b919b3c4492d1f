/** Tests of cluster/bell.ts: what a bell says, and what is said of one that is none. */
import { test } from 'tap'
import { parseBells } from '../../cluster/bell.ts'

const RING = { entry: null, before: '' }

test('bell: entries come along whole, and what is none rings', async (t) => {
  const entry = { id: '5-1', parcelId: 'p', replyTo: 'w', body: Buffer.from('a\nb') }
  const cases: [string, unknown[]][] = [
    ['', []],
    ['3\n', [{ shard: 3, ...RING }]],
    ['3 5-1 4-9 p w 3\na\nb', [{ shard: 3, entry, before: '4-9' }]],
    [
      '3 5-1 4-9 p w 3\na\nb17\n255 5-1 5-0 p w 3\na\nb',
      [
        { shard: 3, entry, before: '4-9' },
        { shard: 17, ...RING },
        { shard: 255, entry, before: '5-0' },
      ],
    ],
    ['3 5-1 5-1 p w 3\na\nb', [{ shard: 3, ...RING }]],
    ['3 5-1 17-0 p w 3\na\nb', [{ shard: 3, ...RING }]],
    [
      '3 NaN 4-9 p w 3\na\nb4\n',
      [
        { shard: 3, ...RING },
        { shard: 4, ...RING },
      ],
    ],
    ['3 5-1 4-9 p w 0\n', [{ shard: 3, ...RING }]],
    ['3\n3 5-1 4-9 p w 4\na\nb', [{ shard: 3, ...RING }]],
    ['3\n3 5-1 4-9 p w NaN\na\nb', [{ shard: 3, ...RING }]],
    ['3\n3 5-1 4-9 p w -9\na\nb', [{ shard: 3, ...RING }]],
    ['x\n3\n', []],
    ['3', []],
  ]
  for (const [text, bells] of cases) t.same(parseBells(Buffer.from(text)), bells, JSON.stringify(text))
})
