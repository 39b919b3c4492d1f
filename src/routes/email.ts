/**
 * email - POST /v1/email: a valid body becomes a command, its decision becomes the answer
 *
 * Steps: one form (`normaliseEmail`), keyed hashes, size, content, ask, answer. All that needs the secret is computed
 * here, so the decision stays pure. Large content is written before the ask, after a look at key and account, and
 * taken away again when the ask did not make a message of it.
 *
 * Spec send.*, limit.headers, request.idempotency
 */

import type { Command } from '../../cluster/behaviour.ts'
import { shardOf } from '../../cluster/id.ts'
import type { AskResult } from '../../cluster/work.ts'
import type { EmailBody } from '../../schemas/email.ts'
import type { Accepted, SendBody, SendReply } from '../actors/send.ts'
import { type ContentStore, contentKeys, isInline, type PackedPart, packContent, writeParts } from '../content.ts'
import { normaliseEmail, type SendMessage } from '../edge/email.ts'
import type { KeyOwner } from '../edge/key.ts'
import type { EdgeRequest, Handler } from '../edge/request.ts'
import { type Answer, type Reply, refuse } from '../edge/respond.ts'
import { mayBeTooLarge } from '../mail/size.ts'
import type { Metrics } from '../metrics.ts'
import { formatInstant } from '../views/instant.ts'
import type { Reader } from '../views/key.ts'
import { maySend } from '../views/sender.ts'
import { type Ask, answerOf, answerRefused } from './answer.ts'
import { makeSendCommand, type SendSettings } from './send-command.ts'

/** What the route of a send needs. */
export interface SendDeps extends SendSettings {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly content: ContentStore
  readonly metrics: Metrics
  /** Builds a message off the main thread and answers its bytes; null when it cannot be built. */
  readonly measure: (message: SendMessage, contentId: string) => Promise<number | null>
}

/** A send in its one form. */
interface Arrival {
  readonly startedAtMs: number
  readonly request: EdgeRequest
  readonly message: SendMessage
  readonly cmdId: string
}

/** A send on its way. */
interface Sending {
  readonly arrival: Arrival
  readonly owner: KeyOwner
  readonly shard: number
  readonly parts: readonly PackedPart[]
  readonly command: Command<SendBody>
}

/** POST /v1/email */
export function makeSendEmail(deps: SendDeps): Handler {
  return function sendEmail(request) {
    const startedAtMs = performance.now()
    const message = normaliseEmail(request.body as EmailBody)
    const arrival = { startedAtMs, request, message, cmdId: deps.newCmdId() }
    const attachmentBytes = message.attachments.map(({ content }) => Buffer.from(content, 'base64'))
    const parts = packContent(message, attachmentBytes)
    if (parts instanceof Promise || !isInline(parts)) return sendLarge(deps, arrival, { parts, attachmentBytes })
    // What rides in the commit as it came is never too large: there is nothing to wait for but the decision.
    const sending = prepare(deps, arrival, { parts, builtBytes: null })
    return deps.ask(sending.shard, sending.command).then((result) => conclude(deps, sending, result))
  }
}

async function sendLarge(
  deps: SendDeps,
  arrival: Arrival,
  packed: {
    readonly parts: readonly PackedPart[] | Promise<readonly PackedPart[]>
    readonly attachmentBytes: readonly Buffer[]
  },
): Promise<Answer> {
  const parts = await packed.parts
  const { message, cmdId } = arrival
  const { text, html } = message
  const size = { text, html, attachmentBytes: packed.attachmentBytes.map(({ length }) => length) }
  const builtBytes = mayBeTooLarge(size) ? await deps.measure(message, contentIdOf(cmdId)) : null
  const sending = prepare(deps, arrival, { parts, builtBytes })
  const isWritten = sending.command.blobs === undefined && (await writeAhead(deps, sending))
  const answer = conclude(deps, sending, await deps.ask(sending.shard, sending.command))
  // What is in doubt may yet be true: its content stays until it expires or is claimed.
  if (isWritten && 'status' in answer && !isNew(answer)) {
    await deps.content.removeContent(contentKeys(sending.shard, contentIdOf(cmdId), parts))
  }
  return answer
}

function prepare(
  deps: SendDeps,
  arrival: Arrival,
  { parts, builtBytes }: { parts: readonly PackedPart[]; builtBytes: number | null },
): Sending {
  const { request, message, cmdId } = arrival
  const owner = request.key as KeyOwner
  const command = makeSendCommand(deps, { request, owner, message, parts, cmdId, builtBytes })
  return { arrival, owner, shard: shardOf(owner.accountId as string) as number, parts, command }
}

/** The answer to what came back; an accepted send is counted. */
function conclude(deps: SendDeps, { arrival }: Sending, result: AskResult): Answer {
  const answer = answerOf<SendReply>(result, (reply) => answerReply(deps, reply))
  if ('status' in answer && isNew(answer))
    deps.metrics.accepted(arrival.message.recipients.length, performance.now() - arrival.startedAtMs)
  return answer
}

/** Whether the answer says that a message was accepted now, and not before. */
function isNew({ status, headers }: Reply): boolean {
  return status === 200 && headers?.['Idempotent-Replayed'] === undefined
}

/** The content of a request's only message goes by its command. */
function contentIdOf(cmdId: string): string {
  return `${cmdId}-0`
}

/** Writes content that is too large for the commit. Out: true when something was written. */
async function writeAhead(deps: SendDeps, { arrival, owner, shard, parts }: Sending): Promise<boolean> {
  // Without its content a message that is accepted against this look fails in its commit, and is told `unavailable`.
  if ((await maySend(deps.read, owner)) !== true) return false
  await writeParts(deps.content, { shard, contentId: contentIdOf(arrival.cmdId), parts })
  return true
}

function answerReply(deps: SendDeps, reply: SendReply): Answer {
  if (reply.kind === 'refused') {
    deps.metrics.refused(reply.code)
    return answerRefused(reply, deps.nowMs())
  }
  const message = reply.messages[0]
  if (message === undefined) return refuse('internal_error')
  if (reply.replayed) deps.metrics.replayed()
  const headers = limitHeaders(reply, deps.nowMs())
  if (reply.replayed) headers['Idempotent-Replayed'] = 'true'
  const { messageId, submittedAtMs } = message
  const json = { messageId, status: 'accepted', submittedAt: formatInstant(submittedAtMs), test: reply.test }
  return { status: 200, json, headers }
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
