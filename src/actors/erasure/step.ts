/**
 * step - the input and result of a step of an erasure
 *
 * Each step is one commit with its writes, its counts, and the position of the next one.
 */

import type { Context, Facts, Need, Staged, States } from '../../../cluster/behaviour.ts'
import type { ErasureWalk, WalkPlace } from '../../state/erasure.ts'
import type { ServerState } from '../../state/server.ts'

/** A step at a server. */
export interface ServerStep {
  readonly erasureId: string
  readonly accountId: string
  readonly server: ServerState
  readonly walk: ErasureWalk
  readonly place: WalkPlace
  readonly states: States
  readonly facts: Facts
  readonly context: Context
}

/** The result of a step. */
export interface Stepped {
  readonly kind: 'stepped'
  /** The position of the walk; null if this phase of the server is over. */
  readonly place: WalkPlace | null
  /** Counts of the step. */
  readonly messages?: number
  readonly receivedMessages?: number
  readonly looks?: number
  readonly staged?: Staged
}

export type StepResult = Stepped | Need

/** A phase that is over, or had nothing to do. */
export const OVER: Stepped = { kind: 'stepped', place: null }
