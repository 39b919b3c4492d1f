/**
 * mail-judge - received mail judged: look-ups here, within a budget for each mail; signatures verified in a thread.
 *
 * The thread does no I/O. It verifies with the given DNS answers and returns the missing queries; these are made here,
 * and it verifies again. So it never waits, and a mail that takes its time costs no other mail its verdict.
 * Guarantees: each mail has a judgement; at most 60 look-ups, 10 s of waiting for the DNS, and 20 s in all once its
 * turn has come. A mail whose bytes are shared (SharedArrayBuffer) is not copied.
 *
 * Spec inbound.authentication
 */

import { DnsBudget } from '../dns/budget.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Judgement } from '../mail/authenticate/judge.ts'
import type { Sender } from '../mail/authenticate/sender.ts'
import type { SignatureReport } from '../mail/authenticate/signatures.ts'
import { WorkerPool } from '../process/worker-pool.ts'
import type { Answered, Verification, VerifyJob } from './mail-judge-worker.ts'

/** Spec inbound.parse: limits of one mail, its look-ups included. */
const MAIL_MS_MAX = 20_000
const HEAP_MB_MAX = 256
/**
 * Verifications of one mail. Between them DNS answers are fetched three times: for the keys of the signatures, for
 * those of the seals, and for a query that depends on an answer.
 */
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

/** A mail that is being judged. Neither rejects. */
export interface Judging {
  /** Resolves when the bytes of the mail are no longer needed. */
  readonly isRead: Promise<void>
  /** Null if too many mails are waiting or the pool is closed. */
  readonly judgement: Promise<Judgement | null>
}

export interface MailJudge {
  judge(input: JudgeInput): Judging
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

/** Makes the pool. */
export function makeMailJudge({ resolver, nowMs, mailMsMax = MAIL_MS_MAX }: JudgeOptions): MailJudge {
  const pool = new WorkerPool<VerifyJob, Verification>({
    body: new URL('./mail-judge-worker.js', import.meta.url),
    jobMsMax: mailMsMax,
    heapMbMax: HEAP_MB_MAX,
  })
  return {
    judge({ raw, sender, checkedAtMs }) {
      const budget = new DnsBudget(resolver, { nowMs, spentMs: () => one.threadMs, wholeMsMax: mailMsMax })
      const one: Case = { budget, checkedAtMs, mailMsMax, threadMs: 0 }
      const first = verify(pool, one, { mail: { raw }, answers: [] })
      return { isRead: first.then(() => undefined), judgement: judge(pool, one, { sender, first }) }
    },
    close: () => pool.close(),
  }
}

type Pool = WorkerPool<VerifyJob, Verification>

/** The result of one pass; null if verifying was ended, or the mail has no time left. */
async function verify(
  pool: Pool,
  one: Case,
  { mail, answers }: Pick<VerifyJob, 'mail' | 'answers'>,
): Promise<Verification | 'late' | 'busy'> {
  const leftMs = one.mailMsMax - one.threadMs - one.budget.waitedMs
  if (leftMs <= 0) return 'late'
  const run = await pool.run({ mail, checkedAtMs: one.checkedAtMs, answers }, { msMax: leftMs })
  one.threadMs += run.tookMs
  if (run.how === 'done') return run.result
  if (run.how === 'crash') return null
  return run.how === 'busy' ? 'busy' : 'late'
}

async function judge(
  pool: Pool,
  one: Case,
  { sender, first }: { sender: Sender; first: ReturnType<typeof verify> },
): Promise<Judgement | null> {
  const { lookUp } = one.budget
  // The library takes a quarter of a second to load, so it is loaded with the first mail.
  const [{ checkSender }, { judgeReports }] = await Promise.all([
    import('../mail/authenticate/sender.ts'),
    import('../mail/authenticate/judge.ts'),
  ])
  const [ofSender, signatures] = await Promise.all([checkSender(sender, lookUp), verifyAgain(pool, one, first)])
  return signatures === 'busy' ? null : judgeReports({ sender: ofSender, signatures }, lookUp)
}

/** The verdicts on the signatures with all available DNS answers; null if verification was aborted. */
async function verifyAgain(
  pool: Pool,
  one: Case,
  first: ReturnType<typeof verify>,
): Promise<SignatureReport | null | 'busy'> {
  const answers: Answered[] = []
  let report: SignatureReport | null = null
  let verified = await first
  for (let pass = 1; ; pass += 1) {
    if (verified === 'busy') return 'busy'
    // With a report, it was the DNS that took the time.
    if (verified === 'late') return report
    if (verified === null) return null
    const { signed, open } = verified
    report = verified.report
    if (open.length === 0 || pass === PASSES_MAX) return report
    answers.push(...(await Promise.all(open.map((question) => answer(question, one.budget)))))
    verified = await verify(pool, one, { mail: { signed }, answers })
  }
}

async function answer({ name, type }: { name: string; type: string }, { lookUp }: DnsBudget): Promise<Answered> {
  try {
    return { name, type, records: await lookUp(name, type) }
  } catch (error) {
    return { name, type, code: String((error as { code?: unknown }).code) }
  }
}
