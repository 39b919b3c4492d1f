/**
 * simulate - attempts on a test server whose message is small: composed and simulated right here, on the main thread
 *
 * Sending a small message to a thread and its outcome back costs more than composing it. It is composed all the same,
 * byte for byte as it would be transmitted: what cannot be built fails, and the size is the size as built.
 *
 * Guarantees: jobs run after what the loop has in hand, a few at a time, so that no answer waits for all of them.
 */

import { simulatedOutcome } from '../mail/simulator.ts'
import { buildMessage, refuseBuilt } from './build.ts'
import { bodyChars, type MailOutcome, makeUnperformed, type SimulateJob } from './thread-job.ts'

/** UTF-16 units that are composed before the loop turns again, and jobs. */
const TURN_CHARS_MAX = 64 * 1024
const TURN_JOBS_MAX = 16

interface Waiting {
  readonly job: SimulateJob
  readonly signal: AbortSignal
  readonly settle: (outcome: MailOutcome) => void
}

/** Makes the performer. It never rejects; its caller bounds the jobs under way. */
export function makeSimulator(): (job: SimulateJob, signal: AbortSignal) => Promise<MailOutcome> {
  const waiting: Waiting[] = []
  function turn(): void {
    let chars = 0
    for (let jobs = 0; jobs < TURN_JOBS_MAX && chars < TURN_CHARS_MAX && waiting.length > 0; jobs += 1) {
      const { job, signal, settle } = waiting.shift() as Waiting
      chars += bodyChars(job.message)
      settle(signal.aborted ? makeUnperformed('attempt was cut off') : simulate(job))
    }
    if (waiting.length > 0) setImmediate(turn)
  }
  return (job, signal) =>
    new Promise((settle) => {
      if (waiting.push({ job, signal, settle }) === 1) setImmediate(turn)
    })
}

function simulate(job: SimulateJob): MailOutcome {
  const message = buildMessage(job.message)
  return refuseBuilt(message) ?? { ...simulatedOutcome(job.simulate), sizeBytes: (message as Buffer).length }
}
