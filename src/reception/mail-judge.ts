/**
 * mail-judge - received mail judged: look-ups here, within a budget for each mail; everything else in a thread.
 *
 * The thread does no I/O. It judges with the given DNS answers and returns the missing queries; these are made here,
 * and it judges again. So it never waits, and a mail that takes its time costs no other mail its verdict. The library
 * is loaded in the thread, because that takes a quarter of a second.
 * Guarantees: each mail has a judgement; at most 60 look-ups, 10 s of waiting for the DNS, and 20 s in all once its
 * turn has come. If the mail itself ended the thread, its sender is judged alone, with a budget of its own. A mail
 * whose bytes are shared (SharedArrayBuffer) is not copied.
 *
 * Spec inbound.authentication
 */

import { DnsBudget } from '../dns/budget.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Judgement } from '../mail/authenticate/judge.ts'
import type { Sender } from '../mail/authenticate/sender.ts'
import { WorkerPool } from '../process/worker-pool.ts'
import type { Answered, Judged, JudgeJob } from './mail-judge-worker.ts'

/** Spec inbound.parse: limits of one mail, its look-ups included. */
const MAIL_MS_MAX = 20_000
const HEAP_MB_MAX = 256
/** Of a sender that is judged alone. */
const SENDER_MS_MAX = 5_000
/** Times that one mail is judged; between them missing DNS answers are fetched, sometimes one after the other. */
const PASSES_MAX = 64

const UNKNOWN = { verdict: 'permerror', domain: '', reason: null, record: null } as const
/** The judgement of a mail whose sender cannot be judged either. */
const UNJUDGED: Judgement = {
  authentication: {
    spf: 'permerror',
    spfHelo: 'permerror',
    dkim: 'permerror',
    dmarc: 'permerror',
    dmarcPolicy: null,
    arc: 'fail',
  },
  isTemporary: false,
  findings: { sender: { from: UNKNOWN, helo: UNKNOWN }, signatures: null, dmarc: null },
}

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
  readonly mailMsMax: number
  /** Time in the thread so far. */
  threadMs: number
}

/** Makes the pool. */
export function makeMailJudge({ resolver, nowMs, mailMsMax = MAIL_MS_MAX }: JudgeOptions): MailJudge {
  const pool = new WorkerPool<JudgeJob, Judged>({
    body: new URL('./mail-judge-worker.js', import.meta.url),
    jobMsMax: MAIL_MS_MAX,
    heapMbMax: HEAP_MB_MAX,
  })
  const openCase = (msMax: number): Case => {
    const budget = new DnsBudget(resolver, { nowMs, spentMs: () => one.threadMs, wholeMsMax: msMax })
    const one: Case = { budget, mailMsMax: msMax, threadMs: 0 }
    return one
  }
  return {
    judge({ raw, sender, checkedAtMs }) {
      const one = openCase(mailMsMax)
      const job = { sender, checkedAtMs }
      const first = runPass(pool, one, { ...job, mail: { raw }, answers: [] })
      const judgement = runPasses(pool, one, { job, first }).then((judged) => {
        if (judged !== 'crash') return judged
        const alone = openCase(SENDER_MS_MAX)
        const again = runPass(pool, alone, { ...job, mail: null, answers: [] })
        return runPasses(pool, alone, { job, first: again }).then((judged) => (judged === 'crash' ? UNJUDGED : judged))
      })
      return { isRead: first.then(() => undefined), judgement }
    },
    close: () => pool.close(),
  }
}

type Pool = WorkerPool<JudgeJob, Judged>
type Pass = Judged | 'crash' | 'late' | 'busy'

/** The result of one pass. `late`: the mail has no time left; `crash`: it took too long or too much memory. */
async function runPass(pool: Pool, one: Case, job: JudgeJob): Promise<Pass> {
  const leftMs = one.mailMsMax - one.threadMs - one.budget.waitedMs
  if (leftMs <= 0) return 'late'
  const run = await pool.run(job, { msMax: leftMs })
  one.threadMs += run.tookMs
  if (run.how === 'done') return run.result
  return run.how === 'busy' ? 'busy' : 'crash'
}

/** The judgement with all available DNS answers; null if too many mails are waiting. */
async function runPasses(
  pool: Pool,
  one: Case,
  { job, first }: { job: Pick<JudgeJob, 'sender' | 'checkedAtMs'>; first: Promise<Pass> },
): Promise<Judgement | null | 'crash'> {
  const answers: Answered[] = []
  let judgement: Judgement | null = null
  let judged = await first
  for (let pass = 1; ; pass += 1) {
    if (judged === 'busy') return null
    if (judged === 'crash') return 'crash'
    // With a judgement, it was the DNS that took the time.
    if (judged === 'late') return judgement ?? 'crash'
    judgement = judged.judgement
    const { mail, open } = judged
    if (open.length === 0 || pass === PASSES_MAX) return judgement
    answers.push(...(await Promise.all(open.map((question) => answer(question, one.budget)))))
    judged = await runPass(pool, one, { ...job, mail, answers })
  }
}

async function answer({ name, type }: { name: string; type: string }, { lookUp }: DnsBudget): Promise<Answered> {
  try {
    return { name, type, records: await lookUp(name, type) }
  } catch (error) {
    return { name, type, code: String((error as { code?: unknown }).code) }
  }
}
