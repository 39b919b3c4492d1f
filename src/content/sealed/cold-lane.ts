/**
 * cold-lane - performs the acts on sealed segments: seal, trim, recall, erase, forget, strip, reseal.
 *
 * Guarantees: one act at a time writes a whole segment, because each holds its packed object in memory; recalls, on
 * which callers wait, pass it. With content in Redis nothing is sealed. A key reaches the store only under the
 * generation that seals when its shard decides, because the process that performed the act may have been frozen since.
 */

import type { CommandType, LaneType, OutcomeBody } from '../../../cluster/behaviour.ts'
import { entryIdOf, shardOf } from '../../../cluster/id.ts'
import { NotPerformed } from '../../../cluster/items/lane-runner.ts'
import { type ColdJob, type ColdOutcome, coldOutcome, makePrepareCold } from '../../actors/sealed/cold.ts'
import type { RecallJob, RecallOutcome } from '../../actors/sealed/recall.ts'
import { COLD_LANE } from '../../state/message/sealed.ts'
import { RingNotReady } from '../../state/ring/ring.ts'
import { resealedHead, resealMailKey } from '../../state/ring/sealed-values.ts'
import type { SealingRing } from '../../state/ring/sealing.ts'
import { packBodies } from './pack.ts'
import { eraseInSegment, readForForget, resealInSegment, stripSegment, trimSegment } from './rewrite.ts'
import { sealSegment } from './seal.ts'
import { SegmentFailure } from './segment.ts'
import type { ColdDeps } from './written.ts'
import { performWrittenOff } from './written-off.ts'

const UNDER_WAY_MAX = 4
/** Reading out a full segment takes seconds, on a slow disk or bucket minutes. */
const HOLD_MS = 10 * 60_000

export interface ColdLaneDeps extends ColdDeps {
  /** Days after which a message may leave Redis; null if none may. */
  readonly hotDays: number | null
  /** An act has ended, after `ms`. */
  readonly done: (act: ColdJob['act'], result: ColdOutcome['result'], ms: number) => void
  readonly log: { info(facts: object, text: string): void; warn(facts: object, text: string): void }
  /** In place of our own bounds; 0 holds a lane's items. */
  readonly room?: (lane: string) => number
}

/** The family of the lanes of accounts. */
export function makeColdLane(deps: ColdLaneDeps): LaneType {
  let underWay = 0
  let writing: Promise<unknown> = Promise.resolve()
  /** Waits for the act before. */
  const alone = <Result>(act: () => Promise<Result>): Promise<Result> => {
    const mine = writing.then(act, act)
    writing = mine.catch(() => undefined)
    return mine
  }
  const lane: LaneType<ColdJob, ColdOutcome> = {
    prefix: COLD_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prompt: true,
    prepare: makePrepareCold(deps.hotDays),
    outcome: makeColdOutcome(deps.ring),
    room: (name) => Math.min(UNDER_WAY_MAX - underWay, deps.room?.(name) ?? Number.POSITIVE_INFINITY),
    async perform(job, { signal }) {
      if (signal.aborted) throw new NotPerformed('The process stops')
      underWay += 1
      const startedAtMs = performance.now()
      try {
        const outcome = await (job.act === 'recall' ? perform(deps, job) : alone(() => perform(deps, job)))
        tell(deps, job, { outcome, ms: performance.now() - startedAtMs })
        return outcome
      } finally {
        underWay -= 1
      }
    },
  }
  return lane as LaneType
}

async function perform(deps: ColdDeps, job: ColdJob): Promise<ColdOutcome> {
  try {
    const done = await performWrittenOff(deps, job)
    if (done !== null) return done
    switch (job.act) {
      case 'pack':
        return await packBodies(deps, job)
      case 'seal':
        return await sealSegment(deps, job)
      case 'trim':
        return await trimSegment(deps, job)
      case 'erase':
        return await eraseInSegment(deps, job)
      case 'reseal':
        return await resealInSegment(deps, job)
      case 'forget':
        return await readForForget(deps, job)
      case 'strip':
        return await stripSegment(deps, job)
      case 'recall':
        return await recall(deps, job)
    }
  } catch (error) {
    if (!(error instanceof SegmentFailure || error instanceof RingNotReady)) throw error
    return awayOf(job)
  }
}

