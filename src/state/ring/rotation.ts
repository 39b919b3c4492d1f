/**
 * rotation - a change of SECRET_KEY and of the keys that seal, from its order to the removal of the former keys.
 *
 * Phases: `preparing` (each process has to have the new secret; then the ring, with a new generation, is sealed with
 * it) -> `switching` (each process has to know the new generation; then it seals) -> `settling` (each process has to
 * seal with it) -> `walking` (what the former generation has sealed is sealed again, until a whole walk finds nothing,
 * begun after the last command that was sealed before) -> `retiring` (the former generation leaves the ring) ->
 * `rewriting` (and the file of our own Redis) -> `done`. Each step is repeated after a crash, and changes nothing then.
 *
 * Key: `rotation`, on shard 0: hash, `state` -> JSON
 *
 * Spec secret.rotate
 */

import type { Due, FactOf, Op } from '../../../cluster/behaviour.ts'
import type { OperatorAct } from '../audit.ts'
import { ROTATION_SHARD, rotationKey } from '../keys.ts'

export const ROTATION_LANE = 'rotation'
const ITEM = 'rotation'
const STATE_FIELD = 'state'

export type RotationPhase = 'preparing' | 'switching' | 'settling' | 'walking' | 'retiring' | 'rewriting' | 'done'

/** The place of the walk in the store. */
export interface KeyWalk {
  /** Run ids of all Redis and who has which shard: a cursor means nothing to another one. */
  readonly run: string
  /** Number of the Redis, and its cursor. */
  readonly node: number
  readonly cursor: string
  /** Keys that were visited; values of a former generation that were found; values that no key opens. */
  readonly visited: number
  readonly found: number
  readonly unreadable: number
  readonly beganMs: number
}

/** A rotation. Times are those of the store. */
export interface RotationState {
  readonly rotationId: string
  readonly by: OperatorAct
  readonly phase: RotationPhase
  readonly startedAtMs: number
  readonly doneAtMs: number | null
  /** Generation that seals once it is done; null: not made yet. */
  readonly generation: number | null
  /** When each process had begun to seal with it; null: not yet. */
  readonly settledAtMs: number | null
  /** The walk that is under way; null: none. */
  readonly walk: KeyWalk | null
  readonly walks: number
  /** Keys of the store at the beginning of the walk. */
  readonly keys: number
  /** Values that were sealed again, and segments that were ordered to be. */
  readonly resealed: number
  /** Values that no key opens, in the last whole walk. */
  readonly unreadable: number
  /** Run id of the Redis that was asked to rewrite its file; null: not yet. */
  readonly rewriteRun: string | null
  /** What it waits for, a sentence; null: nothing. */
  readonly waitsFor: string | null
}

/** A rotation that begins. */
export function newRotation(of: Pick<RotationState, 'rotationId' | 'by' | 'startedAtMs'>): RotationState {
  return {
    ...of,
    phase: 'preparing',
    doneAtMs: null,
    generation: null,
    settledAtMs: null,
    walk: null,
    walks: 0,
    keys: 0,
    resealed: 0,
    unreadable: 0,
    rewriteRun: null,
    waitsFor: null,
  }
}

/** The read of the rotation. */
export function rotationFact(): FactOf<'fields'> {
  return { read: 'fields', key: rotationKey(ROTATION_SHARD), fields: [STATE_FIELD] }
}

/** The rotation read by `rotationFact`; null if there never was one. */
export function rotationOf(row: readonly (string | null)[]): RotationState | null {
  const [text = null] = row
  return text === null ? null : (JSON.parse(text) as RotationState)
}

/** The write of the rotation. */
export function rotationOps(state: RotationState): Op[] {
  return [{ key: rotationKey(ROTATION_SHARD), write: 'HSET', args: [STATE_FIELD, JSON.stringify(state)] }]
}

/** The next turn of the rotation. */
export function rotationDue(atMs: number): Due {
  return { lane: ROTATION_LANE, item: ITEM, atMs }
}
