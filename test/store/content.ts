/** content - packed, written to a real Redis and read back: small, large, many chunks, gone. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { msOfCmdId, newCmdId } from '../../cluster/cmd-id.ts'
import { contentKey } from '../../src/state/keys.ts'
import { contentOps } from '../../src/state/message/content-part.ts'
import { PART_HEADER_BYTES, partEncoding } from '../../src/state/message/part-header.ts'
import {
  type ContentStore,
  contentKeys,
  isInline,
  packContent,
  packRaw,
  readPart,
  readPlainBody,
  readPlainPart,
  UNCLAIMED_LIFE_MS,
  unpackPart,
  writeParts,
} from '../../src/store/content.ts'
import { makeListedContents } from '../../src/store/listed.ts'
import { readBody as readOutgoing, readRaw } from '../../src/store/outgoing.ts'
import { startRedis } from '../support/store/redis.ts'
import { ringOf } from '../support/world/rings.ts'

const KB = 1024

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})

const store: ContentStore = {
  async writeContent(_shard, values) {
    for (const { key, bytes } of values) await redis.set(key, Buffer.from(bytes), 'PX', UNCLAIMED_LIFE_MS)
    return true
  },
  readContent: (_shard, keys) => redis.mgetBuffer(...keys),
  readField: (_shard, { key, field }) => redis.hgetBuffer(key, field),
  async removeContent(_shard, keys) {
    await redis.unlink(...keys)
  },
}
const away: ContentStore = { ...store, readContent: async () => null, readField: async () => undefined }

/** Content in Redis, like that of messages without content in the content store. */
const readBody = (redis: ContentStore, place: { shard: number; contentId: string; test: boolean }) =>
  readOutgoing(
    { redis, contents: null, ring: ringOf('x'), listed: makeListedContents(redis, () => 0) },
    { ...place, stored: null },
  )

t.test('small body is its texts as they are, in one chunk behind its header', async (t) => {
  const [body] = await packContent({ text: 'Hello', html: null }, [])
  t.equal(body?.part, 'body')
  t.equal(body?.chunks.length, 1)
  t.equal(Buffer.from(body?.chunks[0] ?? []).toString('latin1', 0, 3), '\x32\x00\x01')
  t.equal(Buffer.from(body?.chunks[0] ?? []).toString('latin1', PART_HEADER_BYTES), '\x01\x00\x05Hello')
})

t.test('body that is not deflated is packed and read back at once', async (t) => {
  for (const body of [
    { text: 'Hello', html: null },
    { text: null, html: '<p>naïve – ✓ \u{1f600}\u2028</p>' },
    { text: '', html: '' },
  ]) {
    const parts = packContent(body, [])
    if (parts instanceof Promise) return t.fail('a promise')
    t.strictSame(readPlainBody(parts[0]?.chunks ?? []), body)
    t.strictSame(JSON.parse(String(await unpackPart(parts[0]?.chunks ?? []))), body)
  }
  const [deflated] = await packContent({ text: 'x'.repeat(5 * KB), html: null }, [])
  t.equal(readPlainBody(deflated?.chunks ?? []), null, 'deflated')
  const [, long] = await packContent({ text: 'x', html: null }, [randomBytes(300 * KB)])
  t.equal(readPlainBody(long?.chunks ?? []), null, 'two chunks')
  t.equal(readPlainBody([]), null)
})

t.test('body is deflated above 4 KB only', async (t) => {
  const overhead = 3
  for (const [chars, encoding] of [
    [4 * KB - overhead - 1, 2],
    [4 * KB - overhead, 2],
    [4 * KB - overhead + 1, 1],
  ] as const) {
    const [body] = await packContent({ text: 'x'.repeat(chars), html: null }, [])
    t.equal(partEncoding(body?.chunks[0] ?? Buffer.alloc(0)), encoding, `${chars} characters`)
  }
})

t.test('content up to 64 KB rides in the commit, one byte more does not', async (t) => {
  const [body] = await packContent({ text: 'x', html: null }, [])
  const rest = 64 * KB - (body?.chunks[0]?.length ?? 0) - PART_HEADER_BYTES
  t.equal(isInline(await packContent({ text: 'x', html: null }, [randomBytes(rest)])), true)
  t.equal(isInline(await packContent({ text: 'x', html: null }, [randomBytes(rest + 1)])), false)
})

t.test('parts come back as they were written', async (t) => {
  const written = { text: 'naïve – ✓\u2028 '.repeat(3000), html: randomBytes(600 * KB).toString('base64') }
  const attachments = [
    Buffer.alloc(0),
    randomBytes(10),
    randomBytes(256 * KB - PART_HEADER_BYTES),
    randomBytes(256 * KB - PART_HEADER_BYTES + 1),
    randomBytes(2200 * KB),
  ]
  const parts = await packContent(written, attachments)
  const place = { shard: 17, contentId: 'mic4h2d90abcdefghi-0', test: false }
  t.equal(await writeParts(store, { ...place, parts }), true)
  t.strictSame(await readBody(store, place), written)
  for (const [index, bytes] of attachments.entries()) {
    const read = await readPart(store, { ...place, part: `a${index}` })
    t.ok(read?.equals(bytes), `attachment ${index}`)
  }
  t.strictSame(
    parts.map(({ chunks }) => chunks.length).slice(1),
    [1, 1, 1, 2, 9],
    'chunks of 256 KB, the header included',
  )
})

