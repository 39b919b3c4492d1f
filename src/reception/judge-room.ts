/**
 * judge-room - received mail judged: look-ups here, within a budget for each mail; signatures verified in a thread.
 *
 * The thread asks nothing: it verifies with the answers that it is given and names the questions that are open; these are
 * asked here, and it verifies again. So it never waits, and a mail that takes its time costs no other mail its verdict.
 * Guarantees: each mail has a judgement; at most 60 look-ups and 10 s of waiting for the DNS, and 20 s for all of it, once
 * its turn has come. A mail whose bytes are shared (SharedArrayBuffer) is not copied.
 *
 * Spec inbound.authentication
 */

import { DnsBudget } from '../dns/budget.ts'
import type { Resolver } from '../dns/resolve.ts'
import { type Judgement, judgeReports } from '../mail/authenticate/judge.ts'
import { checkSender, type Sender } from '../mail/authenticate/sender.ts'
import type { SignatureReport } from '../mail/authenticate/signatures.ts'
import type { Answered, Verification, VerifyJob } from './judge-thread.ts'
import { ThreadRoom } from './thread-room.ts'

/** Spec inbound.parse: what one mail may take, its look-ups too. */
const MAIL_MS_MAX = 20_000
const HEAP_MB_MAX = 256
/** Keys of the signatures, then those of the seals; one more for what an answer makes it ask. */
const PASSES_MAX = 4

export interface JudgeOptions {
  readonly resolver: Resolver
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number
  readonly mailMsMax?: number
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

/** A mail under way. */
interface Case {
  readonly budget: DnsBudget
  readonly checkedAtMs: number
  readonly mailMsMax: number
  /** Time in the thread so far. */
  threadMs: number
}

/** Makes the room. */
export function makeJudgeRoom({ resolver, nowMs, mailMsMax = MAIL_MS_MAX }: JudgeOptions): JudgeRoom {
  const room = new ThreadRoom<VerifyJob, Verification>({
    body: new URL('./judge-thread.js', import.meta.url),
    jobMsMax: mailMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    async judge({ raw, sender, checkedAtMs }) {
      const budget = new DnsBudget(resolver, { nowMs, spentMs: () => one.threadMs, wholeMsMax: mailMsMax })
      const one: Case = { budget, checkedAtMs, mailMsMax, threadMs: 0 }
      const [ofSender, verified] = await Promise.all([checkSender(sender, budget.lookUp), verify(room, one, raw)])
      return verified === 'busy' ? null : judgeReports({ sender: ofSender, signatures: verified }, budget.lookUp)
    },
    close: () => room.close(),
  }
}

/** What the signatures say; null where verifying was ended. */
async function verify(
  room: ThreadRoom<VerifyJob, Verification>,
  one: Case,
  raw: Uint8Array,
): Promise<SignatureReport | null | 'busy'> {
  const { budget, checkedAtMs, mailMsMax } = one
  const answers: Answered[] = []
  let mail: VerifyJob['mail'] = { raw }
  let report: SignatureReport | null = null
  for (let pass = 0; pass < PASSES_MAX; pass += 1) {
    const leftMs = mailMsMax - one.threadMs - budget.waitedMs
    if (leftMs <= 0) return report
    const run = await room.run({ mail, checkedAtMs, answers }, leftMs)
    one.threadMs += run.tookMs
    if (run.how === 'busy') return 'busy'
    // With a report, it was the DNS that took the time.
    if (run.how === 'timeout') return report
    if (run.how !== 'done' || run.result === null) return null
    const { open, signed } = run.result
    report = run.result.report
    if (open.length === 0) return report
    mail = { signed }
    answers.push(...(await Promise.all(open.map((question) => answer(question, budget)))))
  }
  return report
}

async function answer({ name, type }: { name: string; type: string }, { lookUp }: DnsBudget): Promise<Answered> {
  try {
    return { name, type, records: await lookUp(name, type) }
  } catch (error) {
    return { name, type, code: String((error as { code?: unknown }).code) }
  }
}
