/**
 * threads - the mail threads of a process, started with the first job: an idle process does without their memory
 *
 * A small message that is only simulated needs no thread: sending it there would cost more than composing it. The
 * threads also measure: a message that may be too large is built there, so that it does not delay other requests.
 */

import { availableParallelism } from 'node:os'
import type { Fence } from '../../cluster/fence.ts'
import type { Config } from '../process/config.ts'
import type { Log } from '../process/log.ts'
import type { Simulator } from './simulate.ts'
import { SMTP_TIMEOUTS } from './thread/converse.ts'
import {
  CLEAR_PASSWORD,
  type ComposeJob,
  isSmallSimulation,
  type MailOutcome,
  type RunAtOnce,
  type RunMail,
  type SimulateJob,
  type SmtpSettings,
} from './thread/thread-job.ts'
import type { MailThreads } from './thread-pool.ts'

/** Connections to receiving servers at once. */
const CONNECTIONS_MAX = 256
const THREADS_MAX = 4

export interface MailRoom {
  readonly run: RunMail
  /** The outcome of a small simulated attempt without waiting; undefined: `run` has it. */
  readonly runAtOnce: RunAtOnce
  /** Bytes of a job's message as built; null when it cannot be built. */
  measure(job: SimulateJob): Promise<number | null>
  /** The bytes of a message as sent, or the reason why there are none: it cannot be built, or no thread runs. */
  compose(job: ComposeJob): Promise<Uint8Array | 'unbuildable' | 'unavailable'>
  /** Ends the threads after at most `graceMs`; attempts still in flight are deferred. */
  close(graceMs: number): Promise<void>
  /** Connections to receiving servers that are open. */
  connections(): number
}

/** Settings of transmission that a test changes. */
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
    async measure(job) {
      const { sizeBytes } = await perform(job, new AbortController().signal)
      return sizeBytes
    },
    async compose(job) {
      const { bytes, result } = await perform(job, new AbortController().signal)
      return bytes ?? (result === 'returned' || result === 'deferred' ? 'unavailable' : 'unbuildable')
    },
    async close(graceMs) {
      await (await threads)?.close(graceMs)
    },
    connections: () => opened?.connections() ?? 0,
  }
}

/**
 * Notifies the operator once that the relay gets no mail because the password would be sent in the clear. Takes every
 * outcome.
 */
export function makeRelayWatch(log: Pick<Log, 'error'>): (outcome: Pick<MailOutcome, 'response'>) => void {
  let isTold = false
  return ({ response }) => {
    if (isTold || !response?.startsWith(CLEAR_PASSWORD)) return
    isTold = true
    log.error({ reason: response }, 'Mail is waiting: enable TLS on the relay, or connect to it over a private network')
  }
}

function smtpSettings(config: Config): SmtpSettings {
  return {
    ehloName: config.smtpHostname,
    relayUrl: config.relayUrl,
    relayConnections: config.relayConnections,
    ca: null,
    deliveryPort: config.deliveryPort,
    usesIpv6: config.deliveryIpv6,
    dnsServers: config.dnsServers,
    isDnsTrusted: config.dnssec === 'trusted',
    privateNetworksAllowed: config.privateNetworksAllowed,
    connectionsMax: CONNECTIONS_MAX,
    timeouts: SMTP_TIMEOUTS,
  }
}
