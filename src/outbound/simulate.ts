/**
 * simulate - attempts on a test server whose message is small: composed and simulated right here, on the main thread
 *
 * Sending a small message to a thread and its outcome back costs more than composing it. It is still composed, byte
 * for byte as it would be transmitted, so that a message that cannot be built fails and the size is the size as built.
 *
 * Guarantees: jobs run after the present work of the loop, a few at a time, so that no answer waits for all of them;
 * jobs that cost no more than the wait run at once, up to a maximum in a turn of the loop.
 */

import { composePlain } from '../mail/compose/compose-plain.ts'
import { simulatedOutcome } from '../mail/simulator.ts'
import { buildMessage, refuseBuilt } from './thread/build.ts'
import { bodyChars, type MailOutcome, makeUnperformed, type SimulateJob } from './thread/thread-job.ts'

/** UTF-16 units that are composed before the loop turns again, and jobs. */
const TURN_CHARS_MAX = 64 * 1024
const TURN_JOBS_MAX = 16
/** Plain messages that are composed within one turn of the loop, some microseconds each, and their length. */
const AT_ONCE_MAX = 64
const AT_ONCE_CHARS_MAX = 4096

interface Waiting {
  readonly job: SimulateJob
  readonly signal: AbortSignal
  readonly settle: (outcome: MailOutcome) => void
}

/** Performs simulated attempts. */
export interface Simulator {
  /** Never rejects; its caller bounds the jobs under way. */
  run(job: SimulateJob, signal: AbortSignal): Promise<MailOutcome>
  /**
   * The immediate outcome of a plain message, or one received whole, while the loop's turn has time for it; otherwise
   * undefined.
   */
  runAtOnce(job: SimulateJob): MailOutcome | undefined
}

/** Makes the performer. */
export function makeSimulator(): Simulator {
  const waiting: Waiting[] = []
  let atOnce = 0
  function turn(): void {
    let chars = 0
    for (let jobs = 0; jobs < TURN_JOBS_MAX && chars < TURN_CHARS_MAX && waiting.length > 0; jobs += 1) {
      const { job, signal, settle } = waiting.shift() as Waiting
      chars += bodyChars(job.message)
      settle(signal.aborted ? makeUnperformed('attempt was cut off') : makeOutcome(job, buildMessage(job.message)))
    }
    if (waiting.length > 0) setImmediate(turn)
  }
  return {
    run: (job, signal) =>
      new Promise((settle) => {
        if (waiting.push({ job, signal, settle }) === 1) setImmediate(turn)
      }),
    runAtOnce(job) {
      if (atOnce >= AT_ONCE_MAX || bodyChars(job.message) > AT_ONCE_CHARS_MAX) return undefined
      const message = 'raw' in job.message ? buildMessage(job.message) : composePlain(job.message)
      if (message === null) return undefined
      atOnce += 1
      if (atOnce === 1)
        setImmediate(() => {
          atOnce = 0
        })
      return makeOutcome(job, message)
    },
  }
}

function makeOutcome({ simulate, message: input }: SimulateJob, message: Buffer | null): MailOutcome {
  const refused = refuseBuilt(message, input)
  if (refused !== null) return refused
  const { result, code, response, classification, hard, expired, phase } = simulatedOutcome(simulate)
  const sizeBytes = message === null ? null : message.length
  return { result, code, response, classification, hard, expired, phase, sizeBytes }
}
