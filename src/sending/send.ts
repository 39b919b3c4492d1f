/**
 * send - messages in their one form become a command, its decision becomes the answer
 *
 * Steps: pack content, size, keyed hashes, ask, answer. All that needs the secret is computed here, so the decision stays
 * pure. Content that is too large for the commit is written before the ask, after a look at key and account, and taken
 * away again when the ask did not make a message of it. One request is one command, however many messages it has.
 *
 * Spec send.size, send.room, limit.headers, request.idempotency
 */

import type { Command } from '../../cluster/behaviour.ts'
import { shardOf } from '../../cluster/id.ts'
import type { Ask, AskResult } from '../../cluster/work.ts'
import type { EmailAnswer } from '../../schemas/email.ts'
import type { Accepted, SendBody, SendReply } from '../actors/message/send.ts'
import type { KeyOwner } from '../http/key.ts'
import type { EdgeRequest } from '../http/request.ts'
import { type Answer, type Reply, refuse } from '../http/respond.ts'
import { mayBeTooLarge } from '../mail/compose/size.ts'
import type { Metrics } from '../process/metrics.ts'
import { answerOf, answerRefused } from '../routes/answer.ts'
import { type ContentStore, contentKeys, isInline, type PackedPart, packContent, writeParts } from '../store/content.ts'
import { formatInstant } from '../views/instant.ts'
import type { Reader } from '../views/key.ts'
import { maySend } from '../views/owned.ts'
import type { SendMessage } from './email-form.ts'
import { makeSendCommand, type PackedMessage, type SendSettings } from './send-command.ts'

/** What the routes of sends need. */
export interface SendDeps extends SendSettings {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly content: ContentStore
  readonly metrics: Metrics
  /** Whether the store has room for new mail. */
  readonly hasRoom: () => boolean
  /** Builds a message off the main thread and answers its bytes; null when it cannot be built. */
  readonly measure: (message: SendMessage, contentId: string) => Promise<number | null>
}

/** A request to send, in its one form. */
export interface Arrival {
  readonly startedAtMs: number
  readonly request: EdgeRequest
  readonly messages: readonly SendMessage[]
  readonly cmdId: string
  /** Makes the answer's body of what was accepted, in the order of the messages. */
  readonly answer: (accepted: readonly EmailAnswer[]) => object | undefined
}

/** A send on its way. */
interface Sending {
  readonly arrival: Arrival
  readonly owner: KeyOwner
  readonly shard: number
  readonly packed: readonly PackedMessage[]
  readonly command: Command<SendBody>
}

/** A message whose parts may still be deflated. */
interface Packing {
  readonly message: SendMessage
  readonly attachmentBytes: readonly Buffer[]
  readonly parts: readonly PackedPart[] | Promise<readonly PackedPart[]>
}

/** Sends the messages of a request, all or none. */
export function sendAll(deps: SendDeps, arrival: Arrival): Answer | Promise<Answer> {
  // Spec send.room
  if (!deps.hasRoom()) return refuse('unavailable')
  const packing = arrival.messages.map(pack)
  const packed = packedAtOnce(packing)
  if (packed === null) return sendLarge(deps, arrival, packing)
  // What rides in the commit as it came is never too large: there is nothing to wait for but the decision.
  const sending = prepare(deps, arrival, packed)
  return deps.ask(sending.shard, sending.command).then((result) => conclude(deps, sending, result))
}

function pack(message: SendMessage): Packing {
  const attachmentBytes = message.attachments.map(({ content }) => Buffer.from(content, 'base64'))
  return { message, attachmentBytes, parts: packContent(message, attachmentBytes) }
}

/** The messages if all of their content rides in the commit; null where there is something to wait for. */
function packedAtOnce(packing: readonly Packing[]): PackedMessage[] | null {
  const packed: PackedMessage[] = []
  for (const { message, parts } of packing) {
    if (parts instanceof Promise) return null
    packed.push({ message, parts, builtBytes: null })
  }
  return ridesAlong(packed) ? packed : null
}

function ridesAlong(packed: readonly PackedMessage[]): boolean {
  const [only] = packed
  return packed.length === 1 && only !== undefined
    ? isInline(only.parts)
    : isInline(packed.flatMap(({ parts }) => parts))
}

