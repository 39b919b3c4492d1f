/** content-part - what keeps content, what ends it, and the number of its chunks as it is really packed. */

import t from 'tap'
import { msOfCmdId, newCmdId } from '../../cluster/cmd-id.ts'
import { contentExpiresAtMs } from '../../src/actors/age.ts'
import {
  attachmentEndOps,
  bodyPlace,
  CHUNK_BYTES_MAX,
  chunksOf,
  contentOps,
  inlineParts,
} from '../../src/actors/content-part.ts'
import { bodiesKey, contentKey } from '../../src/actors/keyspace.ts'
import { packContent } from '../../src/content.ts'

const DAY_MS = 86_400_000
const MINUTE_MS = 60_000
const CONTENT_ID = 'mic4h2d90abcdefghi-0'
const PLACE = { shard: 1, contentId: CONTENT_ID }
const BLOBS = [Buffer.from('one'), Buffer.from('two')]

t.test('content-part: what came along is set, what was written before is kept, each to its own end', async (t) => {
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
})

t.test('content-part: a body that came along lies with those of its minute, no shorter than it lives', async (t) => {
  const parts = [{ part: 'body', chunks: 1, blob: 1 }]
  const madeAtMs = msOfCmdId(CONTENT_ID)
  const minute = Math.floor(madeAtMs / MINUTE_MS)
  for (const [test, days] of [
    [false, 30],
    [true, 7],
  ] as const) {
    // A command that waited: accepted four seconds after its id was made.
    const submittedAtMs = madeAtMs + 4_000
    const ops = contentOps(PLACE, parts, { blobs: BLOBS, submittedAtMs, test })
    const { key, field } = bodyPlace(1, CONTENT_ID, test)
    t.equal(key, bodiesKey(1, minute, test))
    t.same(ops[0], { key, write: 'HSET', args: [field, BLOBS[1]] })
    t.match(ops[1], { key, write: 'PEXPIREAT' })
    const lateMs = Number(ops[1]?.args[0]) - contentExpiresAtMs(submittedAtMs, test)
    t.ok(lateMs >= 0 && lateMs <= 2 * MINUTE_MS, `${days} days, and ${lateMs} ms`)
    t.equal(ops.length, 2)
  }
})

t.test('content-part: the bodies of another minute, shard or mode lie elsewhere', async (t) => {
  const later = newCmdId(msOfCmdId(CONTENT_ID) + MINUTE_MS, Math.random)
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
    t.equal(chunksOf(bytes), packed[1]?.chunks.length, `${bytes} bytes`)
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
