/**
 * cold-lane - performs the acts on sealed segments: seal, trim, recall, erase, forget, strip, reseal.
 *
 * Guarantees: one act at a time writes a whole segment, because each holds its packed object in memory; recalls, on
 * which callers wait, pass it. With content in Redis nothing is sealed.
 */

import type { LaneType } from '../../../cluster/behaviour.ts'
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
  /** An act has ended. */
  readonly done: (act: ColdJob['act'], result: ColdOutcome['result']) => void
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
    outcome: coldOutcome,
    room: (name) => Math.min(UNDER_WAY_MAX - underWay, deps.room?.(name) ?? Number.POSITIVE_INFINITY),
    async perform(job, { signal }) {
      if (signal.aborted) throw new NotPerformed('The process stops')
      underWay += 1
      const startedAtMs = performance.now()
      try {
        const performed = await (job.act === 'recall' ? perform(deps, job) : alone(() => perform(deps, job)))
        const outcome = withCurrentKeys(deps.ring, performed)
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
 * An object is written for minutes, in which the ring may have begun to seal with another key. A recalled head comes
 * into Redis, perhaps behind the walk of a rotation.
 */
function withCurrentKeys(ring: SealingRing, outcome: ColdOutcome): ColdOutcome {
  const current = (sealed: string): string => {
    const resealed = resealMailKey(ring, sealed)
    return typeof resealed === 'string' ? sealed : resealed.after
  }
  if (outcome.act === 'pack' && outcome.result === 'packed')
    return { ...outcome, bodies: outcome.bodies.map((body) => ({ ...body, key: current(body.key) })) }
  if (outcome.act === 'recall' && outcome.result === 'found')
    return { ...outcome, head: resealedHead(ring, outcome.head) }
  if (!('object' in outcome) || typeof outcome.object === 'string') return outcome
  // Only the key of the object differs.
  return { ...outcome, object: { ...outcome.object, key: current(outcome.object.key) } } as ColdOutcome
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
function awayOf(job: ColdJob): ColdOutcome {
  if (job.act === 'pack') return { act: 'pack', result: 'away', segment: job.segment, object: job.object }
  if (job.act !== 'seal') return { act: job.act, result: 'away' }
  const { segment, leaf, day } = job
  return { act: 'seal', result: 'away', segment, leaf, day }
}

function tell({ done, log }: ColdLaneDeps, job: ColdJob, { outcome, ms }: { outcome: ColdOutcome; ms: number }): void {
  done(job.act, outcome.result)
  const { serverId, segment, act } = job
  const facts = { act, serverId, segment, ms: Math.round(ms) }
  if (outcome.result === 'away') log.warn(facts, 'A segment of the log was not sealed, read or written')
  else if (outcome.act === 'seal' && outcome.result === 'sealed')
    log.info(
      { ...facts, messages: outcome.object.messages, bytes: outcome.object.size },
      'A segment of the log was sealed',
    )
}