t.test(
  'a body that came with its command is found: a small one by one read, a larger one under its own key',
  async (t) => {
    const texts = ['naïve', randomBytes(6 * KB).toString('base64')]
    for (const [n, text] of texts.entries()) {
      const written = { text, html: null }
      const [packed] = await packContent(written, [])
      const place = { shard: 5, contentId: `${newCmdId(Date.now(), Math.random)}-0`, test: true }
      const parts = [{ part: 'body', chunks: 1, blob: 0 }]
      const submittedAtMs = msOfCmdId(place.contentId)
      const ops = contentOps(place, parts, { blobs: [packed!.chunks[0]!], submittedAtMs, test: true })
      for (const { key, write, args } of ops) await redis.call(write, key, ...args.map((arg) => Buffer.from(arg)))
      const reads: string[] = []
      const counted: ContentStore = {
        ...store,
        readField(shard, at) {
          reads.push('field')
          return store.readField(shard, at)
        },
        readContent(shard, keys) {
          reads.push('keys')
          return store.readContent(shard, keys)
        },
      }
      t.strictSame(await readBody(counted, place), written)
      t.strictSame(reads, n === 0 ? ['field'] : ['field', 'keys'])
      t.equal(await redis.exists(contentKey(5, place.contentId, 'body', 0)), n)
      if (n === 0) t.equal(await readBody(store, { ...place, test: false }), null, 'those of live servers live longer')
      t.equal(await readBody(store, { ...place, contentId: place.contentId.replace(/0$/, '1') }), null)
    }
  },
)

t.test('content without an owner lives for a minute', async (t) => {
  const parts = await packContent({ text: 'x', html: null }, [randomBytes(300 * KB)])
  await writeParts(store, { shard: 3, contentId: 'mic4h2d91abcdefghi-0', parts })
  for (const key of contentKeys(3, 'mic4h2d91abcdefghi-0', parts)) {
    const leftMs = await redis.pttl(key)
    t.ok(leftMs > 0 && leftMs <= UNCLAIMED_LIFE_MS, key)
  }
})

t.test('content is gone when any chunk is', async (t) => {
  const parts = await packContent({ text: 'x', html: null }, [randomBytes(600 * KB)])
  const place = { shard: 3, contentId: 'mic4h2d92abcdefghi-0', test: true }
  await writeParts(store, { ...place, parts })
  await store.removeContent(3, [contentKeys(3, place.contentId, parts).at(-1) as string])
  t.equal(await readPart(store, { ...place, part: 'a0' }), null)
  t.equal(await readBody(store, { ...place, contentId: 'mic4h2d93abcdefghi-0' }), null)
})

t.test('a changed number of chunks is damage, not content that is gone', async (t) => {
  for (const [n, sizeKb] of [1, 600].entries()) {
    const parts = await packContent({ text: 'x', html: null }, [randomBytes(sizeKb * KB)])
    const place = { shard: 3, contentId: `mic4h2d9${n}zbcdefghi-0`, test: true }
    await writeParts(store, { ...place, parts })
    const key = contentKey(3, place.contentId, 'a0', 0)
    const first = (await redis.getBuffer(key)) as Buffer
    for (let bit = 0; bit < 16; bit += 1) {
      const changed = Buffer.from(first)
      changed.writeUInt16BE(first.readUInt16BE(1) ^ (1 << bit), 1)
      await redis.set(key, changed)
      await t.rejects(
        readPart(store, { ...place, part: 'a0' }),
        { message: 'A stored value is damaged' },
        `${sizeKb} KB, bit ${bit}`,
      )
    }
  }
})

t.test('a store that does not answer is distinguished from content that is gone', async (t) => {
  t.equal(await readBody(away, { shard: 3, contentId: 'mic4h2d92abcdefghi-0', test: true }), undefined)
})

t.test('a value that inflates without end is refused', async (t) => {
  const bomb = await packContent({ text: '\0'.repeat(20 * KB * KB), html: null }, [])
  await t.rejects(unpackPart(bomb[0]?.chunks ?? []), { code: 'ERR_BUFFER_TOO_LARGE' })
})

t.test('a message that came whole is a part beside its body, small in one chunk, large in several', async (t) => {
  const body = { text: 'Hello', html: null }
  const outgoing = {
    redis: store,
    contents: null,
    ring: ringOf('x'),
    listed: makeListedContents(store, () => 0),
  }
  for (const bytes of [randomBytes(100), randomBytes(600 * KB), Buffer.alloc(0)]) {
    const parts = await packRaw(body, bytes)
    t.same(
      parts.map(({ part }) => part),
      ['body', 'raw'],
    )
    const chunks = parts[1]?.chunks ?? []
    t.same(readPlainPart(chunks), chunks.length === 1 ? bytes : null)
    const place = { shard: 5, contentId: `${newCmdId(Date.now(), Math.random)}-0`, test: true }
    t.equal(await writeParts(store, { ...place, parts }), true)
    t.same(await readRaw(outgoing, { ...place, stored: null }), bytes)
  }
  const gone = { shard: 5, contentId: `${newCmdId(Date.now(), Math.random)}-0`, test: true, stored: null }
  t.equal(await readRaw(outgoing, gone), null)
  t.equal(await readRaw({ ...outgoing, redis: away }, gone), undefined)
})
