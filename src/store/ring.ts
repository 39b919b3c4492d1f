/**
 * ring - the ring of the installation as this process knows it: loaded at the start, and read again every two seconds
 *
 * The first process creates it. A process that cannot open a changed ring ends, because it could no longer read what
 * others write. Values are sealed only while the ring was confirmed within the last minute, so that no process seals
 * with a key that was removed in the meantime. A rotation changes the ring in steps, each of which does nothing if it
 * was done before.
 *
 * Key: `{cl}:conf`, fields `ring`, `secret`, `former-secret`, `version`
 */

import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { monotonicMs } from '../process/fence.ts'
import {
  checkOfSecret,
  deriveRingKeys,
  openRing,
  RING_NONCE_BYTES,
  Ring,
  type RingKeys,
  sealRing,
  withGeneration,
  withNewestSealing,
  withoutFormer,
} from '../state/ring/ring.ts'
import { InstallationMismatch, ROTATED_VERSION } from './installation.ts'
import { dropPrevious, nextSecret, promoteNext, type SecretSource, secretsOf } from './secret.ts'

const RING_FIELD = 'ring'
const LOOK_MS = 2_000
/** Sealing ends this long after the last confirmation. */
const CONFIRMED_MS = 60_000
/** A process that did nothing for this long was frozen. */
const FROZEN_MS = 30_000
const TICK_MS = 1_000
/** For this long a process opens values with a removed key, which it has read before. */
const FORMER_MS = 30 * 60_000
/** Bytes of the keys of a generation. */
const GENERATION_BYTES = 64

export interface RingPlace {
  /** The client of the moment. */
  readonly redis: () => Redis
  readonly source: SecretSource
  /** The secret that the store has confirmed. */
  readonly secret: string
  /** Another secret has become the store's. */
  readonly onSecret?: (secret: string) => void
  /** The ring was changed and does not open. */
  readonly onLost: (sentence: string) => void
}

/** The ring, kept up to date, and its steps in a rotation. Steps reject if the store does not answer. */
export interface RingDoor {
  readonly ring: Ring
  /** The record of this process: which ring it knows, and which secrets it has. */
  record(): { readonly version: number; readonly secrets: readonly string[] }
  /** False if this process was frozen until now, and until the ring is confirmed: what it sealed before is not used. */
  isAwake(): boolean
  /** Whether a new secret is set, or can be made. */
  hasNext(): boolean
  /** What distinguishes the new secret, which is made if it is one of files; null: none is set. */
  nextCheck(): string | null
  /** Adds a generation, and seals the ring with the new secret. */
  add(): Promise<void>
  /** The newest generation seals. */
  switch(): Promise<void>
  /** Removes the former generations. */
  retire(): Promise<void>
  stop(): void
}

/** Loads the ring, or creates that of an installation without one. Throws InstallationMismatch if it does not open. */
export async function openRingDoor(place: RingPlace): Promise<RingDoor> {
  const { redis, secret } = place
  // A full store refuses the write even if the field is there.
  if ((await readRing(redis())) === null)
    await redis().hsetnx(CONF_KEY, RING_FIELD, sealed(deriveRingKeys(secret), secret))
  const text = await readRing(redis())
  const keys = text === null ? null : openRing(text, secret)
  if (text === null || keys === null)
    throw new InstallationMismatch('SECRET_KEY does not open the keys of this store: restore a backup')
  return new OpenRing(place, { text, keys })
}

/** The ring as it is now, for one act beside the service. Throws InstallationMismatch if it does not open. */
export async function readRingNow(redis: Redis, secret: string): Promise<Ring> {
  const text = await readRing(redis)
  const keys = text === null ? null : openRing(text, secret)
  if (keys === null) throw new InstallationMismatch('SECRET_KEY does not open the keys of this store: restore a backup')
  return new Ring(keys, () => true)
}

class OpenRing implements RingDoor {
  readonly ring: Ring
  readonly #place: RingPlace
  readonly #timers: readonly NodeJS.Timeout[]
  #text: string
  #secret: string
  #secrets: readonly string[] = []
  #confirmedMs = monotonicMs()
  #tickMs = monotonicMs()
  /** When it went on after it was frozen. */
  #awakeMs = Number.NEGATIVE_INFINITY

  constructor(place: RingPlace, { text, keys }: { readonly text: string; readonly keys: RingKeys }) {
    this.#place = place
    this.#text = text
    this.#secret = place.secret
    this.ring = new Ring(keys, () => monotonicMs() - this.#confirmedMs < CONFIRMED_MS)
    this.#tidyFiles()
    this.#secrets = this.#checks()
    const look = async (): Promise<void> => {
      await this.#look().catch((error: Error) => {
        // A store that does not answer is asked again.
        if (error instanceof InstallationMismatch) place.onLost(error.message)
      })
    }
    const tick = (): void => {
      if (this.#isFrozen()) this.#awakeMs = monotonicMs()
      this.#tickMs = monotonicMs()
    }
    this.#timers = [setInterval(look, LOOK_MS).unref(), setInterval(tick, TICK_MS).unref()]
  }

