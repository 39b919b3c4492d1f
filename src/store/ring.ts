/**
 * ring - the ring of the installation as this process knows it: loaded at the start, and read again every two seconds
 *
 * The first process creates it. A process that cannot open a changed ring ends, because it could no longer read what
 * others write. Values are sealed only while the ring was confirmed within the last minute, so that no process seals
 * with a key that was removed in the meantime.
 *
 * Key: `{cl}:conf`, fields `ring`, `secret`
 */

import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { monotonicMs } from '../process/fence.ts'
import { deriveRingKeys, openRing, RING_NONCE_BYTES, Ring, sealRing } from '../state/ring.ts'
import { InstallationMismatch } from './installation.ts'

const RING_FIELD = 'ring'
const LOOK_MS = 2_000
/** Sealing ends this long after the last confirmation. */
const CONFIRMED_MS = 60_000

export interface RingPlace {
  /** The client of the moment. */
  readonly redis: () => Redis
  /** The value of SECRET_KEY that the store has confirmed. */
  readonly secret: string
  /** The ring was changed and does not open. */
  readonly onLost: (sentence: string) => void
}

/** The ring, kept up to date. */
export interface RingDoor {
  readonly ring: Ring
  stop(): void
}

/** Loads the ring, or creates that of an installation without one. Throws InstallationMismatch if it does not open. */
export async function openRingDoor(place: RingPlace): Promise<RingDoor> {
  const { redis, secret, onLost } = place
  const first = sealRing(deriveRingKeys(secret), { secretKey: secret, nonce: randomBytes(RING_NONCE_BYTES) })
  await redis().hsetnx(CONF_KEY, RING_FIELD, first)
  let known = await readRing(redis())
  let confirmedMs = monotonicMs()
  const keys = known === null ? null : openRing(known, secret)
  if (keys === null) throw new InstallationMismatch(NOT_OPEN)
  const ring = new Ring(keys, () => monotonicMs() - confirmedMs < CONFIRMED_MS)
  const look = async (): Promise<void> => {
    const askedMs = monotonicMs()
    const text = await readRing(redis())
    // An emptied store is reported by its watch.
    if (text === null) return
    if (text !== known) {
      const changed = openRing(text, secret)
      if (changed === null) return onLost(NOT_OPEN)
      ring.replace(changed)
      known = text
    }
    confirmedMs = askedMs
  }
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref()
  return { ring, stop: () => clearInterval(timer) }
}

/** The ring as it is now, for one act beside the service. Throws InstallationMismatch if it does not open. */
export async function readRingNow(redis: Redis, secret: string): Promise<Ring> {
  const text = await readRing(redis)
  const keys = text === null ? null : openRing(text, secret)
  if (keys === null) throw new InstallationMismatch(NOT_OPEN)
  return new Ring(keys, () => true)
}

const NOT_OPEN = 'SECRET_KEY does not open the keys of this store'

function readRing(redis: Redis): Promise<string | null> {
  return redis.hget(CONF_KEY, RING_FIELD)
}
