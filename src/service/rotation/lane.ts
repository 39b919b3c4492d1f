/**
 * lane - performs the turns of a rotation, one at a time for all processes
 *
 * Spec secret.rotate
 */

import type { LaneType } from '../../../cluster/behaviour.ts'
import { prepareRotation, type RotationOutcome, rotationOutcome } from '../../actors/operator/rotate.ts'
import { ROTATION_LANE, type RotationState } from '../../state/ring/rotation.ts'
import { type RotationDeps, stepRotation } from './steps.ts'

/** Far more than a turn takes; a dead process gives its turn back at once. */
const HOLD_MS = 10 * 60_000
const AGAIN_MS = 5_000

export interface RotationLaneDeps extends RotationDeps {
  readonly log: { info(facts: object, text: string): void; warn(facts: object, text: string): void }
}

/** The lane with its performer. */
export function makeRotationLane(deps: RotationLaneDeps): LaneType {
  let isUnderWay = false
  const lane: LaneType<RotationState, RotationOutcome> = {
    prefix: ROTATION_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prompt: true,
    prepare: prepareRotation,
    outcome: rotationOutcome,
    room: () => (isUnderWay ? 0 : 1),
    async perform(state) {
      isUnderWay = true
      try {
        const outcome = await stepRotation(deps, state)
        tell(deps, state, outcome.rotation)
        return outcome
      } catch (error) {
        const reason = (error as Error).message
        deps.log.warn({ phase: state.phase, reason }, 'A step of the rotation of the secret failed and is repeated')
        return { rotation: { ...state, waitsFor: reason }, waitMs: AGAIN_MS }
      } finally {
        isUnderWay = false
      }
    },
  }
  return lane as LaneType
}

function tell({ log }: RotationLaneDeps, before: RotationState, { phase, resealed, unreadable }: RotationState): void {
  if (phase === before.phase) return
  log.info({ phase, resealed, ...(unreadable > 0 && { unreadable }) }, 'Rotation of the secret')
}
