/**
 * rotation - the latest rotation of the secret, and its progress as a figure
 *
 * Key: `rotation`, on shard 0
 *
 * Spec secret.rotate
 */

import type { Rotation } from '../../../schemas/operator/secret.ts'
import { ROTATION_SHARD } from '../../state/keys.ts'
import { type RotationState, rotationFact, rotationOf } from '../../state/ring/rotation.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import type { Reader } from '../key.ts'
import { makeTtlCache } from '../ttl-cache.ts'

/** One read serves all callers within this time. */
const FRESH_MS = 3_000
const DIGITS = 3

/** The latest rotation; null: none; undefined: the store did not answer. */
export async function readRotation(read: Reader): Promise<RotationState | null | undefined> {
  const seen = await read(ROTATION_SHARD, [rotationFact()])
  return seen === null ? undefined : rotationOf(seen[0])
}

/** The resource. */
export function formatRotation(rotation: RotationState): Rotation {
  const { rotationId, phase, startedAtMs, doneAtMs, resealed, unreadable, waitsFor } = rotation
  return {
    rotationId,
    phase,
    startedAt: formatInstant(startedAtMs),
    doneAt: formatInstantOrNull(doneAtMs),
    progress: progressOf(rotation),
    resealed,
    unreadable,
    waitsFor,
  }
}

/** Of the walk that is under way; the walk is most of a rotation. */
function progressOf({ phase, walk, keys, walks }: RotationState): number {
  if (phase === 'preparing' || phase === 'switching' || phase === 'settling') return 0
  if (phase !== 'walking' || (walk === null && walks > 0)) return 1
  return walk === null || keys === 0 ? 0 : Math.min(1, Number((walk.visited / keys).toFixed(DIGITS)))
}

/** Figures by name. */
export type RotationFigures = () => Promise<Readonly<Record<string, number>>>

/** Makes the reader, which reads at most every three seconds; while the store is unavailable the last result stays. */
export function makeRotationFigures({ read, nowMs }: { read: Reader; nowMs: () => number }): RotationFigures {
  const look = async () => {
    const rotation = await readRotation(read)
    return rotation === undefined ? null : { rotationProgress: rotation === null ? 1 : progressOf(rotation) }
  }
  return makeTtlCache({ first: { rotationProgress: 1 }, freshMs: FRESH_MS, nowMs, look })
}
