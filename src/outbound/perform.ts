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
import { shardOf } from '../../cluster/id.ts'
import { NotPerformed } from '../../cluster/items/pump.ts'
import { type AttemptOutcome, reportOutcome } from '../actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../actors/message/attempted.ts'
import { type AttemptJob, type JobMessage, prepareAttempt } from '../actors/message/prepare-attempt.ts'
import { makeUnasked } from '../mail/classify.ts'
import type { ComposeInput } from '../mail/compose/compose.ts'
import { formatFeedbackId, hasFeedbackId } from '../mail/compose/feedback-id.ts'
import { formatListFields, withoutListFields } from '../mail/compose/list-fields.ts'
import { fillHeaders, fillListed } from '../mail/compose/listed.ts'
import type { MailInput, RawInput } from '../mail/compose/raw.ts'
import { makeDeferred } from '../mail/outcome.ts'
import { formatReturnPath, returnPathHost, serviceReturnPathHost } from '../mail/return-path.ts'
import { isComplainant, isUnsubscriber, SIMULATED_RETRY_MS } from '../mail/simulator.ts'
import { formatUnsubscribeToken, unsubscribeUrlOf } from '../mail/unsubscribe-token.ts'
import type { Metrics } from '../process/metrics.ts'
import { readListed } from '../state/broadcast/content.ts'
import { BODY_PART, CHUNK_BYTES_MAX, RAW_PART } from '../state/message/content-part.ts'
import { spelledAddress } from '../state/message/head.ts'
import { LANES, parseAttemptItem } from '../state/message/item.ts'
import { type Body, readPlainBody, readPlainPart, unpackPart } from '../store/content.ts'
import { type OutgoingStore, readAttachments, readBody, readOwn, readRaw } from '../store/outgoing.ts'
import type { Reader } from '../views/key.ts'
import type { Dispatch } from './dispatch.ts'
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

export interface LaneDeps {
  readonly outgoing: OutgoingStore
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
  /** Signs the tokens in envelope senders. */
  readonly tokenKey: Buffer
  readonly serviceDomain: string
  /** Public address of the service, which unsubscribe links begin with. */
  readonly baseUrl: string
  /** HMAC of an address within its account. */
  readonly addressHmac: (accountId: string, address: string) => string
  /** Names the installation in Feedback-IDs. */
  readonly senderId: string
  /** The host that accepted a message received whole, for its Received field. */
  readonly smtpHostname: string
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
    const domain = destinationOf(lane)
    if (deps.isHeld(domain)) return 0
    return deps.dispatch.room(domain)
  }
  const simulate: LaneType<AttemptJob, AttemptOutcome>['perform'] = async (job, { attempt, signal }) => {
    simulated += 1
    try {
      const ended = await endScheduled(deps, job, signal)
      if (ended !== null) return ended
      const outcome = await simulateJob(deps, job, { attempt, signal })
      deps.metrics.attempted({ result: outcome.result, classification: outcome.classification })
      return outcome
    } finally {
      simulated -= 1
    }
  }
  const simulateAtOnce: NonNullable<LaneType<AttemptJob, AttemptOutcome>['performAtOnce']> = (job, { attempt }) => {
    const message = messageAtHand(deps, job)
    const outcome = message === null ? undefined : deps.runAtOnce(simulationOf(job, message, attempt))
    if (outcome === undefined) return undefined
    deps.metrics.attempted(outcome)
    return reportSimulated(deps, job, outcome)
  }
  const transmit: LaneType<AttemptJob, AttemptOutcome>['perform'] = async (job, { lane, item, signal, pass }) => {
    const { recipients: copies } = parseAttemptItem(item)
    const ended = await endScheduled(deps, job, signal)
    if (ended !== null) return ended
    const outcome = await transmitJob(deps, job, { lane, copies, signal, pass })
    deps.metrics.attempted(outcome)
    deps.attempted({ messageId: job.message.messageId, domain: destinationOf(lane), outcome })
    return reporterOf(deps, job)(outcome, retryOf(outcome))
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
  if (await readPatiently(() => isSuppressed(deps.read, message, hmac), signal))
    return suppressedOutcome(message.streamId)
  const deferred = deferUnverified(job)
  return deferred === null ? null : reporterOf(deps, job)(deferred)
}

/** The destination of a lane's items, which is the recipients' domain, or `relay`. */
export function destinationOf(lane: string): string {
  return lane.startsWith(`${LANES.deliver}/`) ? lane.slice(LANES.deliver.length + 1) : lane
}

type Report = (
  outcome: MailOutcome,
  rest?: { retryAfterMs?: number; complaint?: string; clicks?: true },
) => AttemptOutcome

