/**
 * content - the content of a message: packed for the store, written, read back
 *
 * Parts: `body` is text and html, deflated above 4 KB and never on the main thread; `a<k>` is attachment k as it came;
 * `raw` is a whole message as it came, in place of attachments. A part's first chunk begins with its header
 * (state/message/part-header.ts).
 *
 * Small content rides in the commit of its message. Large content is written before, under its final name with a
 * lifetime of a minute. The commit requires every chunk to exist and sets the real expiry, so content without a message
 * expires by itself.
 *
 * Keys: `bodies:<slice>:<live|test>`, `content:<contentId>:<part>[.<chunk>]`
 */

import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { contentKey } from '../state/keys.ts'
import {
  attachmentPart,
  BODY_PART,
  bodyPlace,
  CHUNK_BYTES_MAX,
  checkMissing,
  RAW_PART,
} from '../state/message/content-part.ts'
import {
  checkPart,
  chunkCountOf,
  headerBytesOf,
  PART_HEADER_BYTES,
  partEncoding,
  writePartHeader,
} from '../state/message/part-header.ts'
import type { Nodes } from './nodes.ts'

/** Parts of up to this many bytes in all ride in the commit. */
const INLINE_BYTES_MAX = 64 * 1024
/** Deflating less costs more than the decision itself and saves little. */
const DEFLATE_BYTES_MIN = 4096
/** Bodies are text of at most 10 MB; a value that inflates to more is not ours. */
const INFLATED_BYTES_MAX = 64 * 1024 * 1024
/** Chunks of one part: 64 MB. */
const CHUNKS_MAX = 256
/** Chunks that one command asks for. */
const CHUNKS_PER_READ_MAX = 8
/** How long content that no message claims stays. */
export const UNCLAIMED_LIFE_MS = 60_000

const ENCODING_PLAIN = 0
const ENCODING_DEFLATE = 1
/**
 * A small body as its texts: one byte for the texts present (1 text, 2 html), two for the length of the text, then
 * text and html.
 */
const ENCODING_TEXTS = 2
const TEXTS_HEAD_BYTES = 3
/** More characters than this are more bytes than are kept as they are. */
const SMALL_CHARS_MAX = DEFLATE_BYTES_MIN
const UTF8_PER_CHAR_MAX = 3
/** Where small bodies are put together. */
const small = Buffer.alloc(PART_HEADER_BYTES + TEXTS_HEAD_BYTES + SMALL_CHARS_MAX * UTF8_PER_CHAR_MAX)

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/**
 * The store's side, with a separate connection, so that a large value never delays a commit. All keys are the shard's.
 */
export interface ContentStore {
  /** Writes values that expire by themselves after a minute; false if the store did not take all. */
  writeContent(shard: number, values: readonly { readonly key: string; readonly bytes: Uint8Array }[]): Promise<boolean>
  /** Values in the order of the keys, null if missing; null when the store did not answer. */
  readContent(shard: number, keys: readonly string[]): Promise<readonly (Buffer | null)[] | null>
  /** A field of a hash, null if missing; undefined when the store did not answer. */
  readField(shard: number, place: { readonly key: string; readonly field: string }): Promise<Buffer | null | undefined>
  /** Removes values. A failure does no harm, because the values expire. */
  removeContent(shard: number, keys: readonly string[]): Promise<void>
}

/** A part ready to be stored. */
export interface PackedPart {
  readonly part: string
  readonly chunks: readonly Uint8Array[]
}

/** The texts of a text-and-html part. */
export interface Body {
  readonly text: string | null
  readonly html: string | null
}

/** Packs a message: its body, and its attachments (bytes) in order. A promise only if there is much to deflate. */
export function packContent(
  body: Body,
  attachments: readonly Uint8Array[],
): readonly PackedPart[] | Promise<readonly PackedPart[]> {
  const chars = (body.text?.length ?? 0) + (body.html?.length ?? 0)
  const chunk = chars > SMALL_CHARS_MAX ? null : packTexts(body)
  if (chunk === null) return packLarge(JSON.stringify({ text: body.text, html: body.html }), attachments)
  return addAttachments({ part: BODY_PART, chunks: [chunk] }, attachments)
}

/**
 * Packs a message received whole: its texts, for reading, and its bytes. A promise under the same condition as
 * `packContent`.
 */