async function sendLarge(deps: SendDeps, arrival: Arrival, packing: readonly Packing[]): Promise<Answer> {
  const packed = await Promise.all(packing.map((one, place) => measured(deps, one, contentIdOf(arrival, place))))
  const sending = prepare(deps, arrival, packed)
  const isWritten = sending.command.blobs === undefined && (await writeAhead(deps, sending))
  const answer = conclude(deps, sending, await deps.ask(sending.shard, sending.command))
  // What is in doubt may yet be true: its content stays until it expires or is claimed.
  if (isWritten && 'status' in answer && !isNew(answer)) await deps.content.removeContent(keysOf(sending))
  return answer
}

// Spec send.size
async function measured(deps: SendDeps, packing: Packing, contentId: string): Promise<PackedMessage> {
  const parts = await packing.parts
  const { message, attachmentBytes } = packing
  const { text, html } = message
  const size = { text, html, attachmentBytes: attachmentBytes.map(({ length }) => length) }
  return { message, parts, builtBytes: mayBeTooLarge(size) ? await deps.measure(message, contentId) : null }
}

function prepare(deps: SendDeps, arrival: Arrival, packed: readonly PackedMessage[]): Sending {
  const { request, cmdId } = arrival
  const owner = request.key as KeyOwner
  const command = makeSendCommand(deps, { request, owner, packed, cmdId, rides: ridesAlong(packed) })
  return { arrival, owner, shard: shardOf(owner.accountId as string) as number, packed, command }
}

/** The answer to what came back; an accepted send is counted. */
function conclude(deps: SendDeps, { arrival }: Sending, result: AskResult): Answer {
  const answer = answerOf<SendReply>(result, (reply) => answerReply(deps, arrival, reply))
  if ('status' in answer && isNew(answer)) {
    let recipients = 0
    for (const message of arrival.messages) recipients += message.recipients.length
    deps.metrics.accepted(recipients, performance.now() - arrival.startedAtMs)
  }
  return answer
}

/** Whether the answer says that messages were accepted now, and not before. */
function isNew({ status, headers }: Reply): boolean {
  return status === 200 && headers?.['Idempotent-Replayed'] === undefined
}

/** The content of a message goes by its command and its place in the request. */
function contentIdOf({ cmdId }: Arrival, place: number): string {
  return `${cmdId}-${place}`
}

function keysOf({ arrival, shard, packed }: Sending): string[] {
  return packed.flatMap(({ parts }, place) => contentKeys(shard, contentIdOf(arrival, place), parts))
}

/** Writes content that is too large for the commit. Out: true when something was written. */
async function writeAhead(deps: SendDeps, { arrival, owner, shard, packed }: Sending): Promise<boolean> {
  // Without its content a message that is accepted against this look fails in its commit, and is told `unavailable`.
  if ((await maySend(deps.read, owner)) !== true) return false
  for (const [place, { parts }] of packed.entries())
    await writeParts(deps.content, { shard, contentId: contentIdOf(arrival, place), parts })
  return true
}

function answerReply(deps: SendDeps, arrival: Arrival, reply: SendReply): Answer {
  if (reply.kind === 'refused') {
    deps.metrics.refused(reply.code)
    return answerRefused(reply, deps.nowMs())
  }
  const json = arrival.answer(answersOf(reply))
  if (json === undefined) return refuse('internal_error')
  if (reply.replayed) deps.metrics.replayed()
  const headers = limitHeaders(reply, deps.nowMs())
  if (reply.replayed) headers['Idempotent-Replayed'] = 'true'
  return { status: 200, json, headers }
}

function answersOf({ messages, test }: Accepted): EmailAnswer[] {
  const answers: EmailAnswer[] = []
  for (const { messageId, submittedAtMs } of messages)
    answers.push({ messageId, status: 'accepted', submittedAt: formatInstant(submittedAtMs), test })
  return answers
}

/** Spec limit.headers */
function limitHeaders({ rate }: Accepted, nowMs: number): Record<string, string> {
  let policies = ''
  let states = ''
  for (const { scope, limit, left, resetsAtMs } of rate) {
    const comma = policies === '' ? '' : ', '
    policies += `${comma}"${scope}";q=${limit};w=60`
    states += `${comma}"${scope}";r=${left};t=${Math.max(0, Math.ceil((resetsAtMs - nowMs) / 1000))}`
  }
  return { 'RateLimit-Policy': policies, RateLimit: states }
}