/** Makes the report of a job's attempt, without the address. */
function reporterOf({ addressHmac }: LaneDeps, { message, recipient: { address } }: AttemptJob): Report {
  const { accountId, streamId } = message
  const hmac = () => addressHmac(accountId, address)
  return (outcome, rest = {}) =>
    reportOutcome(outcome, { address, streamId, hmac, sizeBytes: outcome.sizeBytes, retryAfterMs: null, ...rest })
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
  const message = messageAtHand(deps, job) ?? (await readMessage(deps, job, signal))
  if (message === null) return reporterOf(deps, job)(unbuildable())
  return reportSimulated(deps, job, await deps.run(simulationOf(job, message, attempt), signal))
}

function simulationOf({ recipient }: AttemptJob, message: MailInput, attempt: number): SimulateJob {
  return { message, simulate: { address: recipient.address, attempt } }
}

function reportSimulated(deps: LaneDeps, job: AttemptJob, outcome: MailOutcome): AttemptOutcome {
  const report = reporterOf(deps, job)
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
  const order = { address: job.recipient.address, destination: destinationOf(lane), bytes, signal, pass }
  return deps.dispatch.send(order, async (signal) => {
    const message = messageAtHand(deps, job) ?? (await readMessage(deps, job, signal))
    if (message === null) return unbuildable()
    const keys = await findKeys(deps, job.message, signal)
    if (keys === null) return { ...makeDeferred(...UNSIGNED), sizeBytes: null }
    return {
      message,
      transmit: { mailFrom: mailFromOf(deps, job), keys, copies: job.message.listName === null ? copies : 1 },
    }
  })
}

function unbuildable(): MailOutcome {
  return { ...makeUnasked('unbuildable'), phase: 'compose', sizeBytes: null }
}

// Spec bounce.address
function mailFromOf({ tokenKey, serviceDomain }: LaneDeps, { message, recipient }: AttemptJob): string {
  const { messageId, from, hasReturnPath } = message
  const host = hasReturnPath ? returnPathHost(domainOf(from)) : serviceReturnPathHost(serviceDomain)
  return formatReturnPath(tokenKey, { messageId, recipient: recipient.index, host })
}

/** The keys that sign a message, its domain's and then the service's own; null if its domain has none. */
async function findKeys(deps: LaneDeps, message: JobMessage, signal: AbortSignal): Promise<SigningKey[] | null> {
  const { accountId, acceptedAtMs, keySinceMs, from } = message
  const order = { accountId, domain: domainOf(from), acceptedAtMs, keySinceMs }
  const own = await readPatiently(() => deps.findKey(order), signal)
  if (own === null) return null
  return deps.serviceKey === null ? [own] : [own, deps.serviceKey]
}

function domainOf({ address }: JobMessage['from']): string {
  return address.slice(address.lastIndexOf('@') + 1).toLowerCase()
}

type NameDeps = Pick<LaneDeps, 'senderId' | 'smtpHostname' | 'baseUrl' | 'tokenKey' | 'addressHmac'>

/** The message if its content came with the job and needs no unpacking; null if it must be read. */
function messageAtHand(deps: NameDeps, job: AttemptJob): MailInput | null {
  const { message } = job
  if (message.raw !== null) {
    const whole = message.content?.find(({ part }) => part === RAW_PART)
    const bytes = whole === undefined ? null : readPlainPart(whole.chunks)
    return bytes === null ? null : rawInputOf(deps, job, bytes)
  }
  const [body] = message.content ?? []
  if (body?.part !== BODY_PART || message.attachments.length > 0 || message.broadcast !== null) return null
  const plain = readPlainBody(body.chunks)
  return plain === null ? null : inputOf(deps, job, { body: plain, attachments: [] })
}

/** The message with its content; null when that is gone. Rejects when the store stays away. */
async function readMessage(deps: LaneDeps, job: AttemptJob, signal: AbortSignal): Promise<MailInput | null> {
  const { outgoing } = deps
  const { message } = job
  if (message.broadcast !== null) return readListedMessage(deps, job, signal)
  const place = { ...message, shard: shardOf(message.accountId) as number }
  if (message.raw !== null) {
    const bytes = await readPatiently(() => readRaw(outgoing, place), signal)
    return bytes === null ? null : rawInputOf(deps, job, bytes)
  }
  const body = (await bodyAtHand(message)) ?? (await readPatiently(() => readBody(outgoing, place), signal))
  const contents = body === null ? null : await filesOf(message, () => readAttachments(outgoing, place), signal)
  if (body === null || contents === null) return null
  const attachments = message.attachments.map(({ name, contentType, contentId }, index) => {
    return { name, contentType, contentId, content: contents[index] as Buffer }
  })
  return inputOf(deps, job, { body, attachments })
}

