/**
 * ring - the keys of an installation: two for each generation that seal, and one for each purpose that hash and sign.
 *
 * SECRET_KEY seals the ring and nothing else, so it can change. A sealed value names the generation of its key, so a
 * ring that holds two generations opens old and new values. Generation 0 is what earlier releases derived from
 * SECRET_KEY, and so are the keys that hash and sign, which never change: stored hashes and links would become
 * worthless.
 *
 * Packed: `[1, version, current, [[generation, mail key, secret key]...], {purpose: key}]`, keys in base64url, sealed
 * by AES-256-GCM under a key derived from SECRET_KEY (RFC 5869): nonce, tag, bytes, in base64url.
 *
 * Key: `{cl}:conf`, field `ring`
 */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

const KEY_BYTES = 32
const TAG_BYTES = 16
export const RING_NONCE_BYTES = 12
const FORMAT = 1
const CONTEXT = Buffer.from('sendwright ring')
const CHECK_CHARS = 22

/** The purposes of the keys that hash and sign. A stored ring names them: never rename one. */
const PURPOSES = [
  'address hmac',
  'idempotency hmac',
  'login hmac',
  'recovery hmac',
  'tag hmac',
  'erased pseudonym',
  'client hmac',
  'link mac',
  'challenge mac',
  'device mac',
  'token mac',
  'feedback sender',
] as const

export type Purpose = (typeof PURPOSES)[number]

/** The keys that hash and sign, by purpose. They can be given to a thread. */
export type HashKeys = Readonly<Record<Purpose, Uint8Array>>

/** The keys of a generation that seal. */
export interface SealingKeys {
  readonly generation: number
  /** Wraps the keys of mails whose content is in the content store, and of segments. */
  readonly mail: Buffer
  /** Seals DKIM keys, secrets of webhooks and of second factors. */
  readonly secret: Buffer
}

/** All keys. */
export interface RingKeys {
  /** Counts the changes of the ring. */
  readonly version: number
  /** Generation that seals new values. */
  readonly current: number
  /** One generation, or during a rotation two, the older one first. */
  readonly sealing: readonly SealingKeys[]
  readonly hash: HashKeys
}

/** The keys cannot be used right now, as if the store did not answer. */
export class RingNotReady extends Error {}

/** A value names a generation that this process does not know yet: it is read again later. */
class RingBehind extends RingNotReady {
  constructor(generation: number) {
    super(`This process has not loaded key ${generation} yet`)
  }
}

/** This process has not been able to confirm for a while which key seals, so it seals nothing. */
class RingUnconfirmed extends RingNotReady {
  constructor() {
    super('The keys of the installation could not be confirmed')
  }
}

/** The keys of a process, replaced as a whole when the store has others. */
export class Ring {
  #keys: RingKeys
  /** Keys that have left the ring: values that were read before still open. */
  #former: readonly SealingKeys[] = []
  readonly #isConfirmed: () => boolean

  constructor(keys: RingKeys, isConfirmed: () => boolean = () => true) {
    this.#keys = keys
    this.#isConfirmed = isConfirmed
  }

  get keys(): RingKeys {
    return this.#keys
  }

  replace(keys: RingKeys): void {
    const isLeft = ({ generation }: SealingKeys): boolean => !keys.sealing.some((one) => one.generation === generation)
    this.#former = [...this.#former, ...this.#keys.sealing.filter(isLeft)]
    this.#keys = keys
  }

  /** Forgets the keys that have left the ring. */
  forget(): void {
    this.#former = []
  }

  /** The keys that seal new values. Throws RingNotReady if that was not confirmed lately. */
  sealing(): SealingKeys {
    if (!this.#isConfirmed()) throw new RingUnconfirmed()
    return this.#find(this.#keys.current) as SealingKeys
  }

  /** The keys of a generation; null once it was removed. Throws RingNotReady for a newer one than is known. */
  opening(generation: number): SealingKeys | null {
    const found = this.#find(generation) ?? this.#former.find((one) => one.generation === generation)
    const newest = this.#keys.sealing.at(-1)?.generation ?? 0
    if (found === undefined && generation > newest) throw new RingBehind(generation)
    return found ?? null
  }

  #find(generation: number): SealingKeys | undefined {
    return this.#keys.sealing.find((one) => one.generation === generation)
  }
}

