/**
 * challenge - that a step was taken: of signing in, of setting up a second factor. What has not been used is nowhere.
 *
 * Who begins a step gets a token that only this installation makes (`src/dashboard/factor/challenge.ts`), so that
 * beginning one costs no memory; its id stands here once the step is taken, until its time is over.
 *
 * Key: `challenge:<id>` hash `used`, on the shard of its user; it expires when the token does
 *
 * Spec session.factor
 */

import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { challengeKey } from './places.ts'

/** A step of somebody: the token's id, and when it ends by itself. */
export interface Step {
  readonly id: string
  readonly endsAtMs: number
}

/** The read of whether a step was taken. */
export function stepFact(shard: number, { id }: Step): FactOf<'fields'> {
  return { read: 'fields', key: challengeKey(shard, id), fields: ['used'] }
}

/** The writes of a step that is taken. */
export function takenOps(shard: number, { id, endsAtMs }: Step, nowMs: number): Op[] {
  const key = challengeKey(shard, id)
  return [
    { key, write: 'HSET', args: ['used', String(nowMs)] },
    { key, write: 'PEXPIREAT', args: [String(endsAtMs)] },
  ]
}
