/**
 * send - normalized messages become a command, and its result is returned
 *
 * HTTP and SMTP share it; each turns the result into its own answer. Steps: pack content, size, keyed hashes, ask.
 * Everything that needs the secret is computed here, so the decision stays pure. Content that is too large for the
 * commit is written before the ask, to Redis or to the content store, after a check of key and account, and removed
 * again if no message was accepted. One order is one command, however many messages it has.
 *
 * Spec send.size, send.room, request.idempotency
 */

import { randomUUID } from 'node:crypto'
import type { Command } from '../../cluster/behaviour.ts'
import { shardOf } from '../../cluster/id.ts'
import type { Ask, AskResult } from '../../cluster/work.ts'
import type { SendBody, SendReply } from '../actors/message/send.ts'
import { formatFeedbackId, hasFeedbackId } from '../mail/compose/feedback-id.ts'
import { mayBeTooLarge, RAW_ADDED_BYTES_MAX } from '../mail/compose/size.ts'
import type { SimulateJob } from '../outbound/thread/thread-job.ts'
import type { Metrics } from '../process/metrics.ts'
import { contentIdOf } from '../state/object-name.ts'
import { contentKeys, isInline, type PackedPart, packContent, packRaw, writeParts } from '../store/content.ts'
import type { CapacityShortage } from '../store/memory-pressure.ts'
import { divideContent, type OutgoingStore, objectNames, writeObjects } from '../store/outgoing.ts'
import type { Reader } from '../views/key.ts'
import { maySend } from '../views/resource-access.ts'
import type { SendMessage } from './email-form.ts'
import { makeSendCommand, type PackedMessage, type SendOrder, type SendSettings } from './send-command.ts'

/** Dependencies of sending. */
export interface SendDeps extends SendSettings {
  readonly ask: Ask
  readonly read: Reader
  readonly outgoing: OutgoingStore
  readonly metrics: Pick<Metrics, 'accepted' | 'replayed' | 'refused' | 'notTaken' | 'scheduled'>
  /** The resource that has no room for new mail; null if there is room. */
  readonly roomLack: () => CapacityShortage | null
  /** Builds a message off the main thread and answers its bytes; null when it cannot be built. */
  readonly measure: (job: SimulateJob) => Promise<number | null>
}

/** The result of a send: the decision, or how an ask ended without an answer. */
export type SendResult =
  | { readonly kind: 'answer'; readonly reply: SendReply }
  | Exclude<AskResult, { readonly kind: 'answer' }>

/** A send on its way. */
interface Sending {
  readonly order: SendOrder
  readonly shard: number
  readonly packed: readonly PackedMessage[]
  readonly command: Command<SendBody>
}

/** A message whose parts may still be deflated. */
interface Packing {
  readonly message: SendMessage
  /** Attachments, or in their place the message as it came whole. */
  readonly files: readonly Buffer[]
  readonly parts: readonly PackedPart[] | Promise<readonly PackedPart[]>
}

/** As long as the real ones. */
const SOME_IDS = { tagHash: '0'.repeat(8), streamId: '0'.repeat(8), accountId: '0'.repeat(8), senderId: '0'.repeat(12) }

/**
 * Sends the messages of an order, all or none unless it is partial. Never rejects because of the store or the
 * decision.
 */
export function sendAll(deps: SendDeps, order: SendOrder): SendResult | Promise<SendResult> {
  // Spec send.room
  const lack = deps.roomLack()
  if (lack !== null) {
    deps.metrics.notTaken(lack)
    return { kind: 'unavailable' }
  }
  const packing = order.messages.map(pack)
  const packed = packedAtOnce(packing)
  if (packed === null) return sendLarge(deps, order, packing)
  // Content that travels within the commit is never too large: only the decision is waited for.
  const sending = prepare(deps, order, packed)
  return deps.ask(sending.shard, sending.command).then((result) => counted(deps, order, result))
}

function pack(message: SendMessage): Packing {
  if (message.raw !== null) {
    const { bytes } = message.raw
    return { message, files: [bytes], parts: packRaw(message, bytes) }
  }
  const files = message.attachments.map(({ content }) => Buffer.from(content, 'base64'))
  return { message, files, parts: packContent(message, files) }
}

/** The messages if all their content travels within the commit; null if there is something to wait for. */
function packedAtOnce(packing: readonly Packing[]): PackedMessage[] | null {
  const packed: PackedMessage[] = []
  for (const { message, parts } of packing) {
    if (parts instanceof Promise) return null
    packed.push({ message, parts, objects: null, builtBytes: null })
  }
  return ridesAlong(packed) ? packed : null
}

function ridesAlong(packed: readonly PackedMessage[]): boolean {
  const [only] = packed
  return packed.length === 1 && only !== undefined
    ? isInline(only.parts)
    : isInline(packed.flatMap(({ parts }) => parts))
}

async function sendLarge(deps: SendDeps, order: SendOrder, packing: readonly Packing[]): Promise<SendResult> {
  const whole = await Promise.all(packing.map((one, place) => measured(deps, one, contentOf(order, place))))
  // If this check refuses but the turn accepts, the commit lacks the content and the answer is `unavailable`.
  if (ridesAlong(whole) || (await maySend(deps.read, order.key)) !== true) {
    const sending = prepare(deps, order, whole)
    return counted(deps, order, await deps.ask(sending.shard, sending.command))
  }
  const packed = whole.map((one, place) => divided(deps, one, packing[place] as Packing))
  const sending = prepare(deps, order, packed)
  if (!(await writeAhead(deps, sending))) {
    await takeAway(deps, sending, NONE_ACCEPTED)
    deps.metrics.notTaken('content')
    return { kind: 'unavailable' }
  }
  const result = counted(deps, order, await deps.ask(sending.shard, sending.command))
  // If the outcome is unknown, the content is kept until it expires or is claimed.
  if (result.kind !== 'silent') await takeAway(deps, sending, acceptedPlaces(order, result))
  return result
}

