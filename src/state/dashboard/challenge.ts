/**
 * challenge - the record of a completed step of signing in, or of setting up a second factor. An unused step is not
 * stored.
 *
 * Beginning a step returns a token that only this installation can make (`src/dashboard/factor/challenge.ts`) and
 * stores nothing; its id is stored here once the step is completed, until the token expires.
 *
 * Key: `challenge:<id>` hash `used`, on the shard of its user; it expires when the token does
 *
 * Spec session.factor
 */

import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { challengeKey } from './places.ts'

/** The token's id and the expiry of a user's step. */
export interface Step {
  readonly id: string
  readonly endsAtMs: number
}

/** The read of whether a step was taken. */
export function stepFact(shard: number, { id }: Step): FactOf<'fields'> {
  return { read: 'fields', key: challengeKey(shard, id), fields: ['used'] }
}

/** The writes of a completed step. */
export function takenOps(shard: number, { id, endsAtMs }: Step, nowMs: number): Op[] {
  const key = challengeKey(shard, id)
  return [
    { key, write: 'HSET', args: ['used', String(nowMs)] },
    { key, write: 'PEXPIREAT', args: [String(endsAtMs)] },
  ]
}
