/** content-part - how content is kept and ended, and the number of its chunks when it is packed. */

import t from 'tap'
import { msOfCmdId, newCmdId } from '../../../cluster/cmd-id.ts'
import { contentExpiresAtMs } from '../../../src/state/age.ts'
import { bodiesKey, contentKey } from '../../../src/state/keys.ts'
import {
  attachmentEndOps,
  bodyPlace,
  CHUNK_BYTES_MAX,
  contentOps,
  countChunks,
  inlineParts,
  SLICED_BYTES_MAX,
} from '../../../src/state/message/content-part.ts'
import { packContent } from '../../../src/store/content.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const SLICE_MS = 2_000
const CONTENT_ID = 'mic4h2d90abcdefghi-0'
const PLACE = { shard: 1, contentId: CONTENT_ID }
const BLOBS = [Buffer.from('one'), Buffer.from('two')]

t.test(
  'content-part: content in the command is set, content written before is kept, each to its own end',
  async (t) => {
    const parts = [
      { part: 'body', chunks: 1, blob: null },
      { part: 'a0', chunks: 1, blob: 0 },
      { part: 'a1', chunks: 2, blob: null },
    ]
    t.same(contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs: 1000, test: false }), [
      { key: contentKey(1, CONTENT_ID, 'body', 0), write: 'PEXPIREAT', args: [String(1000 + 30 * DAY_MS)] },
      { key: contentKey(1, CONTENT_ID, 'a0', 0), write: 'SET', args: [BLOBS[0], 'PXAT', String(1000 + 3 * DAY_MS)] },
      { key: contentKey(1, CONTENT_ID, 'a1', 0), write: 'PEXPIREAT', args: [String(1000 + 3 * DAY_MS)] },
      { key: contentKey(1, CONTENT_ID, 'a1', 1), write: 'PEXPIREAT', args: [String(1000 + 3 * DAY_MS)] },
    ])
    const [body] = contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs: 0, test: true })
    t.equal(body?.args[0], String(7 * DAY_MS))
  },
)

t.test(
  'content-part: a small body in the command is stored with those of its two seconds, for at least its life',
  async (t) => {
    const parts = [{ part: 'body', chunks: 1, blob: 1 }]
    const madeAtMs = msOfCmdId(CONTENT_ID)
    const slice = Math.floor(madeAtMs / SLICE_MS)
    for (const [test, days] of [
      [false, 30],
      [true, 7],
    ] as const) {
      // A command that waited: accepted long after its id was made.
      const submittedAtMs = madeAtMs + 50_000
      const ops = contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs, test })
      const { key, field } = bodyPlace(1, CONTENT_ID, test)
      t.equal(key, bodiesKey(1, slice, test))
      t.same(ops[0], { key, write: 'HSET', args: [field, BLOBS[1]] })
      t.match(ops[1], { key, write: 'PEXPIREAT' })
      const lateMs = Number(ops[1]?.args[0]) - contentExpiresAtMs(submittedAtMs, test)
      t.ok(lateMs >= 0 && lateMs <= MINUTE_MS, `${days} days, and ${lateMs} ms`)
      t.equal(ops.length, 2)
    }
  },
)

t.test('content-part: a body that is large, or would outlive its slice, has its own key and end', async (t) => {
  const parts = [{ part: 'body', chunks: 1, blob: 0 }]
  const madeAtMs = msOfCmdId(CONTENT_ID)
  const key = contentKey(1, CONTENT_ID, 'body', 0)
  const cases: [bytes: number, lateMs: number, isShared: boolean][] = [
    [SLICED_BYTES_MAX, 0, true],
    [SLICED_BYTES_MAX + 1, 0, false],
    [64 * 1024, 0, false],
    [1, MINUTE_MS, true],
    [1, MINUTE_MS + SLICE_MS + 1, false],
  ]
  for (const [bytes, lateMs, isShared] of cases) {
    const [blob, submittedAtMs] = [Buffer.alloc(bytes), madeAtMs + lateMs]
    const ops = contentOps(PLACE, parts, { blobs: [blob], submittedAtMs, test: false })
    const own = [{ key, write: 'SET', args: [blob, 'PXAT', String(contentExpiresAtMs(submittedAtMs, false))] }]
    if (isShared) t.equal(ops[0]?.key, bodyPlace(1, CONTENT_ID, false).key, `${bytes} bytes, ${lateMs} ms`)
    else t.same(ops, own, `${bytes} bytes, ${lateMs} ms`)
  }
})

t.test('content-part: the bodies of another slice, shard or mode are stored elsewhere', async (t) => {
  const later = newCmdId(msOfCmdId(CONTENT_ID) + SLICE_MS, Math.random)
  const keys = [
    bodyPlace(1, CONTENT_ID, true),
    bodyPlace(1, CONTENT_ID, false),
    bodyPlace(2, CONTENT_ID, true),
    bodyPlace(1, `${later}-0`, true),
    bodyPlace(1, CONTENT_ID, true),
  ].map(({ key }) => key)
  t.equal(new Set(keys).size, 4)
  t.equal(keys[4], keys[0])
})

t.test('content-part: parts ride on to the performer only when all came along', async (t) => {
  const whole = { part: 'body', chunks: 2, blob: 0 }
  t.same(inlineParts([whole], BLOBS), [{ part: 'body', chunks: BLOBS }])
  t.equal(inlineParts([whole, { part: 'a0', chunks: 1, blob: null }], BLOBS), null)
})

t.test('content-part: chunks are counted as content is cut', async (t) => {
  for (const bytes of [0, 1, CHUNK_BYTES_MAX - 4, CHUNK_BYTES_MAX - 3, CHUNK_BYTES_MAX - 2, 3 * CHUNK_BYTES_MAX]) {
    const packed = await packContent({ text: 'x', html: null }, [Buffer.alloc(bytes)])
    t.equal(countChunks(bytes), packed[1]?.chunks.length, `${bytes} bytes`)
  }
})

t.test('content-part: the end of attachments names every chunk', async (t) => {
  const keys = attachmentEndOps(1, CONTENT_ID, [10, CHUNK_BYTES_MAX]).map(({ key, write }) => `${write} ${key}`)
  t.same(keys, [
    'UNLINK {s001}:content:mic4h2d90abcdefghi-0:a0',
    'UNLINK {s001}:content:mic4h2d90abcdefghi-0:a1',
    'UNLINK {s001}:content:mic4h2d90abcdefghi-0:a1.1',
  ])
})
