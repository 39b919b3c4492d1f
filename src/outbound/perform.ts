/**
 * perform - the performers of delivery: room for attempts, the way to the site, the job's content, a mail thread, the
 * outcome
 *
 * States of an attempt: routed -> waiting for its site -> content read -> composed and transmitted (or simulated) in a
 * thread -> reported. Guarantees: concurrent attempts are bounded, at each site and in all (`sites.ts`); an attempt is
 * cut before its claim ends; a reported outcome has no address.
 *
 * All three lanes exist with any settings: after `RELAY_URL` is removed, mail in `relay` goes to the MX, and the
 * reverse.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { LaneType } from '../../cluster/behaviour.ts'
import type { Pass } from '../../cluster/fence.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { DamagedValue } from '../../cluster/sum.ts'
import { type AttemptOutcome, reportOutcome } from '../actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../actors/message/delivery-outcome.ts'
import { type AttemptJob, type JobMessage, prepareAttempt } from '../actors/message/prepare-attempt.ts'
import { makeUnasked } from '../mail/classify.ts'
import type { MailInput } from '../mail/compose/raw.ts'
import { makeDeferred } from '../mail/outcome.ts'
import { formatReturnPath, returnPathHost, serviceReturnPathHost } from '../mail/return-path.ts'
import { isComplainant, isUnsubscriber, SIMULATED_RETRY_MS } from '../mail/simulator.ts'
import type { Metrics } from '../process/metrics.ts'
import { CHUNK_BYTES_MAX } from '../state/message/content-part.ts'
import { LANES, parseAttemptItem } from '../state/message/item.ts'
import { RingNotReady } from '../state/ring/ring.ts'
import type { Reader } from '../views/key.ts'
import type { Dispatch, OrderedMail } from './dispatch.ts'
import { domainOf, type Insist, type MailInputDeps, messageAtHand, readMailInput } from './mail-input.ts'
import { deferUnverified, isSuppressed, suppressedOutcome } from './scheduled.ts'
import type { FindKey } from './signing-keys.ts'
import type { SigningKey } from './thread/sign.ts'
import type { MailOutcome, RunAtOnce, RunMail, SimulateJob } from './thread/thread-job.ts'

/** Simulated attempts under way. */
const SIMULATED_MAX = 256
/**
 * The claim of a dead process is freed when its death is detected; this longer hold, longer than any attempt, covers
 * the other cases.
 */
const HOLD_MS = 25 * 60_000
const SIMULATE_HOLD_MS = 60_000
/** Interrupted attempts are due again after this. */
const AGAIN_MS = 1000
/** Content is asked for once a second while the store is away; then the claim lapses. */
const READ_TRIES_MAX = 60
const READ_STEP_MS = 1000
/** Feedback type of a simulated complaint (RFC 5965 7.3). */
const SIMULATED_FEEDBACK = 'abuse'

/** Receivers that know the domain would reject unsigned mail permanently; the fault here may be fixed in time. */
const UNSIGNED = ['compose', 'TransientFailure', '4.7.5 no key to sign with'] as const

export interface LaneDeps extends MailInputDeps {
  /** Reads committed state. */
  readonly read: Reader
  readonly run: RunMail
  readonly runAtOnce: RunAtOnce
  readonly metrics: Metrics
  readonly dispatch: Dispatch
  /** Whether the operator holds a destination. */
  readonly isHeld: (domain: string) => boolean
  /** Tells how an attempt went, without its recipient. */
  readonly attempted: (facts: AttemptFacts) => void
  readonly serviceDomain: string
  readonly findKey: FindKey
  /** Signs all mail in addition to its domain's key; null if there is no such key. */
  readonly serviceKey: SigningKey | null
  /** In place of our own bounds; 0 holds a lane's items. */
  readonly room?: (lane: string) => number
}

/** An attempt as the operator may see it. */
export interface AttemptFacts {
  readonly messageId: string
  readonly domain: string
  readonly outcome: MailOutcome
}