  record() {
    return { version: this.ring.keys.version, secrets: this.#secrets }
  }

  isAwake(): boolean {
    return !this.#isFrozen() && this.#confirmedMs >= this.#awakeMs
  }

  hasNext(): boolean {
    const { secretKey } = this.#place.source
    return secretKey === null || secretKey !== this.#secret
  }

  nextCheck(): string | null {
    const next = nextSecret(this.#place.source, this.#secret)
    return next === null ? null : checkOfSecret(next)
  }

  async add(): Promise<void> {
    await this.#look()
    const { keys } = this.ring
    if (keys.sealing.length > 1) return
    const next = nextSecret(this.#place.source, this.#secret)
    if (next !== null) await this.#change(withGeneration(keys, randomBytes(GENERATION_BYTES)), next)
  }

  async switch(): Promise<void> {
    await this.#look()
    const { keys } = this.ring
    if (keys.current === keys.sealing.at(-1)?.generation) return
    await this.#change(withNewestSealing(keys), this.#secret)
  }

  async retire(): Promise<void> {
    await this.#look()
    const { keys } = this.ring
    if (keys.sealing.length > 1) await this.#change(withoutFormer(keys), this.#secret)
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /** Writes another ring, unless another process has changed it. Another secret than before becomes the store's. */
  async #change(keys: RingKeys, secret: string): Promise<void> {
    const [confirmed, former] = [secret, this.#secret].map(checkOfSecret) as [string, string]
    const script = `if redis.call('HGET', KEYS[1], '${RING_FIELD}') ~= ARGV[1] then return 0 end
      redis.call('HSET', KEYS[1], '${RING_FIELD}', ARGV[2], 'secret', ARGV[3], 'version', ARGV[4])
      if ARGV[5] ~= ARGV[3] then redis.call('HSET', KEYS[1], 'former-secret', ARGV[5]) end
      return 1`
    const args = [this.#text, sealed(keys, secret), confirmed, String(ROTATED_VERSION), former]
    await this.#place.redis().eval(script, 1, CONF_KEY, ...args)
    await this.#look()
  }

  #isFrozen(): boolean {
    return monotonicMs() - this.#tickMs >= FROZEN_MS
  }

  /** Reads the ring again. */
  async #look(): Promise<void> {
    const askedMs = monotonicMs()
    const text = await readRing(this.#place.redis())
    // An emptied store is reported by its watch.
    if (text === null) return
    if (text !== this.#text) this.#take(text)
    this.#confirmedMs = askedMs
    this.#secrets = this.#checks()
  }

  #take(text: string): void {
    const { source } = this.#place
    for (const secret of new Set([this.#secret, ...secretsOf(source)])) {
      const keys = openRing(text, secret)
      if (keys === null) continue
      // Requests that it had begun have values that were sealed with a key which no rotation waits for any more.
      if (keys.current !== this.ring.keys.current && !this.isAwake())
        throw new InstallationMismatch(
          'The secret was rotated while this process was frozen: it has to be started again',
        )
      const isLeft = keys.sealing.length < this.ring.keys.sealing.length
      this.ring.replace(keys)
      if (isLeft) setTimeout(() => this.ring.forget(), FORMER_MS).unref()
      this.#text = text
      if (secret !== this.#secret) this.#place.onSecret?.(secret)
      this.#secret = secret
      this.#tidyFiles()
      return
    }
    throw new InstallationMismatch(
      'The secret of this store was rotated, and this process does not have the new one: set SECRET_KEY, or copy ' +
        'secret-key from another process',
    )
  }

  /** The files follow the store. */
  #tidyFiles(): void {
    const { dataDir, secretKey } = this.#place.source
    if (secretKey !== null) return
    const [first, ...others] = secretsOf(this.#place.source)
    if (first !== this.#secret && others.includes(this.#secret)) promoteNext(dataDir)
    if (this.ring.keys.sealing.length === 1 && secretsOf(this.#place.source)[0] === this.#secret) dropPrevious(dataDir)
  }

  #checks(): readonly string[] {
    return secretsOf(this.#place.source).map(checkOfSecret)
  }
}

function sealed(keys: RingKeys, secretKey: string): string {
  return sealRing(keys, { secretKey, nonce: randomBytes(RING_NONCE_BYTES) })
}

function readRing(redis: Redis): Promise<string | null> {
  return redis.hget(CONF_KEY, RING_FIELD)
}