/** The first ring of an installation: the keys that earlier releases derived from SECRET_KEY. */
export function deriveRingKeys(secretKey: string): RingKeys {
  const derive = (purpose: string): Buffer => deriveKey(secretKey, purpose)
  const hash = Object.fromEntries(PURPOSES.map((purpose) => [purpose, derive(purpose)])) as unknown as HashKeys
  const sealing = [{ generation: 0, mail: derive('content sealing'), secret: derive('dkim sealing') }]
  return { version: 0, current: 0, sealing, hash }
}

/** Distinguishes two values of SECRET_KEY without revealing anything about them: 22 characters, kept in the store. */
export function checkOfSecret(secretKey: string): string {
  const key = deriveKey(secretKey, 'secret check')
  return createHmac('sha256', key).update('').digest('base64url').slice(0, CHECK_CHARS)
}

/** The ring with a further generation, which does not seal yet. Takes its keys, 64 random bytes. */
export function withGeneration(keys: RingKeys, random: Buffer): RingKeys {
  const generation = (keys.sealing.at(-1)?.generation ?? 0) + 1
  const mail = random.subarray(0, KEY_BYTES)
  const secret = random.subarray(KEY_BYTES, 2 * KEY_BYTES)
  return { ...keys, version: keys.version + 1, sealing: [...keys.sealing, { generation, mail, secret }] }
}

/** The ring whose newest generation seals. */
export function withNewestSealing(keys: RingKeys): RingKeys {
  const current = keys.sealing.at(-1)?.generation ?? keys.current
  return { ...keys, version: keys.version + 1, current }
}

/** The ring without the generations that no longer seal. */
export function withoutFormer(keys: RingKeys): RingKeys {
  const sealing = keys.sealing.filter(({ generation }) => generation === keys.current)
  return { ...keys, version: keys.version + 1, sealing }
}

type PackedRing = [
  format: number,
  version: number,
  current: number,
  sealing: [generation: number, mail: string, secret: string][],
  hash: Record<string, string>,
]

/** Seals a ring. Takes a nonce that is never used twice. */
export function sealRing(keys: RingKeys, { secretKey, nonce }: { secretKey: string; nonce: Buffer }): string {
  const text = (key: Uint8Array): string => Buffer.from(key).toString('base64url')
  const packed: PackedRing = [
    FORMAT,
    keys.version,
    keys.current,
    keys.sealing.map(({ generation, mail, secret }) => [generation, text(mail), text(secret)]),
    Object.fromEntries(Object.entries(keys.hash).map(([purpose, key]) => [purpose, text(key)])),
  ]
  const cipher = createCipheriv('aes-256-gcm', ringKey(secretKey), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(CONTEXT)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(packed)), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** Opens the result of `sealRing`; null if it was sealed with another secret or was changed. */
export function openRing(sealed: string, secretKey: string): RingKeys | null {
  const bytes = Buffer.from(sealed, 'base64url')
  const bodyAt = RING_NONCE_BYTES + TAG_BYTES
  if (bytes.length <= bodyAt) return null
  const nonce = bytes.subarray(0, RING_NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', ringKey(secretKey), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(CONTEXT)
  decipher.setAuthTag(bytes.subarray(RING_NONCE_BYTES, bodyAt))
  try {
    const opened = Buffer.concat([decipher.update(bytes.subarray(bodyAt)), decipher.final()])
    return unpackRing(JSON.parse(opened.toString()) as PackedRing)
  } catch {
    // The cipher has no other way to report a failure.
    return null
  }
}

function unpackRing([format, version, current, sealing, hash]: PackedRing): RingKeys | null {
  if (format !== FORMAT) return null
  const bytes = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url')
  return {
    version,
    current,
    sealing: sealing.map(([generation, mail, secret]) => ({ generation, mail: bytes(mail), secret: bytes(secret) })),
    hash: Object.fromEntries(PURPOSES.map((purpose) => [purpose, bytes(hash[purpose])])) as unknown as HashKeys,
  }
}

function ringKey(secretKey: string): Buffer {
  return deriveKey(secretKey, 'ring sealing')
}

function deriveKey(secretKey: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secretKey, '', `sendwright ${purpose} v1`, KEY_BYTES))
}