/** A broadcast's message, with its individual values filled into the shared content. */
async function readListedMessage(deps: LaneDeps, job: AttemptJob, signal: AbortSignal): Promise<MailInput | null> {
  const { outgoing } = deps
  const { message } = job
  const shard = shardOf(message.accountId) as number
  const { contentId } = message.broadcast as NonNullable<JobMessage['broadcast']>
  const own = readListed(message.content?.[0]?.chunks ?? [])
  const listed = own ?? (await readPatiently(() => readOwn(outgoing, { ...message, shard }), signal))
  const shared = listed === null ? null : await readPatiently(() => outgoing.listed.read(shard, contentId), signal)
  if (listed === null || shared === null) return null
  const { head, texts } = shared
  const contents = await readPatiently(() => shared.files(), signal)
  if (contents === null) return null
  const attachments = head.attachments.map(({ name, contentType, contentId: id }, index) => {
    return { name, contentType, contentId: id, content: contents[index] as Buffer }
  })
  const from = { address: spelledAddress(head, 0, message.from.address), name: head.senderName }
  const subject = message.subject === '' ? (head.subject ?? '') : message.subject
  const { substitutions } = listed
  const headers = head.ownsList ? fillHeaders(head.headers, substitutions) : head.headers
  const whole = { ...job, message: { ...message, from, subject, headers } }
  const body = fillListed(texts, substitutions, linkOf(deps, job))
  return inputOf(deps, whole, { body, attachments, ...(head.ownsList && { ownsList: true }) })
}

/** The body if it came with the message. */
async function bodyAtHand({ content }: JobMessage): Promise<Body | null> {
  const body = content?.find(({ part }) => part === BODY_PART)
  return body === undefined ? null : (JSON.parse((await unpackPart(body.chunks)).toString()) as Body)
}

/** The attachments' bytes, from the job if they came with it, otherwise from the store. */
async function filesOf(
  { attachments, content }: JobMessage,
  read: () => ReturnType<typeof readAttachments>,
  signal: AbortSignal,
): Promise<readonly Buffer[] | null> {
  const files = content?.filter(({ part }) => part !== BODY_PART) ?? []
  if (files.length < attachments.length) return readPatiently(read, signal)
  return Promise.all(files.map(({ chunks }) => unpackPart(chunks)))
}

function rawInputOf(deps: NameDeps, job: AttemptJob, raw: Buffer): RawInput {
  const { messageId, acceptedAtMs, from } = job.message
  const feedbackId = formatFeedbackId({ ...job.message, senderId: deps.senderId })
  return { messageId, acceptedAtMs, from, feedbackId, ...listOf(deps, job), receivedBy: deps.smtpHostname, raw }
}

function inputOf(
  deps: NameDeps,
  job: AttemptJob,
  {
    body,
    attachments,
    ownsList = false,
  }: { readonly body: Body; readonly attachments: ComposeInput['attachments']; readonly ownsList?: boolean },
): ComposeInput {
  const { messageId, acceptedAtMs, from, to, cc, subject, contentId, listName } = job.message
  const headers = listName === null ? job.message.headers : withoutListFields(job.message.headers, ownsList)
  const { text, html } = body
  // Boundaries are derived from the content's id, which did not exist when the content was written.
  return {
    messageId,
    acceptedAtMs,
    from,
    to,
    cc,
    subject,
    headers,
    ...(!hasFeedbackId(headers) && { feedbackId: formatFeedbackId({ ...job.message, senderId: deps.senderId }) }),
    ...listOf(deps, job, ownsList),
    text,
    html,
    attachments,
    boundarySeed: contentId,
  }
}

/**
 * The header fields that the service adds on a broadcast stream, with a separate link for each recipient. Spec
 * unsubscribe.fields
 */
function listOf(deps: NameDeps, job: AttemptJob, ownsList = false): Pick<ComposeInput, 'list'> {
  const { streamId, listName, from } = job.message
  if (listName === null) return {}
  const unsubscribeUrl = ownsList ? null : linkOf(deps, job)
  return { list: formatListFields({ unsubscribeUrl, streamName: listName, streamId, fromDomain: domainOf(from) }) }
}

/** The unsubscribe link of a recipient. */
function linkOf(
  { baseUrl, tokenKey, addressHmac }: NameDeps,
  { message: { messageId, accountId, serverId }, recipient: { address, index } }: AttemptJob,
): string {
  const hmac = addressHmac(accountId, address)
  return unsubscribeUrlOf(baseUrl, formatUnsubscribeToken(tokenKey, { messageId, recipient: index, serverId, hmac }))
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
