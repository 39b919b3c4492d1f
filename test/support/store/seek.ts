/**
 * seek - whether a word is anywhere in bytes in any encoding: plain in any case, in base64, in quoted-printable,
 * percent-encoded, in hex, as UTF-16, and in inflated data
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib'
import type { Redis } from 'ioredis'
import { PART_HEADER_BYTES } from '../../../src/state/message/part-header.ts'

const UNPACKED_BYTES_MAX = 64 * 1024 * 1024

/** Finds a word. In: letters and digits in lower case, so long that no chance writes it. */
export class Seeker {
  readonly #folded: readonly Buffer[]
  readonly #exact: readonly Buffer[]

  constructor(word: string) {
    const spelled = [word, word.toUpperCase(), word.slice(0, 1).toUpperCase() + word.slice(1)]
    const escaped = (form: (byte: number) => string) => Buffer.from(Array.from(Buffer.from(word), form).join(''))
    const hex = (byte: number) => byte.toString(16).padStart(2, '0')
    this.#folded = [
      Buffer.from(word),
      escaped(hex),
      escaped((byte) => `=${hex(byte)}`),
      escaped((byte) => `%${hex(byte)}`),
      escaped((byte) => `\\x${hex(byte)}`),
      escaped((byte) => `\\u00${hex(byte)}`),
      Buffer.from(word, 'utf16le'),
    ]
    this.#exact = spelled.flatMap(base64Cores)
  }

  /** Whether the word is in the bytes, or in their inflated form. */
  isIn(bytes: Buffer): boolean {
    return this.#holds(bytes) || unpacked(bytes).some((inner) => this.#holds(inner))
  }

  #holds(bytes: Buffer): boolean {
    const folded = Buffer.from(bytes.toString('latin1').toLowerCase(), 'latin1')
    // Lines of quoted-printable and base64 are folded wherever they are full.
    const joined = Buffer.from(bytes.toString('latin1').replace(/=?\r?\n/g, ''), 'latin1')
    const joinedFolded = Buffer.from(joined.toString('latin1').toLowerCase(), 'latin1')
    return (
      this.#folded.some((needle) => folded.includes(needle) || joinedFolded.includes(needle)) ||
      this.#exact.some((needle) => bytes.includes(needle) || joined.includes(needle))
    )
  }
}

/** The part of a word's base64 that does not depend on the text around it, at any offset. */
function base64Cores(word: string): Buffer[] {
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), Buffer.from(word)]).toString('base64')
    const core = text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + word.length) * 8) / 6))
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')].map((one) => Buffer.from(one))
  })
}

/** The inflated data at the places where zlib streams begin. */
function unpacked(bytes: Buffer): Buffer[] {
  const options = { maxOutputLength: UNPACKED_BYTES_MAX }
  const ways = [inflateRawSync, inflateSync, gunzipSync, brotliDecompressSync]
  return [bytes, bytes.subarray(PART_HEADER_BYTES)].flatMap((part) =>
    ways.flatMap((way) => {
      try {
        return part.length > 0 ? [way(part, options)] : []
      } catch {
        return []
      }
    }),
  )
}

/** Names of keys whose name, fields or values hold the word. */
export async function seekInRedis(redis: Redis, seeker: Seeker): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  do {
    const [next, keys] = await redis.scanBuffer(cursor, 'COUNT', 1000)
    cursor = next.toString()
    for (const key of keys) {
      const values = [key, ...(await valuesOf(redis, key))]
      if (values.some((value) => seeker.isIn(value))) found.push(key.toString())
    }
  } while (cursor !== '0')
  return [...new Set(found)].sort()
}

async function valuesOf(redis: Redis, key: Buffer): Promise<Buffer[]> {
  const type = await redis.type(key)
  const read = {
    string: () => redis.callBuffer('GET', key),
    hash: () => redis.callBuffer('HGETALL', key),
    zset: () => redis.callBuffer('ZRANGE', key, '0', '-1'),
    set: () => redis.callBuffer('SMEMBERS', key),
    list: () => redis.callBuffer('LRANGE', key, '0', '-1'),
    stream: () => redis.callBuffer('XRANGE', key, '-', '+'),
  }[type]
  if (read === undefined) {
    if (type === 'none') return []
    throw new Error(`No way to read a ${type}`)
  }
  return flat(await read())
}

function flat(value: unknown): Buffer[] {
  if (Buffer.isBuffer(value)) return [value]
  return Array.isArray(value) ? value.flatMap(flat) : []
}

/** Files under a directory whose name or bytes hold the word, by their path in it. */
export function seekInFiles(directory: string, seeker: Seeker): string[] {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  return files
    .map((file) => join(file.parentPath, file.name))
    .filter((path) => seeker.isIn(Buffer.from(path)) || seeker.isIn(readFileSync(path)))
    .map((path) => path.slice(directory.length + 1))
    .sort()
}