/** The families of lanes with their performers. */
export function makeLanes(deps: LaneDeps): LaneType[] {
  let simulated = 0
  const room = (lane: string): number => {
    if (deps.room !== undefined) return deps.room(lane)
    if (lane === LANES.simulate) return SIMULATED_MAX - simulated
    const domain = parseDestination(lane)
    if (deps.isHeld(domain)) return 0
    return deps.dispatch.room(domain)
  }
  const simulate: LaneType<AttemptJob, AttemptOutcome>['perform'] = async (job, { attempt, signal }) => {
    simulated += 1
    try {
      const ended = await endScheduled(deps, job, signal)
      if (ended !== null) return ended
      const outcome = await simulateJob(deps, job, { attempt, signal })
      const { result, classification } = outcome
      deps.metrics.attempted({ result, classification }, job.message.accountId)
      return outcome
    } finally {
      simulated -= 1
    }
  }
  const simulateAtOnce: NonNullable<LaneType<AttemptJob, AttemptOutcome>['performAtOnce']> = (job, { attempt }) => {
    const message = messageAtHand(deps, job)
    const outcome = message === null ? undefined : deps.runAtOnce(simulationOf(job, message, attempt))
    if (outcome === undefined) return undefined
    deps.metrics.attempted(outcome, job.message.accountId)
    return reportSimulated(deps, job, outcome)
  }
  const transmit: LaneType<AttemptJob, AttemptOutcome>['perform'] = async (job, { lane, item, signal, pass }) => {
    const { recipients: copies } = parseAttemptItem(item)
    const ended = await endScheduled(deps, job, signal)
    if (ended !== null) return ended
    const outcome = await transmitJob(deps, job, { lane, copies, signal, pass })
    deps.metrics.attempted(outcome, job.message.accountId)
    deps.attempted({ messageId: job.message.messageId, domain: parseDestination(lane), outcome })
    return makeReporter(deps, job)(outcome, retryOf(outcome))
  }
  type Performers = Pick<LaneType<AttemptJob, AttemptOutcome>, 'holdMs' | 'perform' | 'performAtOnce'>
  const family = (prefix: string, performers: Performers) =>
    ({
      prefix,
      claimsStand: false,
      prepare: prepareAttempt,
      outcome: attemptOutcome,
      room,
      ...performers,
    }) as LaneType
  return [
    family(LANES.simulate, { holdMs: SIMULATE_HOLD_MS, perform: simulate, performAtOnce: simulateAtOnce }),
    family(LANES.relay, { holdMs: HOLD_MS, perform: transmit }),
    family(LANES.deliver, { holdMs: HOLD_MS, perform: transmit }),
  ]
}

/** The reason to end or defer a scheduled message before it is sent, or null. Spec send.at */
async function endScheduled(deps: LaneDeps, job: AttemptJob, signal: AbortSignal): Promise<AttemptOutcome | null> {
  const { message, recipient } = job
  if (!message.isScheduled) return null
  const hmac = deps.addressHmac(message.accountId, recipient.address)
  if (await readPatiently(() => isSuppressed(deps.read, message, hmac), signal)) return suppressedOutcome(message)
  const deferred = deferUnverified(job)
  return deferred === null ? null : makeReporter(deps, job)(deferred)
}

/** The destination of a lane's items: the recipients' domain, or `relay`. */
export function parseDestination(lane: string): string {
  return lane.startsWith(`${LANES.deliver}/`) ? lane.slice(LANES.deliver.length + 1) : lane
}

type Report = (
  outcome: MailOutcome,
  rest?: { retryAfterMs?: number; complaint?: string; clicks?: true },
) => AttemptOutcome

/** Makes the report of a job's attempt, without the address. */
function makeReporter({ addressHmac }: LaneDeps, { message, recipient: { address } }: AttemptJob): Report {
  const { accountId, streamId, tagHash } = message
  const hmac = () => addressHmac(accountId, address)
  return (outcome, rest = {}) =>
    reportOutcome(outcome, {
      ...{ address, streamId, tagHash, hmac },
      sizeBytes: outcome.sizeBytes,
      retryAfterMs: null,
      ...rest,
    })
}

/** When a returned attempt is made again. */
function retryOf({ result, afterMs }: MailOutcome): { retryAfterMs?: number } {
  return result === 'returned' ? { retryAfterMs: afterMs ?? AGAIN_MS } : {}
}

async function simulateJob(
  deps: LaneDeps,
  job: AttemptJob,
  { attempt, signal }: { attempt: number; signal: AbortSignal },
): Promise<AttemptOutcome> {
  const message = messageAtHand(deps, job) ?? (await readMailInput(deps, job, patiently(signal)))
  if (message === null) return makeReporter(deps, job)(unbuildable())
  return reportSimulated(deps, job, await deps.run(simulationOf(job, message, attempt), signal))
}

