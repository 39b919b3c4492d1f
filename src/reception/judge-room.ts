/**
 * judge-room - received mail judged: look-ups here, within a budget for each mail; signatures verified in a thread.
 *
 * The thread asks nothing: it verifies with the answers that it is given and names the questions that are open; these are
 * asked here, and it verifies again. So it never waits, and a mail that takes its time costs no other mail its verdict.
 * Guarantees: each mail has a judgement; at most 60 look-ups and 10 s of waiting for the DNS, 20 s for each verification.
 *
 * Spec inbound.authentication
 */

import { DnsBudget } from '../dns/budget.ts'
import type { Resolver } from '../dns/resolve.ts'
import { type Judgement, judgeReports } from '../mail/authenticate/judge.ts'
import type { LookUp } from '../mail/authenticate/look-up.ts'
import { checkSender, type Sender } from '../mail/authenticate/sender.ts'
import type { SignatureReport } from '../mail/authenticate/signatures.ts'
import type { Answered, Verification, VerifyJob } from './judge-thread.ts'
import { ThreadRoom } from './thread-room.ts'

const VERIFY_MS_MAX = 20_000
const HEAP_MB_MAX = 256
/** Keys of the signatures, then those of the seals; one more for what an answer makes it ask. */
const PASSES_MAX = 4

export interface JudgeOptions {
  readonly resolver: Resolver
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
  readonly verifyMsMax?: number
}

/** A mail and its session. `checkedAtMs` is the time for which signatures are judged. */
export interface JudgeInput {
  readonly raw: Uint8Array
  readonly sender: Sender
  readonly checkedAtMs: number
}

export interface JudgeRoom {
  /** Judges a mail; null where too much is waiting or the room is closed. Never rejects. */
  judge(input: JudgeInput): Promise<Judgement | null>
  close(): Promise<void>
}

/** Makes the room. */
export function makeJudgeRoom({ resolver, nowMs, verifyMsMax = VERIFY_MS_MAX }: JudgeOptions): JudgeRoom {
  const room = new ThreadRoom<VerifyJob, Verification>({
    body: new URL('./judge-thread.js', import.meta.url),
    jobMsMax: verifyMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    async judge({ raw, sender, checkedAtMs }) {
      const { lookUp } = new DnsBudget(resolver, { nowMs })
      const [ofSender, verified] = await Promise.all([
        checkSender(sender, lookUp),
        verify(room, { raw, checkedAtMs, lookUp }),
      ])
      return verified === 'busy' ? null : judgeReports({ sender: ofSender, signatures: verified }, lookUp)
    },
    close: () => room.close(),
  }
}

/** What the signatures say; null where verifying was ended. */
async function verify(
  room: ThreadRoom<VerifyJob, Verification>,
  { raw, checkedAtMs, lookUp }: { raw: Uint8Array; checkedAtMs: number; lookUp: LookUp },
): Promise<SignatureReport | null | 'busy'> {
  const answers: Answered[] = []
  let report: SignatureReport | null = null
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const run = await room.run({ raw, checkedAtMs, answers })
    if (run.how === 'busy') return 'busy'
    if (run.how !== 'done') return null
    report = run.result.report
    if (run.result.open.length === 0) return report
    answers.push(...(await Promise.all(run.result.open.map((question) => answer(question, lookUp)))))
  }
  return report
}

async function answer({ name, type }: { name: string; type: string }, lookUp: LookUp): Promise<Answered> {
  try {
    return { name, type, records: await lookUp(name, type) }
  } catch (error) {
    return { name, type, code: String((error as { code?: unknown }).code) }
  }
}
