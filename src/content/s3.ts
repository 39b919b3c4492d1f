/**
 * s3 - the content store in a bucket: for installations of several machines
 *
 * An object is gathered first, in memory up to a megabyte, otherwise in a local unfinished file, because its length
 * and its hash are sent before it, and a failed try is repeated from there. Further names are copies.
 *
 * Guarantees: a write counts only after S3 has acknowledged the whole object under its hash. Names are of chance, so
 * nothing is ever overwritten and no conditional writes are needed.
 */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import {
  makeS3Wire,
  readRefusal,
  S3_TIMES,
  type S3Answer,
  type S3Place,
  type S3Request,
  type S3Times,
} from './s3-wire.ts'
import {
  type Front,
  type Listed,
  type SealedSpan,
  type StorageBackend,
  StorageFailure,
  toStorageFailure,
} from './storage-backend.ts'
import { makeUnfinishedFiles } from './unfinished.ts'

const ID_NAME = '.id'
const HELD_BYTES_MAX = 1024 * 1024
const LIST_KEYS = 1000
/** Maximum pages of a list. A list is a day of a shard. */
const PAGES_MAX = 10_000
const REMOVALS = 8
const ID_BYTES_MAX = 256
const LIST_BYTES_MAX = 4 * 1024 * 1024

export interface S3HomeOptions {
  /** Where large objects are gathered: `tmp` under it. */
  readonly folder: string
  readonly worker: () => string
  /** In place of our own. */
  readonly times?: S3Times
  /** Keys on a page of a list. */
  readonly listKeys?: number
}

/** The home in a bucket. */
export function makeS3Home(
  place: S3Place,
  { folder, worker, times = S3_TIMES, listKeys = LIST_KEYS }: S3HomeOptions,
): StorageBackend {
  const wire = makeS3Wire(place, times)
  const unfinished = makeUnfinishedFiles(join(folder, 'tmp'), worker)
  const bucket = new Bucket(wire, place, listKeys)
  return {
    kind: 's3',
    readId: () => bucket.readId(),
    writeId: (id) => bucket.put(ID_NAME, heldBody(Buffer.from(`${id}\n`))),
    async write(names, sealed) {
      const gathered = names.length === 0 ? null : await gather(sealed, unfinished)
      if (gathered === null) return
      try {
        await bucket.putAll(names, gathered.body)
      } finally {
        await gathered.drop()
      }
    },
    front: (name, bytes) => readFront(bucket.expect, name, bytes),
    read: (name, span) => readFrom(bucket.expect, name, span),
    remove: (names) => bucket.removeAll(names),
    days: async (prefix) => (await bucket.list(`${prefix}/`, '/')).days.sort(),
    async *list(prefix) {
      yield* (await bucket.list(`${prefix}/`)).objects
    },
    async removeDay(prefix) {
      const { objects } = await bucket.list(`${prefix}/`)
      await bucket.removeAll(objects.map(({ name }) => name))
      return objects.length
    },
    sweepUnfinished: (isLiving) =>
      unfinished.sweep(isLiving).catch((error: unknown) => {
        throw toStorageFailure(error)
      }),
    close: wire.close,
  }
}

/** The operations of the bucket. Each call rejects with a HomeFailure on an unexpected answer. */
class Bucket {
  private readonly wire: ReturnType<typeof makeS3Wire>
  private readonly place: S3Place
  private readonly listKeys: number

  constructor(wire: ReturnType<typeof makeS3Wire>, place: S3Place, listKeys: number) {
    this.wire = wire
    this.place = place
    this.listKeys = listKeys
  }

  readonly expect: Expect = async (request, statuses) => {
    const answer = await this.wire.send(request)
    if (statuses.includes(answer.status)) return answer
    throw new StorageFailure('away', await readRefusal(answer))
  }

  async readId(): Promise<string | null> {
    const answer = await this.expect({ method: 'GET', name: ID_NAME }, [200, 404])
    const text = await readText(answer, ID_BYTES_MAX * 4)
    if (answer.status === 404 && text.includes('NoSuchBucket'))
      throw new StorageFailure('away', 'S3 has no such bucket')
    return answer.status === 404 ? null : text.trim()
  }

  async put(name: string, body: NonNullable<S3Request['body']>): Promise<void> {
    await (await this.expect({ method: 'PUT', name, body }, [200])).drop()
  }

  /** One object under several names; if not all can be written, the written ones are removed. */
  async putAll(names: readonly string[], body: NonNullable<S3Request['body']>): Promise<void> {
    const written: string[] = []
    try {
      for (const name of names) {
        const [first] = written
        written.push(name)
        await (first === undefined ? this.put(name, body) : this.copy(first, name))
      }
    } catch (error) {
      // Includes the one with an unknown outcome, whose acknowledgement may have been lost.
      await this.removeAll(written).catch(() => undefined)
      throw toStorageFailure(error)
    }
  }

  async removeAll(names: readonly string[]): Promise<void> {
    for (let from = 0; from < names.length; from += REMOVALS)
      await Promise.all(names.slice(from, from + REMOVALS).map((name) => this.remove(name)))
  }

  /** Everything under a prefix; with a delimiter only the next step of the names. */
  list(prefix: string, delimiter?: string): ReturnType<typeof listAll> {
    const { expect: wire, place, listKeys } = this
    return listAll({ wire, place, listKeys, prefix, ...(delimiter !== undefined && { delimiter }) })
  }

  private async remove(name: string): Promise<void> {
    await (await this.expect({ method: 'DELETE', name }, [200, 204, 404])).drop()
  }

