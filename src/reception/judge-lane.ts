/**
 * judge-lane - performs a later round of judging: reads a received mail from the content store and judges it again if
 * the DNS did not answer in the previous round.
 *
 * Each account has a lane. Guarantees: four mails at once, one of an account; raw mails in memory count together with
 * those being parsed.
 *
 * Spec inbound.authentication.rounds
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { type JudgeOutcome, judgeOutcome, prepareJudge } from '../actors/inbound/judged.ts'
import type { ParseJob } from '../actors/inbound/parse-job.ts'
import { JUDGE_LANE } from '../state/received/judge-item.ts'
import type { TakeMemory } from './byte-gate.ts'
import type { JudgedReceived, ParseLaneDeps } from './parse-lane.ts'
import { readReceivedMail } from './raw-mail.ts'
import { MAIL_STOP_MS, unlessStopped } from './unless-stopped.ts'

/**
 * Mails of a process under way, and of one account: nearly all of their time they wait for a DNS that was away before.
 */
const UNDER_WAY_MAX = 32
const LANE_UNDER_WAY_MAX = 4
/** All before it may take their 20 seconds. */
const HOLD_MS = 5 * 60_000

/** The family of the lanes of accounts. */
export function makeJudgeLane(
  deps: Pick<ParseLaneDeps, 'received' | 'freshMails' | 'judge' | 'bytes' | 'room'>,
): LaneType {
  const underWay = new Map<string, number>()
  let all = 0
  const lane: LaneType<ParseJob, JudgeOutcome> = {
    prefix: JUDGE_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    stopMs: MAIL_STOP_MS,
    prepare: prepareJudge,
    outcome: judgeOutcome,
    room(name) {
      const own = LANE_UNDER_WAY_MAX - (underWay.get(name) ?? 0)
      return Math.min(own, UNDER_WAY_MAX - all, deps.room?.(name) ?? Number.POSITIVE_INFINITY)
    },
    async perform(job, { lane: name, signal }) {
      all += 1
      underWay.set(name, (underWay.get(name) ?? 0) + 1)
      const work = async (): Promise<JudgeOutcome> => {
        const begun = await deps.bytes.hold(job.sizeBytes, (take) => begin(deps, job, { signal, take }))
        return { check: begun === null ? null : await begun.check }
      }
      try {
        return await unlessStopped(signal, work())
      } finally {
        all -= 1
        const own = (underWay.get(name) ?? 1) - 1
        if (own === 0) underWay.delete(name)
        else underWay.set(name, own)
      }
    },
  }
  return lane as LaneType
}

/**
 * Reads a mail and starts judging it; null if it cannot be read. Returns as soon as its bytes are no longer needed.
 */
async function begin(
  { judge, ...stored }: Pick<ParseLaneDeps, 'received' | 'freshMails' | 'judge'>,
  job: ParseJob,
  { signal, take }: { signal: AbortSignal; take: TakeMemory },
): Promise<Pick<JudgedReceived, 'check'> | null> {
  if (signal.aborted) throw new NotPerformed('The process stops')
  const raw = await readReceivedMail(stored, job, take)
  if (typeof raw === 'string') return null
  const { isRead, check } = judge(raw, job)
  // The rejection is handled when the check is awaited; until then it must not count as unhandled.
  check.catch(() => undefined)
  await isRead
  return { check }
}
