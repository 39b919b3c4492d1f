/**
 * rotate - the order to change SECRET_KEY, and the turns in which it is carried out.
 *
 * A turn reads the state, does one bounded step outside of the actor (`src/service/rotation/`), and writes the state
 * again. A turn that dies is repeated from the state before it.
 *
 * Lane: `rotation`, on shard 0, one item
 *
 * Spec secret.rotate, operator.audit
 */

import type { CommandType, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import {
  newRotation,
  type RotationState,
  rotationDue,
  rotationFact,
  rotationOf,
  rotationOps,
} from '../../state/ring/rotation.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

/** After a turn that threw. */
const AGAIN_MS = 10_000

export interface RotateSecretBody {
  readonly by: OperatorAct
}

export interface RotateSecretReply {
  readonly kind: 'rotation'
  readonly rotation: RotationState
}

export interface RotationOutcome {
  readonly rotation: RotationState
  /** Until the next turn. */
  readonly waitMs: number
}

/** Begins a rotation. One that is under way is refused, so that two orders are not taken for one. */
export const rotateSecret: CommandType<RotateSecretBody, RotateSecretReply | Refused> = {
  name: 'rotate-secret',
  entities: () => [],
  counters: () => [],
  facts: () => [rotationFact()],
  decide({ by }, _states, facts, context) {
    const known = rotationIn(facts)
    if (known !== null && known.phase !== 'done') return refuse('rotation_in_progress')
    const rotationId = context.newId()
    const rotation = newRotation({ rotationId, by, startedAtMs: context.nowMs })
    const after = { phase: rotation.phase }
    return {
      kind: 'done',
      reply: { kind: 'rotation', rotation },
      ops: [...rotationOps(rotation), ...auditOps(context, by, { targets: { rotationId }, before: null, after })],
      due: [rotationDue(context.nowMs)],
    }
  },
}

export const prepareRotation: CommandType<PrepareBody, RotationState | null> = {
  name: 'prepare rotation',
  entities: () => [],
  counters: () => [],
  facts: () => [rotationFact()],
  decide(_body, _states, facts) {
    const rotation = rotationIn(facts)
    return { kind: 'done', reply: rotation?.phase === 'done' ? null : rotation }
  },
}

export const rotationOutcome: CommandType<OutcomeBody<RotationOutcome>, null> = {
  name: 'rotation outcome',
  entities: () => [],
  counters: () => [],
  facts: () => [rotationFact()],
  decide({ lane, item, current, outcome }, _states, facts, context) {
    if (!current) return { kind: 'done', reply: null }
    if (outcome === null) return { kind: 'done', reply: null, due: [rotationDue(context.nowMs + AGAIN_MS)] }
    const before = rotationIn(facts)
    const { rotation, waitMs } = outcome
    const ops = rotationOps(rotation)
    if (rotation.phase !== 'done') return { kind: 'done', reply: null, ops, due: [rotationDue(context.nowMs + waitMs)] }
    const subject = {
      targets: { rotationId: rotation.rotationId },
      before: { phase: before?.phase ?? null },
      after: { phase: rotation.phase, resealed: rotation.resealed },
    }
    return {
      kind: 'done',
      reply: null,
      ops: [...ops, ...auditOps(context, rotation.by, subject)],
      done: [{ lane, item }],
    }
  },
}

function rotationIn(facts: { field(key: string, field: string): string | null }): RotationState | null {
  const { key, fields } = rotationFact()
  return rotationOf(fields.map((field) => facts.field(key, field)))
}