/**
 * The outcomes of the lane. An object is written for minutes, and the outcome of a frozen process comes whenever it
 * goes on. In the meantime a rotation may have removed the generation that sealed the keys in it.
 */
export function makeColdOutcome(ring: SealingRing): CommandType<OutcomeBody<ColdOutcome>, null> {
  return {
    ...coldOutcome,
    decide(body, states, facts, context, command) {
      const outcome = body.outcome && withCurrentKeys(ring, body.outcome)
      return coldOutcome.decide({ ...body, outcome }, states, facts, context, command)
    },
  }
}

/** The outcome with its keys under the generation that seals; `away` if one opens no more, so the act is repeated. */
function withCurrentKeys(ring: SealingRing, outcome: ColdOutcome): ColdOutcome {
  try {
    return resealed(ring, outcome)
  } catch (error) {
    if (!(error instanceof RingNotReady)) throw error
    return awayOf(outcome)
  }
}

function resealed(ring: SealingRing, outcome: ColdOutcome): ColdOutcome {
  // A head that opens with no key is brought back as it is: the same is in the segment.
  if (outcome.act === 'recall' && outcome.result === 'found')
    return { ...outcome, head: resealedHead(ring, outcome.head) }
  if (outcome.act === 'pack' && outcome.result === 'packed') {
    const bodies = outcome.bodies.map((body) => ({ ...body, key: currentKey(ring, body.key) }))
    return bodies.every(hasKey) ? { ...outcome, bodies } : awayOf(outcome)
  }
  if (!('object' in outcome) || typeof outcome.object === 'string') return outcome
  const object = { ...outcome.object, key: currentKey(ring, outcome.object.key) }
  // Only the key of the object differs.
  return hasKey(object) ? ({ ...outcome, object } as ColdOutcome) : awayOf(outcome)
}

function currentKey(ring: SealingRing, sealed: string): string | null {
  const resealed = resealMailKey(ring, sealed)
  if (typeof resealed !== 'string') return resealed.after
  return resealed === 'current' ? sealed : null
}

function hasKey<Keyed extends { readonly key: string | null }>(
  keyed: Keyed,
): keyed is Keyed & { readonly key: string } {
  return keyed.key !== null
}

async function recall({ segments }: ColdDeps, { serverId, messageId, row }: RecallJob): Promise<RecallOutcome> {
  const segment = segments.open(shardOf(serverId) as number, row)
  const [found] = await segment.messages([entryIdOf(messageId)])
  if (found === undefined) return { act: 'recall', result: 'absent' }
  const { log, head, statuses } = found
  return { act: 'recall', result: 'found', generation: row.generation, log, head, statuses }
}

/**
 * A missing segment was replaced in the meantime, and an unavailable or broken one may be repaired, so all are
 * retried.
 */
function awayOf(of: ColdJob | ColdOutcome): ColdOutcome {
  if (of.act === 'pack') return { act: 'pack', result: 'away', segment: of.segment, object: of.object }
  if (of.act !== 'seal') return { act: of.act, result: 'away' }
  const { segment, leaf, day } = of
  return { act: 'seal', result: 'away', segment, leaf, day }
}

function tell({ done, log }: ColdLaneDeps, job: ColdJob, { outcome, ms }: { outcome: ColdOutcome; ms: number }): void {
  done(job.act, outcome.result, ms)
  const { serverId, segment, act } = job
  const facts = { act, serverId, segment, ms: Math.round(ms) }
  if (outcome.result === 'away') log.warn(facts, 'A segment of the log was not sealed, read or written')
  else if (outcome.act === 'seal' && outcome.result === 'sealed')
    log.info(
      { ...facts, messages: outcome.object.messages, bytes: outcome.object.size },
      'A segment of the log was sealed',
    )
}
