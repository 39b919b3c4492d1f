/**
 * step - what a step of an erasure is given, and what it answers
 *
 * Each step is one commit: what it writes, what it counts, and where the next one goes on.
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

/** What a step has done. */
export interface Stepped {
  readonly kind: 'stepped'
  /** Where the walk goes on; null: this phase of the server is over. */
  readonly place: WalkPlace | null
  /** What came to be counted. */
  readonly messages?: number
  readonly receivedMessages?: number
  readonly looks?: number
  readonly staged?: Staged
}

export type StepResult = Stepped | Need

/** A phase that is over, or had nothing to do. */
export const OVER: Stepped = { kind: 'stepped', place: null }