function simulationOf({ recipient }: AttemptJob, message: MailInput, attempt: number): SimulateJob {
  return { message, simulate: { address: recipient.address, attempt } }
}

function reportSimulated(deps: LaneDeps, job: AttemptJob, outcome: MailOutcome): AttemptOutcome {
  const report = makeReporter(deps, job)
  if (outcome.phase === 'rcpt') return report(outcome, { retryAfterMs: SIMULATED_RETRY_MS })
  const { address } = job.recipient
  const complaint = isComplainant(address) ? { complaint: SIMULATED_FEEDBACK } : {}
  // Nothing to click on is in a message on another stream.
  const clicks = job.message.listName !== null && isUnsubscriber(address) ? { clicks: true as const } : {}
  return report(outcome, { ...retryOf(outcome), ...complaint, ...clicks })
}

function transmitJob(
  deps: LaneDeps,
  job: AttemptJob,
  { lane, copies, signal, pass }: { lane: string; copies: number; signal: AbortSignal; pass: Pass },
): Promise<MailOutcome> {
  const { raw, attachments, broadcast } = job.message
  const shared = (broadcast?.fileChunks ?? 0) * CHUNK_BYTES_MAX
  const bytes = raw?.bytes ?? attachments.reduce((sum, { size }) => sum + size, shared)
  const destination = parseDestination(lane)
  const order = { address: job.recipient.address, destination, bytes, signal, pass, mail: mailOf(job.message) }
  return deps.dispatch.send(order, async (signal) => {
    const message = messageAtHand(deps, job) ?? (await readMailInput(deps, job, patiently(signal)))
    if (message === null) return unbuildable()
    const keys = await findKeys(deps, job.message, signal)
    if (keys === null) return { ...makeDeferred(...UNSIGNED), sizeBytes: null }
    return {
      message,
      transmit: { mailFrom: makeMailFrom(deps, job), keys, copies: job.message.listName === null ? copies : 1 },
    }
  })
}

/** The part of a message that rules of sources see. */
function mailOf({ accountId, serverId, streamId, listName, acceptedAtMs }: JobMessage): OrderedMail {
  return { accountId, serverId, streamId, streamKind: listName === null ? 'transactional' : 'broadcast', acceptedAtMs }
}

function unbuildable(): MailOutcome {
  return { ...makeUnasked('unbuildable'), phase: 'compose', sizeBytes: null }
}

// Spec bounce.address
function makeMailFrom({ tokenKey, serviceDomain }: LaneDeps, { message, recipient }: AttemptJob): string {
  const { messageId, from, hasReturnPath } = message
  const host = hasReturnPath ? returnPathHost(domainOf(from)) : serviceReturnPathHost(serviceDomain)
  return formatReturnPath(tokenKey, { messageId, recipient: recipient.index, host })
}

/** The keys that sign a message, its domain's and then the service's own; null if its domain has none. */
async function findKeys(deps: LaneDeps, message: JobMessage, signal: AbortSignal): Promise<SigningKey[] | null> {
  const { accountId, acceptedAtMs, keySinceMs, from } = message
  const order = { accountId, domain: domainOf(from), acceptedAtMs, keySinceMs }
  const own = await readPatiently(() => deps.findKey(order).catch(awayIfNotReady), signal)
  if (own === null) return null
  return deps.serviceKey === null ? [own] : [own, deps.serviceKey]
}

/** Reads until the store answers (undefined: it did not). Rejects when it stays away. */
async function readPatiently<Value>(read: () => Promise<Value | undefined>, signal: AbortSignal): Promise<Value> {
  for (let tries = 0; tries < READ_TRIES_MAX; tries += 1) {
    const value = await read()
    if (value !== undefined) return value
    await pause(READ_STEP_MS, undefined, { signal })
  }
  throw new NotPerformed('The store did not answer')
}

/** Reads content; null once it is gone. Damaged content is never sent: it counts as gone. */
function patiently(signal: AbortSignal): Insist {
  return <Content>(read: () => Promise<Content | undefined>) =>
    readPatiently(() => read().catch((error: unknown) => replaced(error) as Content | undefined), signal)
}

function replaced(error: unknown): null | undefined {
  return error instanceof DamagedValue ? null : awayIfNotReady(error)
}

/** Keys that are not loaded yet are waited for like a store that does not answer. */
function awayIfNotReady(error: unknown): undefined {
  if (!(error instanceof RingNotReady)) throw error
}
