/**
 * idempotency - an accepted answer under its Idempotency-Key, for 24 hours.
 *
 * Written in the commit of its message. Packed: `[fingerprint, ms, [message ids]]`, and of a partial send `[[place,
 * code, extra], …]` of the refused messages; fingerprint = its first 128 bits, ids short. The day of the key is that of
 * the turn; it is looked for under yesterday, today and tomorrow, because a clock may have gone back over midnight
 * since.
 *
 * Key: `idempotency:<yyyymmdd>:<x>`, x = first four bits of the hash; expires an hour after the end of the next day
 *
 * Spec request.idempotency
 */

import type { Fact, Facts, Op } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { IDEMPOTENCY_HOURS } from '../../../schemas/limits.ts'
import type { RefusalCode } from '../../../schemas/refusals.ts'
import { DAY_MS, dayName, HOUR_MS } from '../calendar.ts'
import { bucketOfHmac } from '../hash-fraction.ts'
import { idempotencyKey } from '../keys.ts'

const FINGERPRINT_CHARS = 32
const DAYS = [0, -DAY_MS, DAY_MS]

/** The data of a request. */
export interface IdempotencyInput {
  /** HMAC of server and key, 22 characters. */
  readonly hash: string
  /** SHA-256 of route and body, hex. */
  readonly fingerprint: string
}

/** An answer that was given before. */
export interface IdempotencyRecord {
  /** Whether it was given to the same request. */
  readonly same: boolean
  readonly messageIds: readonly string[]
  /** Messages of a partial send that were refused; absent: none. */
  readonly refused?: readonly RefusedRecord[]
}

/** A refused message, with its place in the request and the refusal. */
export interface RefusedRecord {
  readonly place: number
  readonly code: RefusalCode
  readonly extra: Readonly<Record<string, string | number>>
}

type PackedRefused = readonly [RefusedRecord['place'], RefusedRecord['code'], RefusedRecord['extra']]
type PackedRecord = readonly [fingerprint: string, atMs: number, shorts: string[], refused?: readonly PackedRefused[]]

/** The reads that `findRecord` needs. */
export function idempotencyFacts(shard: number, { hash }: IdempotencyInput, nowMs: number): Fact[] {
  return DAYS.map((shiftMs) => ({ read: 'fields', key: keyOf(shard, hash, nowMs + shiftMs), fields: [hash] }))
}

/** The answer under the key; null if there was none within 24 hours. */
export function findRecord(
  facts: Facts,
  { hash, fingerprint }: IdempotencyInput,
  { shard, nowMs }: { shard: number; nowMs: number },
): IdempotencyRecord | null {
  for (const shiftMs of DAYS) {
    const packed = facts.field(keyOf(shard, hash, nowMs + shiftMs), hash)
    if (packed === null) continue
    const [known, answeredAtMs, shorts, refused] = JSON.parse(withoutSum(packed, 'idempotency')) as PackedRecord
    if (nowMs - answeredAtMs >= IDEMPOTENCY_HOURS * HOUR_MS) continue
    return {
      same: known === fingerprint.slice(0, FINGERPRINT_CHARS),
      messageIds: shorts.map(idOfShort),
      ...(refused && { refused: refused.map(([place, code, extra]) => ({ place, code, extra })) }),
    }
  }
  return null
}

/** Writes of an answer. */
export function recordOps(
  { hash, fingerprint }: IdempotencyInput,
  { messageIds, refused }: Omit<IdempotencyRecord, 'same'>,
  { shard, nowMs }: { shard: number; nowMs: number },
): Op[] {
  const key = keyOf(shard, hash, nowMs)
  const packed = [fingerprint.slice(0, FINGERPRINT_CHARS), nowMs, messageIds.map(shortId)] as const
  const record = JSON.stringify(
    refused === undefined ? packed : [...packed, refused.map(({ place, code, extra }) => [place, code, extra])],
  )
  const expiresAtMs = (Math.floor(nowMs / DAY_MS) + 2) * DAY_MS + HOUR_MS
  return [
    { key, write: 'HSET', args: [hash, withSum(record)] },
    { key, write: 'PEXPIREAT', args: [String(expiresAtMs)] },
  ]
}

function keyOf(shard: number, hash: string, ms: number): string {
  return idempotencyKey(shard, dayName(ms), (bucketOfHmac(hash) >> 4).toString(16))
}