export function packRaw(body: Body, raw: Uint8Array): readonly PackedPart[] | Promise<readonly PackedPart[]> {
  const packed = packContent(body, [])
  const add = (parts: readonly PackedPart[]) => [...parts, packPart(RAW_PART, raw, ENCODING_PLAIN)]
  return packed instanceof Promise ? packed.then(add) : add(packed)
}

/** The body as its two texts, the first one's length before them; null when it is long enough to deflate. */
function packTexts({ text, html }: Body): Buffer | null {
  let at = PART_HEADER_BYTES + TEXTS_HEAD_BYTES
  if (text !== null) at += small.write(text, at)
  const textEnd = at
  if (html !== null) at += small.write(html, at)
  if (at - PART_HEADER_BYTES > DEFLATE_BYTES_MIN) return null
  small[PART_HEADER_BYTES] = (text === null ? 0 : 1) | (html === null ? 0 : 2)
  small.writeUInt16BE(textEnd - PART_HEADER_BYTES - TEXTS_HEAD_BYTES, PART_HEADER_BYTES + 1)
  const chunk = Buffer.allocUnsafe(at)
  small.copy(chunk, 0, 0, at)
  writePartHeader(chunk, ENCODING_TEXTS, 1)
  return chunk
}

function unpackTexts(bytes: Buffer): Body {
  const headEnd = headerBytesOf(bytes)
  const has = bytes[headEnd] ?? 0
  const start = headEnd + TEXTS_HEAD_BYTES
  const textEnd = start + bytes.readUInt16BE(headEnd + 1)
  return {
    text: has & 1 ? bytes.toString('utf8', start, textEnd) : null,
    html: has & 2 ? bytes.toString('utf8', textEnd) : null,
  }
}

async function packLarge(json: string, attachments: readonly Uint8Array[]): Promise<readonly PackedPart[]> {
  const packed = await deflate(json, { level: 1 })
  return addAttachments(packPart(BODY_PART, packed, ENCODING_DEFLATE), attachments)
}

function addAttachments(body: PackedPart, attachments: readonly Uint8Array[]): readonly PackedPart[] {
  const parts = [body]
  for (const [index, bytes] of attachments.entries()) parts.push(packPart(attachmentPart(index), bytes, ENCODING_PLAIN))
  return parts
}

/** Whether the parts are small enough to ride in the commit. */
export function isInline(parts: readonly PackedPart[]): boolean {
  let bytes = 0
  for (const { chunks } of parts) for (const chunk of chunks) bytes += chunk.length
  return bytes <= INLINE_BYTES_MAX
}

/** Names of every chunk of the parts. */
export function contentKeys(shard: number, contentId: string, parts: readonly PackedPart[]): string[] {
  return parts.flatMap(({ part, chunks }) => chunks.map((_, chunk) => contentKey(shard, contentId, part, chunk)))
}

/** Writes parts before their message is decided on; false when the store did not take them. */
export function writeParts(
  store: ContentStore,
  place: { shard: number; contentId: string; parts: readonly PackedPart[] },
): Promise<boolean> {
  const { shard, contentId, parts } = place
  const values = parts.flatMap(({ part, chunks }) =>
    chunks.map((bytes, chunk) => ({ key: contentKey(shard, contentId, part, chunk), bytes })),
  )
  return store.writeContent(shard, values)
}

/**
 * Reads one part back: null once it is gone; undefined when the store did not answer. Throws DamagedValue if it is not
 * what was written.
 */
export async function readPart(
  store: ContentStore,
  place: { shard: number; contentId: string; part: string; test: boolean },
): Promise<Buffer | null | undefined> {
  const found = await readChunks(store, place)
  return found === null || found === undefined ? found : unpackPart(found.chunks)
}

/** The same as it is stored: its chunks, and whether it is in a hash with others. */
export async function readChunks(
  store: ContentStore,
  place: { shard: number; contentId: string; part: string; test: boolean },
): Promise<{ readonly chunks: readonly Buffer[]; readonly isSliced: boolean } | null | undefined> {
  const { shard, contentId, part } = place
  const begun = await readFirst(store, place)
  if (begun === null || begun === undefined) return begun
  const { first, isSliced } = begun
  const count = Math.min(chunkCountOf(first), CHUNKS_MAX)
  const chunks = [first]
  while (chunks.length < count) {
    const from = chunks.length
    const names = Array.from({ length: Math.min(CHUNKS_PER_READ_MAX, count - from) }, (_, index) =>
      contentKey(shard, contentId, part, from + index),
    )
    const next = await store.readContent(shard, names)
    if (next === null) return undefined
    for (const chunk of next) {
      if (chunk === null) {
        checkMissing(chunks)
        return null
      }
      chunks.push(chunk)
    }
  }
  checkPart(chunks)
  return { chunks, isSliced }
}

