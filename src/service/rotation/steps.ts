/**
 * steps - one turn of a rotation: what its phase orders, and the state after it
 *
 * Guarantees: no process has to read a value with a key that it does not know; the former generation is removed only
 * after a whole walk that found nothing of it and that began after the last command sealed with it; each step can be
 * repeated.
 *
 * Spec secret.rotate
 */

import type { WorkerRecord } from '../../../cluster/store.ts'
import type { RotationOutcome } from '../../actors/operator/rotate.ts'
import type { RotationState } from '../../state/ring/rotation.ts'
import type { Rewrites } from '../../store/rewrite.ts'
import type { RingDoor } from '../../store/ring.ts'
import { END, type WalkDeps, walkSome } from './walk.ts'

/**
 * From the moment at which no process seals with the former keys until the last command that brings such a value has
 * been decided or refused: sealing needs a ring confirmed in the last minute, writing content and a command's deadline
 * take less than another.
 */
export const SETTLING_MS = 3 * 60_000
const SOON_MS = 1_000
/** Between walks while segments are written again. */
const WALKS_APART_MS = 10_000
const SETTLING = 'Commands that were sealed with the former key may still come: a last walk follows'
const CHANGING = 'The keys are being changed'
const REWRITING = 'The append-only file is being rewritten'

export interface RotationDeps extends WalkDeps {
  readonly door: RingDoor
  /** Records of all live processes, this one included. */
  readonly records: () => Promise<readonly WorkerRecord[]>
  /** Null for a Redis of another operator. */
  readonly file: Pick<Rewrites, 'ask' | 'state'> | null
  /** Commands with values of the former keys may come for this long after all processes have others. */
  readonly settlingMs: number
}

/** Does what the phase orders. Rejects if a store did not answer; the turn is repeated then. */
export async function stepRotation(deps: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  switch (state.phase) {
    case 'preparing':
      return prepare(deps, state)
    case 'switching':
      return switchOver(deps, state)
    case 'settling':
      return settle(deps, state)
    case 'walking':
      return walk(deps, state)
    case 'retiring':
      await deps.door.retire()
      if (deps.door.ring.keys.sealing.length > 1) return waits(state, CHANGING)
      return next(state, { phase: 'rewriting' })
    default:
      return rewrite(deps, state)
  }
}

/** Every process must have the new secret before the ring is sealed with it. */
async function prepare({ door, records }: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  const isAdded = door.ring.keys.sealing.length > 1
  if (!isAdded) {
    const check = door.nextCheck()
    if (check === null) return waits(state, 'No new secret is set: set SECRET_KEY and SECRET_KEY_PREVIOUS')
    const lacking = await without(records, ({ keys }) => keys?.secrets.includes(check) === true)
    if (lacking !== null) return waits(state, `${lacking} does not have the new secret`)
    await door.add()
    // Another process has changed the ring, or is about to.
    if (door.ring.keys.sealing.length < 2) return waits(state, CHANGING)
  }
  return next(state, { phase: 'switching', generation: door.ring.keys.sealing.at(-1)?.generation ?? null })
}

async function switchOver({ door, records }: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  const { version } = door.ring.keys
  const lacking = await without(records, ({ keys }) => (keys?.version ?? 0) >= version)
  if (lacking !== null) return waits(state, `${lacking} has not loaded the new key`)
  await door.switch()
  if (door.ring.keys.current !== state.generation) return waits(state, CHANGING)
  return next(state, { phase: 'settling' })
}

async function settle({ door, records, nowMs }: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  const { version } = door.ring.keys
  const lacking = await without(records, ({ keys }) => (keys?.version ?? 0) >= version)
  if (lacking !== null) return waits(state, `${lacking} does not use the new key`)
  return next(state, { phase: 'walking', settledAtMs: nowMs() })
}

/** A sentence's subject: the first process that lacks something; null: none does. */
async function without(
  records: RotationDeps['records'],
  has: (record: WorkerRecord) => boolean,
): Promise<string | null> {
  const lacking = (await records()).find((record) => !has(record))
  return lacking === undefined ? null : `Process ${lacking.pid} on ${lacking.host}`
}

async function walk(deps: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  const { settlingMs, nowMs } = deps
  const walked = await walkSome(deps, state)
  const { walk: place } = walked
  if (place === null || place.cursor !== END) return { rotation: walked, waitMs: 0 }
  const settledMs = (state.settledAtMs ?? 0) + settlingMs
  const { found, unreadable, beganMs } = place
  const whole = { ...walked, walk: null, walks: walked.walks + 1, unreadable }
  if (found === 0 && beganMs >= settledMs) return next(whole, { phase: 'retiring' })
  if (found > 0) return { rotation: whole, waitMs: Math.min(WALKS_APART_MS, settlingMs) }
  return { rotation: { ...whole, waitsFor: SETTLING }, waitMs: Math.max(SOON_MS, settledMs - nowMs()) }
}

/** The file of our own Redis has former values until it is rewritten. */
async function rewrite({ file, nowMs }: RotationDeps, state: RotationState): Promise<RotationOutcome> {
  if (file === null) return next(state, { phase: 'done', doneAtMs: nowMs() })
  const now = await file.state()
  if (now === null) return waits(state, 'The store does not answer')
  if (now.isRunning) return waits(state, REWRITING)
  if (state.rewriteRun === now.runId && now.isOk) return next(state, { phase: 'done', doneAtMs: nowMs() })
  const refusal = await file.ask()
  return refusal === null
    ? waits({ ...state, rewriteRun: now.runId }, REWRITING)
    : waits(state, `The append-only file is not rewritten: ${refusal}`)
}

/** The state of the next phase, which begins at once. */
function next(state: RotationState, changes: Partial<RotationState>): RotationOutcome {
  return { rotation: { ...state, waitsFor: null, ...changes }, waitMs: 0 }
}

function waits(state: RotationState, waitsFor: string): RotationOutcome {
  return { rotation: { ...state, waitsFor }, waitMs: SOON_MS }
}
