/**
 * lanes - the performers of delivery: room for attempts, the job's content, a mail thread, the outcome
 *
 * States of an attempt: content read -> composed and transmitted (or simulated) in a thread -> reported.
 * Guarantees: at most 256 attempts of a process are under way, and 64 of one lane, so that a destination that hangs
 * delays nobody; an attempt is cut before its claim ends; what is reported holds no address.
 *
 * All three lanes exist whatever the settings say: mail that waits in `relay` when the relay is taken away goes to the
 * MX, and the other way round.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { LaneType } from '../cluster/behaviour.ts'
import { shardOf } from '../cluster/id.ts'
import { attachmentPart, BODY_PART } from './actors/content-part.ts'
import { type DeliveryJob, type JobMessage, prepareDelivery } from './actors/delivery.ts'
import { LANES, parseItem } from './actors/item.ts'
import { type DeliveryOutcome, deliveryOutcome, reportOutcome } from './actors/outcome.ts'
import { type Body, type ContentStore, readPart, readPlainBody, unpackPart } from './content.ts'
import type { SigningKey } from './effects/sign.ts'
import type { MailJob, MailOutcome } from './effects/thread-job.ts'
import { makeUnasked } from './mail/classify.ts'
import type { ComposeInput } from './mail/compose.ts'
import { makeDeferred } from './mail/outcome.ts'
import { formatReturnPath, returnPathHost, serviceReturnPathHost } from './mail/return-path.ts'
import { isComplainant, SIMULATED_RETRY_MS } from './mail/simulator.ts'
import type { Metrics } from './metrics.ts'
import type { FindKey } from './signing-keys.ts'

const UNDER_WAY_MAX = 256
const UNDER_WAY_PER_LANE_MAX = 64
/** A claim of a dead process is freed when that is noticed; this is for what nobody notices. */
const HOLD_MS = 15 * 60_000
const SIMULATE_HOLD_MS = 60_000
const CUT_MS = 14 * 60_000
/** Content is asked for once a second while the store is away; then the claim lapses. */
const READ_TRIES_MAX = 60
const READ_STEP_MS = 1000
/** What a simulated complaint says (RFC 5965 7.3). */
const SIMULATED_FEEDBACK = 'abuse'

/** Unsigned mail would be refused for good by those who know the domain; what is wrong here may be mended in time. */
const UNSIGNED = ['compose', 'TransientFailure', '4.7.5 no key to sign with'] as const

/** Composes and transmits in a mail thread. */
export type RunMail = (job: MailJob, signal: AbortSignal) => Promise<MailOutcome>

export interface LaneDeps {
  readonly content: ContentStore
  readonly run: RunMail
  readonly metrics: Metrics
  /** Signs the tokens in envelope senders. */
  readonly tokenKey: Buffer
  readonly serviceDomain: string
  /** HMAC of an address within its account. */
  readonly addressHmac: (accountId: string, address: string) => string
  readonly findKey: FindKey
  /** Signs all mail besides its domain's key; null = nothing does. */
  readonly serviceKey: SigningKey | null
  /** In place of our own bounds; 0 holds a lane's items. */
  readonly room?: (lane: string) => number
}

/** The families of lanes with their performers. */
export function makeLanes(deps: LaneDeps): LaneType[] {
  const underWay = new Map<string, number>()
  let total = 0
  const room = (lane: string): number => {
    if (deps.room !== undefined) return deps.room(lane)
    const laneMax = lane.startsWith(LANES.deliver) ? UNDER_WAY_PER_LANE_MAX : UNDER_WAY_MAX
    return Math.min(UNDER_WAY_MAX - total, laneMax - (underWay.get(lane) ?? 0))
  }
  const leave = (lane: string): void => {
    total -= 1
    const left = (underWay.get(lane) ?? 1) - 1
    if (left === 0) underWay.delete(lane)
    else underWay.set(lane, left)
  }
  const perform: LaneType<DeliveryJob, DeliveryOutcome>['perform'] = async (job, { lane, item, attempt, signal }) => {
    total += 1
    underWay.set(lane, (underWay.get(lane) ?? 0) + 1)
    try {
      const { recipients: copies } = parseItem(item)
      const outcome = await attemptJob(deps, job, { attempt, copies, signal, isSimulated: lane === LANES.simulate })
      deps.metrics.attempted(outcome.result)
      return outcome
    } finally {
      leave(lane)
    }
  }
  const family = (prefix: string, holdMs: number) =>
    ({
      prefix,
      holdMs,
      claimsStand: false,
      prepare: prepareDelivery,
      outcome: deliveryOutcome,
      room,
      perform,
    }) as LaneType
  return [family(LANES.simulate, SIMULATE_HOLD_MS), family(LANES.relay, HOLD_MS), family(LANES.deliver, HOLD_MS)]
}

interface AttemptInput {
  readonly attempt: number
  /** Recipients of the message in all. */
  readonly copies: number
  readonly signal: AbortSignal
  readonly isSimulated: boolean
}