function divided({ outgoing }: SendDeps, packed: PackedMessage, { files }: Packing): PackedMessage {
  return { ...packed, ...divideContent(outgoing, { parts: packed.parts, attachments: files }) }
}

// Spec send.size
async function measured(deps: SendDeps, packing: Packing, contentId: string): Promise<PackedMessage> {
  const parts = await packing.parts
  const { message, files } = packing
  const { text, html, raw } = message
  if (raw !== null) return { message, parts, objects: null, builtBytes: raw.bytes.length + RAW_ADDED_BYTES_MAX }
  const size = { text, html, attachmentBytes: files.map(({ length }) => length) }
  return {
    message,
    parts,
    objects: null,
    builtBytes: mayBeTooLarge(size) ? await deps.measure(measuringJob(message, contentId)) : null,
  }
}

function prepare(deps: SendDeps, order: SendOrder, packed: readonly PackedMessage[]): Sending {
  const command = makeSendCommand(deps, order, { packed, rides: ridesAlong(packed) })
  return { order, shard: shardOf(order.key.accountId) as number, packed, command }
}

/**
 * Counts the result: an accepted send by its recipients and duration, a refusal by its code, a missing answer by its
 * reason.
 */
function counted({ metrics }: SendDeps, { messages, startedAtMs }: SendOrder, asked: AskResult): SendResult {
  if (asked.kind !== 'answer') {
    metrics.notTaken(asked.kind)
    return asked
  }
  const result = { kind: 'answer', reply: asked.reply as SendReply } as const
  const { reply } = result
  if (reply.kind === 'refused') metrics.refused(reply.code)
  else if (reply.replayed) metrics.replayed()
  else {
    for (const { code } of reply.refused ?? []) metrics.refused(code)
    const refused = new Set(reply.refused?.map(({ place }) => place))
    const accepted = refused.size === 0 ? messages : messages.filter((_, place) => !refused.has(place))
    const scheduled = accepted.filter(({ sendAtMs }) => sendAtMs !== null).length
    const recipients = accepted.reduce((sum, { recipients: people }) => sum + people.length, 0)
    if (scheduled > 0) metrics.scheduled('accepted', scheduled)
    if (reply.messages.length > 0) metrics.accepted(recipients, performance.now() - startedAtMs)
  }
  return result
}

const NONE_ACCEPTED: ReadonlySet<number> = new Set()

/** Places of the messages that were accepted now, and not before. */
function acceptedPlaces({ messages }: SendOrder, result: SendResult): ReadonlySet<number> {
  if (result.kind !== 'answer' || result.reply.kind !== 'accepted' || result.reply.replayed) return NONE_ACCEPTED
  const accepted = new Set(messages.keys())
  for (const { place } of result.reply.refused ?? []) accepted.delete(place)
  return accepted
}

/** The content of a message goes by its command and its place in the request. */
function contentOf({ cmdId, messages }: SendOrder, place: number): string {
  return contentIdOf(cmdId, { place, isScheduled: messages[place]?.sendAtMs != null })
}

/** Writes content that does not travel with the command. Returns false if a store did not take all. */
async function writeAhead({ outgoing }: SendDeps, sending: Sending): Promise<boolean> {
  const { order, shard, packed, command } = sending
  const rides = command.blobs !== undefined
  const writing = packed.map(async ({ parts, objects }, place) => {
    const contentId = contentOf(order, place)
    const isKept = rides || parts.length === 0 || (await writeParts(outgoing.redis, { shard, contentId, parts }))
    if (!isKept || objects === null || outgoing.contents === null) return isKept
    return writeObjects(outgoing.contents, { shard, contentId, test: command.body.test }, objects)
  })
  return (await Promise.all(writing)).every(Boolean)
}

/** Removes the content written ahead of every message that was not accepted. */
async function takeAway(
  { outgoing }: SendDeps,
  { order, shard, packed, command }: Sending,
  accepted: ReadonlySet<number>,
): Promise<void> {
  const rides = command.blobs !== undefined
  const { test } = command.body
  const keys: string[] = []
  const names: string[] = []
  for (const [place, { parts, objects }] of packed.entries()) {
    if (accepted.has(place)) continue
    const contentId = contentOf(order, place)
    if (!rides) keys.push(...contentKeys(shard, contentId, parts))
    if (objects !== null) names.push(...objectNames({ shard, contentId, test }, objects.stored))
  }
  if (keys.length > 0) await outgoing.redis.removeContent(shard, keys)
  if (names.length > 0) await outgoing.contents?.remove(names)
}

/** The job that measures a message: built in a mail thread, but not sent. */
export function measuringJob(message: SendMessage, contentId: string): SimulateJob {
  const { from, recipients, subject, text, html, headers, tag, attachments } = message
  // Has the length of the real one; only the presence of a tag is known yet.
  const feedbackId = formatFeedbackId({ ...SOME_IDS, tagHash: tag === null ? null : SOME_IDS.tagHash })
  const shown = (kind: 'to' | 'cc') => recipients.filter((one) => one.kind === kind)
  return {
    message: {
      // The message has no id yet; all ids have the same length, and none is measured twice.
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
