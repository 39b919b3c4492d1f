/** content-part - what keeps content, what ends it, and the number of its chunks as it is really packed. */

import t from 'tap'
import { attachmentEndOps, CHUNK_BYTES_MAX, chunksOf, contentOps, inlineParts } from '../../src/actors/content-part.ts'
import { contentKey } from '../../src/actors/keyspace.ts'
import { packContent } from '../../src/content.ts'

const DAY_MS = 86_400_000
const PLACE = { shard: 1, contentId: 'cmd-0' }
const BLOBS = [Buffer.from('one'), Buffer.from('two')]

t.test('content-part: what came along is set, what was written before is kept, each to its own end', async (t) => {
  const parts = [
    { part: 'body', chunks: 1, blob: 1 },
    { part: 'a0', chunks: 2, blob: null },
  ]
  t.same(contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs: 1000, test: false }), [
    { key: contentKey(1, 'cmd-0', 'body', 0), write: 'SET', args: [BLOBS[1], 'PXAT', String(1000 + 30 * DAY_MS)] },
    { key: contentKey(1, 'cmd-0', 'a0', 0), write: 'PEXPIREAT', args: [String(1000 + 3 * DAY_MS)] },
    { key: contentKey(1, 'cmd-0', 'a0', 1), write: 'PEXPIREAT', args: [String(1000 + 3 * DAY_MS)] },
  ])
  const [body] = contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs: 0, test: true })
  t.equal(body?.args[2], String(7 * DAY_MS))
})

t.test('content-part: parts ride on to the performer only when all came along', async (t) => {
  const whole = { part: 'body', chunks: 2, blob: 0 }
  t.same(inlineParts([whole], BLOBS), [{ part: 'body', chunks: BLOBS }])
  t.equal(inlineParts([whole, { part: 'a0', chunks: 1, blob: null }], BLOBS), null)
})

t.test('content-part: chunks are counted as content is cut', async (t) => {
  for (const bytes of [0, 1, CHUNK_BYTES_MAX - 4, CHUNK_BYTES_MAX - 3, CHUNK_BYTES_MAX - 2, 3 * CHUNK_BYTES_MAX]) {
    const packed = await packContent({ text: 'x', html: null }, [Buffer.alloc(bytes)])
    t.equal(chunksOf(bytes), packed[1]?.chunks.length, `${bytes} bytes`)
  }
})

t.test('content-part: the end of attachments names every chunk', async (t) => {
  const keys = attachmentEndOps(1, 'cmd-0', [10, CHUNK_BYTES_MAX]).map(({ key, write }) => `${write} ${key}`)
  t.same(keys, ['UNLINK {s001}:content:cmd-0:a0', 'UNLINK {s001}:content:cmd-0:a1', 'UNLINK {s001}:content:cmd-0:a1.1'])
})
