/** seek-sealed - every sealed value in a store or in files, tried with the keys of a ring. */
import { createDecipheriv } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import type { RingKeys } from '../../../src/state/ring/ring.ts'

/** 40 bytes in base64url, wherever they begin and end in a text. */
const WRAPPED = /(?<![\w-])[\w-]{54}(?![\w-])/g
/** Base64 of a nonce, a tag and a little more, whichever version is in front. */
const SEALED = /[A-Za-z0-9+/]{50,}={0,2}/g
const FIRST_VALUE = Buffer.alloc(8, 0xa6)

/** Texts that open with one of the keys of some generations, each with its place. */
export class SealedSeeker {
  readonly #keys: RingKeys['sealing']
  readonly #owners: readonly string[]

  /** In: the keys to try, and every context that a secret may have. */
  constructor(keys: RingKeys['sealing'], owners: readonly string[]) {
    this.#keys = keys
    this.#owners = owners
  }

  /** Values in a text that open. */
  inText(text: string): string[] {
    const wrapped = [...text.matchAll(WRAPPED)].map(([one]) => one).filter((one) => this.#unwraps(one))
    const sealed = [...text.matchAll(SEALED)].map(([one]) => one).filter((one) => this.#opens(one))
    return [...wrapped, ...sealed]
  }

  /** Keys of the store with a value that opens. */
  async inRedis(redis: Redis): Promise<string[]> {
    const found: string[] = []
    for (const key of await redis.keys('*')) if (this.inText(await textOf(redis, key)).length > 0) found.push(key)
    return found.sort()
  }

  /** Files below a directory with a value that opens. */
  inFiles(directory: string): string[] {
    const names = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    return names
      .filter((name) => statSync(join(directory, name), { throwIfNoEntry: false })?.isFile() === true)
      .filter((name) => this.inText(readFileSync(join(directory, name), 'latin1')).length > 0)
      .sort()
  }

  #unwraps(text: string): boolean {
    return this.#keys.some(({ mail }) => {
      try {
        const decipher = createDecipheriv('id-aes256-wrap', mail, FIRST_VALUE)
        return Buffer.concat([decipher.update(Buffer.from(text, 'base64url')), decipher.final()]).length === 32
      } catch {
        return false
      }
    })
  }

  /** Without a look at the version, so that no wrong one hides a value. */
  #opens(text: string): boolean {
    const bytes = Buffer.from(text, 'base64')
    return this.#keys.some(({ secret }) =>
      [1, 3].some((nonceAt) => this.#owners.some((owner) => opens(bytes, { key: secret, nonceAt, owner }))),
    )
  }
}

function opens(bytes: Buffer, { key, nonceAt, owner }: { key: Buffer; nonceAt: number; owner: string }): boolean {
  const bodyAt = nonceAt + 12 + 16
  if (bytes.length <= bodyAt) return false
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(nonceAt, nonceAt + 12), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(owner))
  decipher.setAuthTag(bytes.subarray(nonceAt + 12, bodyAt))
  try {
    decipher.update(bytes.subarray(bodyAt))
    decipher.final()
    return true
  } catch {
    return false
  }
}

/** Every text of a key's value. */
async function textOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case 'string':
      return (await redis.getBuffer(key))?.toString('latin1') ?? ''
    case 'hash':
      return Object.entries(await redis.hgetall(key))
        .flat()
        .join('\n')
    case 'stream':
      return (await redis.xrange(key, '-', '+')).flatMap(([, fields]) => fields).join('\n')
    case 'zset':
      return (await redis.zrange(key, 0, -1)).join('\n')
    default:
      return ''
  }
}