  private async copy(from: string, to: string): Promise<void> {
    const source = `/${this.place.bucket}/${[this.place.prefix, from].filter(Boolean).join('/')}`
    const headers = { 'x-amz-copy-source': source }
    const answer = await this.expect({ method: 'PUT', name: to, headers }, [200])
    // A copy that fails half way is reported in the body of a 200.
    if ((await readText(answer, LIST_BYTES_MAX)).includes('<Error>'))
      throw new StorageFailure('away', 'S3 did not copy')
  }
}

type Expect = (request: S3Request, statuses: readonly number[]) => Promise<S3Answer>

async function readFront(expect: Expect, name: string, bytes: number): Promise<Front | null> {
  const answer = await expect({ method: 'GET', name, headers: { range: rangeOf(0, bytes) } }, [200, 206, 404, 416])
  const body = await readBytes(answer, bytes)
  if (answer.status === 404) return null
  if (answer.status === 416) return { size: 0, bytes: Buffer.alloc(0) }
  const total = /\/(\d+)$/.exec(answer.header('content-range') ?? '')?.[1] ?? answer.header('content-length')
  return { size: Number(total), bytes: body }
}

async function* readFrom(expect: Expect, name: string, { from, length }: SealedSpan): AsyncGenerator<Buffer> {
  // A 200 with the whole object would be read as other bytes, so only 206 is valid.
  const answer = await expect({ method: 'GET', name, headers: { range: rangeOf(from, length) } }, [206])
  try {
    for await (const piece of answer.body) yield piece
  } catch (error) {
    throw toStorageFailure(error)
  } finally {
    await answer.drop().catch(() => undefined)
  }
}

function rangeOf(from: number, length: number): string {
  return `bytes=${from}-${from + length - 1}`
}

/** The bytes to send, with length and hash; `drop` frees their storage. */
async function gather(sealed: AsyncIterable<Buffer>, unfinished: ReturnType<typeof makeUnfinishedFiles>) {
  const hash = createHash('sha256')
  const pieces = sealed[Symbol.asyncIterator]()
  const held: Buffer[] = []
  let heldBytes = 0
  let isWhole = false
  while (heldBytes <= HELD_BYTES_MAX && !isWhole) {
    const next = await pieces.next()
    if (next.done === true) isWhole = true
    else {
      hash.update(next.value)
      held.push(next.value)
      heldBytes += next.value.length
    }
  }
  if (isWhole) return { body: heldBody(Buffer.concat(held)), drop: async () => undefined }
  async function* all(): AsyncGenerator<Buffer> {
    yield* held
    held.length = 0
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
      hash.update(next.value)
      yield next.value
    }
  }
  const { path, bytes } = await unfinished.write(all()).catch((error: unknown) => {
    throw toStorageFailure(error)
  })
  const body = { make: () => createReadStream(path), bytes, sha256: hash.digest('hex') }
  return { body, drop: () => unfinished.remove(path) }
}

function heldBody(bytes: Buffer): NonNullable<S3Request['body']> {
  return { make: () => bytes, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

interface ListOrder {
  readonly wire: Expect
  readonly place: S3Place
  readonly listKeys: number
  readonly prefix: string
  readonly delimiter?: string
}

/**
 * Everything under a prefix; with a delimiter only the next step of the names. ListObjects, version 1: Swift knows no
 * other.
 */
async function listAll({
  wire,
  place,
  listKeys,
  prefix,
  delimiter,
}: ListOrder): Promise<{ objects: Listed[]; days: string[] }> {
  const before = place.prefix === '' ? '' : `${place.prefix}/`
  const objects: Listed[] = []
  const days: string[] = []
  let marker = ''
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query = {
      prefix: before + prefix,
      'max-keys': String(listKeys),
      ...(delimiter !== undefined && { delimiter }),
      ...(marker !== '' && { marker }),
    }
    const text = await readText(await wire({ method: 'GET', name: null, query }, [200]), LIST_BYTES_MAX)
    // Our own names hold nothing that XML would escape.
    for (const inside of elementsOf(text, 'Contents')) {
      const key = /<Key>([^<]*)<\/Key>/.exec(inside)?.[1] ?? ''
      const writtenAtMs = Date.parse(/<LastModified>([^<]*)<\/LastModified>/.exec(inside)?.[1] ?? '')
      objects.push({ name: key.slice(before.length), writtenAtMs })
      marker = key
    }
    for (const inside of elementsOf(text, 'CommonPrefixes')) {
      const found = /<Prefix>([^<]*)<\/Prefix>/.exec(inside)?.[1] ?? ''
      days.push(found.slice(before.length + prefix.length).replace(/\/$/, ''))
      marker = found > marker ? found : marker
    }
    if (!/<IsTruncated>true</.test(text)) return { objects, days }
  }
  throw new StorageFailure('away', 'S3 returned an endless list')
}

/**
 * The contents of the elements of a name, in one pass, because a list has megabytes. Elements of one name are not
 * nested.
 */
function* elementsOf(xml: string, name: string): Generator<string> {
  for (const piece of xml.split(`<${name}>`).slice(1)) {
    const end = piece.indexOf(`</${name}>`)
    if (end >= 0) yield piece.slice(0, end)
  }
}

async function readText(answer: S3Answer, bytesMax: number): Promise<string> {
  const bytes = await readBytes(answer, bytesMax + 1)
  if (bytes.length > bytesMax) throw new StorageFailure('away', 'S3 returned more data than requested')
  return bytes.toString()
}

/** Reads up to `bytesMax` bytes of an answer and discards the rest. */
async function readBytes(answer: S3Answer, bytesMax: number): Promise<Buffer> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of answer.body) {
      bytes += piece.length
      pieces.push(piece)
      if (bytes > bytesMax) break
    }
  } catch (error) {
    throw toStorageFailure(error)
  }
  return Buffer.concat(pieces).subarray(0, bytesMax)
}