async function attemptJob(deps: LaneDeps, job: DeliveryJob, input: AttemptInput): Promise<DeliveryOutcome> {
  const { message, recipient } = job
  const { attempt, copies, isSimulated } = input
  const { address } = recipient
  const hmac = () => deps.addressHmac(message.accountId, address)
  const report = (outcome: MailOutcome, rest: { retryAfterMs?: number; complaint?: string } = {}) =>
    reportOutcome(outcome, { address, hmac, sizeBytes: outcome.sizeBytes, retryAfterMs: null, ...rest })
  const composed = messageAtHand(message) ?? (await readMessage(deps.content, message, input.signal))
  if (composed === null) return report({ ...makeUnasked('unbuildable'), phase: 'compose', sizeBytes: null })
  if (isSimulated) {
    const outcome = await deps.run({ message: composed, simulate: { address, attempt } }, input.signal)
    const complaint = isComplainant(address) ? { complaint: SIMULATED_FEEDBACK } : {}
    return report(outcome, outcome.phase === 'rcpt' ? { retryAfterMs: SIMULATED_RETRY_MS } : complaint)
  }
  const keys = await findKeys(deps, message, input.signal)
  if (keys === null) return report({ ...makeDeferred(...UNSIGNED), sizeBytes: null })
  const transmit = { recipient: address, mailFrom: mailFromOf(deps, job), keys, copies }
  return report(await withinCut(input.signal, (signal) => deps.run({ message: composed, transmit }, signal)))
}

// Spec bounce.address
function mailFromOf({ tokenKey, serviceDomain }: LaneDeps, { message, recipient }: DeliveryJob): string {
  const { messageId, from, hasReturnPath } = message
  const host = hasReturnPath ? returnPathHost(domainOf(from)) : serviceReturnPathHost(serviceDomain)
  return formatReturnPath(tokenKey, { messageId, recipient: recipient.index, host })
}

/** The keys that sign a message: its domain's, then the service's own; null when its domain has none. */
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

/** Runs an attempt under a signal that also cuts it off before its claim ends; the timer goes with the attempt. */
async function withinCut<Result>(parent: AbortSignal, run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const cut = new AbortController()
  const abort = () => cut.abort()
  const timer = setTimeout(abort, CUT_MS).unref()
  parent.addEventListener('abort', abort, { once: true })
  if (parent.aborted) abort()
  return run(cut.signal).finally(() => {
    clearTimeout(timer)
    parent.removeEventListener('abort', abort)
  })
}

/** The message where its content is a body that came along with it and needs no unpacking; null: it must be read. */
function messageAtHand(message: JobMessage): ComposeInput | null {
  const [body] = message.content ?? []
  if (body?.part !== BODY_PART || message.attachments.length > 0) return null
  const plain = readPlainBody(body.chunks)
  return plain === null ? null : inputOf(message, plain, [])
}

/** The message with its content; null when that is gone. Rejects when the store stays away. */
async function readMessage(
  store: ContentStore,
  message: JobMessage,
  signal: AbortSignal,
): Promise<ComposeInput | null> {
  const bytes = await readContent(store, message, { part: BODY_PART, signal })
  if (bytes === null) return null
  const attachments: ComposeInput['attachments'][number][] = []
  for (const [index, { name, contentType, contentId }] of message.attachments.entries()) {
    const content = await readContent(store, message, { part: attachmentPart(index), signal })
    if (content === null) return null
    attachments.push({ name, contentType, contentId, content })
  }
  return inputOf(message, JSON.parse(bytes.toString()) as Body, attachments)
}

function inputOf(
  { messageId, acceptedAtMs, from, to, cc, subject, headers, contentId }: JobMessage,
  { text, html }: Body,
  attachments: ComposeInput['attachments'],
): ComposeInput {
  // Boundaries follow from the content's id: nobody knew it when the content was written.
  return {
    messageId,
    acceptedAtMs,
    from,
    to,
    cc,
    subject,
    headers,
    text,
    html,
    attachments,
    boundarySeed: contentId,
  }
}

async function readContent(
  store: ContentStore,
  message: JobMessage,
  { part, signal }: { part: string; signal: AbortSignal },
): Promise<Buffer | null> {
  const inline = message.content?.find((one) => one.part === part)
  if (inline !== undefined) return unpackPart(inline.chunks)
  const shard = shardOf(message.accountId) as number
  return readPatiently(() => readPart(store, { shard, contentId: message.contentId, part }), signal)
}

/** Reads until the store answers (undefined: it did not). Rejects when it stays away. */
async function readPatiently<Value>(read: () => Promise<Value | undefined>, signal: AbortSignal): Promise<Value> {
  for (let tries = 0; tries < READ_TRIES_MAX; tries += 1) {
    const value = await read()
    if (value !== undefined) return value
    await pause(READ_STEP_MS, undefined, { signal })
  }
  throw new Error('The store did not answer')
}
