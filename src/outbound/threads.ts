/**
 * mail-room - the mail threads of a process, started with the first job: an idle process does without their memory
 *
 * A small message that is only simulated needs no thread: sending it there would cost more than composing it.
 * Besides attempts they measure: a message that may be too large is built there, not beside the requests of others.
 */

import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { formatFeedbackId, hasFeedbackId } from '../mail/compose/feedback-id.ts'
import type { Config } from '../process/config.ts'
import type { Fence } from '../process/fence.ts'
import type { Log } from '../process/log.ts'
import type { SendMessage } from '../sending/email-form.ts'
import type { Simulator } from './simulate.ts'
import { SMTP_TIMEOUTS } from './thread/converse.ts'
import {
  CLEAR_PASSWORD,
  isSmallSimulation,
  type MailJob,
  type MailOutcome,
  type RunAtOnce,
  type RunMail,
  type SmtpSettings,
} from './thread/thread-job.ts'
import type { MailThreads } from './thread-pool.ts'

/** Connections to receiving servers at once. */
const CONNECTIONS_MAX = 256
const THREADS_MAX = 4
const SOME_IDS = { tagHash: '0'.repeat(8), streamId: '0'.repeat(8), accountId: '0'.repeat(8), senderId: '0'.repeat(12) }

export interface MailRoom {
  readonly run: RunMail
  /** The outcome of a small simulated attempt without waiting; undefined: `run` has it. */
  readonly runAtOnce: RunAtOnce
  /** Bytes of a message as built; null when it cannot be built. */
  measure(message: SendMessage, contentId: string): Promise<number | null>
  /** Ends the threads after at most `graceMs`; what is left under way is deferred. */
  close(graceMs: number): Promise<void>
  /** Connections to receiving servers that are open. */
  connections(): number
}

/** What a test changes of how mail is transmitted. */
export interface SmtpChanges extends Partial<Pick<SmtpSettings, 'timeouts' | 'ca'>> {
  /** Port of the hosts of MTA-STS policies. */
  readonly stsPort?: number
}

export interface MailRoomDeps {
  readonly config: Config
  readonly fence: Fence
  readonly log: Pick<Log, 'error'>
  readonly changes?: SmtpChanges
}

/** Makes the room; no thread runs yet. */
export function makeMailRoom({ config, fence, log, changes = {} }: MailRoomDeps): MailRoom {
  const watch = makeRelayWatch(log)
  let threads: Promise<MailThreads> | null = null
  let opened: MailThreads | null = null
  let simulator: Simulator | null = null
  const open = async (): Promise<MailThreads> => {
    const { createMailThreads } = await import('./thread-pool.ts')
    // One core is for the loop that accepts.
    const size = Math.min(THREADS_MAX, Math.max(1, availableParallelism() - 1))
    opened = createMailThreads({ size, smtp: { ...smtpSettings(config), ...changes }, fence })
    return opened
  }
  const perform: RunMail = async (job, signal) => {
    threads ??= open()
    const outcome = await (await threads).run(job, signal)
    watch(outcome)
    return outcome
  }
  const run: RunMail = (job, signal) => {
    if (!isSmallSimulation(job)) return perform(job, signal)
    return simulator === null ? openSimulator().then((open) => open.run(job, signal)) : simulator.run(job, signal)
  }
  const openSimulator = async (): Promise<Simulator> => {
    const { makeSimulator } = await import('./simulate.ts')
    simulator ??= makeSimulator()
    return simulator
  }
  return {
    run,
    runAtOnce: (job) => simulator?.runAtOnce(job),
    async measure(message, contentId) {
      const { sizeBytes } = await perform(measuringJob(message, contentId), new AbortController().signal)
      return sizeBytes
    },
    async close(graceMs) {
      await (await threads)?.close(graceMs)
    },
    connections: () => opened?.connections() ?? 0,
  }
}

/** Tells the operator once that the relay gets no mail because it would get the password in the clear. In: every outcome. */
export function makeRelayWatch(log: Pick<Log, 'error'>): (outcome: Pick<MailOutcome, 'response'>) => void {
  let isTold = false
  return ({ response }) => {
    if (isTold || !response?.startsWith(CLEAR_PASSWORD)) return
    isTold = true
    log.error({ reason: response }, 'Mail waits: give the relay TLS, or reach it over a private network')
  }
}

function smtpSettings(config: Config): SmtpSettings {
  return {
    ehloName: config.smtpHostname,
    relayUrl: config.relayUrl,
    relayConnections: config.relayConnections,
    ca: null,
    deliveryPort: config.deliveryPort,
    dnsServers: config.dnsServers,
    privateNetworksAllowed: config.privateNetworksAllowed,
    connectionsMax: CONNECTIONS_MAX,
    timeouts: SMTP_TIMEOUTS,
  }
}

function measuringJob(message: SendMessage, contentId: string): MailJob {
  const { from, recipients, subject, text, html, headers, tag, attachments } = message
  // As long as the real one will be: nothing of it is known yet but whether there is a tag.
  const feedbackId = formatFeedbackId({ ...SOME_IDS, tagHash: tag === null ? null : SOME_IDS.tagHash })
  const shown = (kind: 'to' | 'cc') => recipients.filter((one) => one.kind === kind)
  return {
    message: {
      // The message has no id yet; all ids are of one length, and none is measured twice.
      messageId: randomUUID(),
      acceptedAtMs: 0,
      from,
      to: shown('to').map(({ address, name }) => ({ address, name })),
      cc: shown('cc').map(({ address, name }) => ({ address, name })),
      subject,
      text,
      html,
      headers,
      ...(!hasFeedbackId(headers) && { feedbackId }),
      attachments: attachments.map(({ name, contentType, contentId: id, content }) => ({
        name,
        contentType,
        contentId: id,
        content: Buffer.from(content, 'base64'),
      })),
      boundarySeed: contentId,
    },
    simulate: { address: from.address, attempt: 1 },
  }
}