/**
 * A part's first chunk. A small body is stored with those of its slice; any other has its own key, like other parts.
 */
async function readFirst(
  store: ContentStore,
  { shard, contentId, part, test }: { shard: number; contentId: string; part: string; test: boolean },
): Promise<{ readonly first: Buffer; readonly isSliced: boolean } | null | undefined> {
  if (part === BODY_PART) {
    const body = await store.readField(shard, bodyPlace(shard, contentId, test))
    if (body === undefined) return undefined
    if (body !== null) return { first: body, isSliced: true }
  }
  const read = await store.readContent(shard, [contentKey(shard, contentId, part, 0)])
  const first = read === null ? undefined : read[0]
  return first === null || first === undefined ? first : { first, isSliced: false }
}

/** The body in its only chunk, at once; null if there are more, or it was deflated. */
export function readPlainBody(chunks: readonly Uint8Array[]): Body | null {
  const [chunk] = chunks
  return chunk === undefined || partEncoding(chunk) !== ENCODING_TEXTS ? null : unpackTexts(asBuffer(chunk))
}

/** A plain part's bytes from its only chunk, at once; null if there are more, or it was deflated. */
export function readPlainPart(chunks: readonly Uint8Array[]): Buffer | null {
  const [chunk] = chunks
  return chunk === undefined || chunks.length > 1 || partEncoding(chunk) !== ENCODING_PLAIN
    ? null
    : asBuffer(chunk).subarray(headerBytesOf(chunk))
}

/** The bytes of a part from its chunks in order. */
export async function unpackPart(chunks: readonly Uint8Array[]): Promise<Buffer> {
  const first = asBuffer(chunks[0]!)
  const encoding = partEncoding(first)
  if (encoding === ENCODING_TEXTS) return Buffer.from(JSON.stringify(unpackTexts(first)))
  const joined = (chunks.length === 1 ? first : Buffer.concat(chunks)).subarray(headerBytesOf(first))
  return encoding === ENCODING_DEFLATE ? inflate(joined, { maxOutputLength: INFLATED_BYTES_MAX }) : joined
}

function packPart(part: string, bytes: Uint8Array, encoding: number): PackedPart {
  const count = Math.max(1, Math.ceil((bytes.length + PART_HEADER_BYTES) / CHUNK_BYTES_MAX))
  const whole = Buffer.allocUnsafe(bytes.length + PART_HEADER_BYTES)
  whole.set(bytes, PART_HEADER_BYTES)
  writePartHeader(whole, encoding, count)
  const chunks = Array.from({ length: count }, (_, index) =>
    whole.subarray(index * CHUNK_BYTES_MAX, (index + 1) * CHUNK_BYTES_MAX),
  )
  return { part, chunks }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Content in the Redis of each shard. A store that is away is a value, never thrown. */
export function makeContentStore(nodes: Nodes): ContentStore {
  return {
    async writeContent(shard, values) {
      const pipeline = nodes.nodeOf(shard).pipeline()
      for (const { key, bytes } of values) pipeline.set(key, asBuffer(bytes), 'PX', UNCLAIMED_LIFE_MS)
      const answers = await orNull(pipeline.exec())
      return answers?.every(([error]) => error === null) ?? false
    },
    readContent: (shard, keys) => orNull(nodes.nodeOf(shard).mgetBuffer(...keys)),
    readField: (shard, { key, field }) =>
      nodes
        .nodeOf(shard)
        .hgetBuffer(key, field)
        .catch(() => undefined),
    async removeContent(shard, keys) {
      await orNull(nodes.nodeOf(shard).unlink(...keys))
    },
  }
}

function orNull<Value>(answer: Promise<Value>): Promise<Value | null> {
  return answer.then(
    (value) => value,
    () => null,
  )
}
