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
import type { EmailBody } from '../../schemas/email.ts'
import type { Accepted, SendBody, SendReply } from '../actors/send.ts'
import { type ContentStore, contentKeys, type PackedPart, packContent, writeParts } from '../content.ts'
import { normaliseEmail, type SendMessage } from '../edge/email.ts'
import type { KeyOwner } from '../edge/key.ts'
import type { EdgeRequest, Handler } from '../edge/request.ts'
import { type Answer, refuse } from '../edge/respond.ts'
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

/** A send on its way. */
interface Sending {
  readonly owner: KeyOwner
  readonly shard: number
  readonly message: SendMessage
  readonly parts: readonly PackedPart[]
  readonly contentId: string
  readonly command: Command<SendBody>
}

/** POST /v1/email */
export function makeSendEmail(deps: SendDeps): Handler {
  return async (request) => {
    const startedAtMs = performance.now()
    const sending = await prepare(deps, request)
    const isWritten = sending.command.blobs === undefined && (await writeAhead(deps, sending))
    const result = await deps.ask(sending.shard, sending.command)
    const answer = answerOf<SendReply>(result, (reply) => answerReply(deps, reply))
    const isNew = 'status' in answer && answer.status === 200 && answer.headers?.['Idempotent-Replayed'] === undefined
    // What is in doubt may yet be true: its content stays until it expires or is claimed.
    if (isWritten && !isNew && 'status' in answer) {
      await deps.content.removeContent(contentKeys(sending.shard, sending.contentId, sending.parts))
    }
    if (isNew) deps.metrics.accepted(sending.message.recipients.length, performance.now() - startedAtMs)
    return answer
  }
}

async function prepare(deps: SendDeps, request: EdgeRequest): Promise<Sending> {
  const owner = request.key as KeyOwner
  const message = normaliseEmail(request.body as EmailBody)
  const cmdId = deps.newCmdId()
  const contentId = `${cmdId}-0`
  const attachmentBytes = message.attachments.map(({ content }) => Buffer.from(content, 'base64'))
  const parts = await packContent(message, attachmentBytes)
  const size = { text: message.text, html: message.html, attachmentBytes: attachmentBytes.map(({ length }) => length) }
  const builtBytes = mayBeTooLarge(size) ? await deps.measure(message, contentId) : null
  const accountId = owner.accountId as string
  return {
    owner,
    shard: shardOf(accountId) as number,
    message,
    parts,
    contentId,
    command: makeSendCommand(deps, { request, owner, message, parts, cmdId, builtBytes }),
  }
}

/** Writes content that is too large for the commit. Out: true when something was written. */
async function writeAhead(deps: SendDeps, { owner, shard, contentId, parts }: Sending): Promise<boolean> {
  // Without its content a message that is accepted against this look fails in its commit, and is told `unavailable`.
  if ((await maySend(deps.read, owner)) !== true) return false
  await writeParts(deps.content, { shard, contentId, parts })
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
  return {
    status: 200,
    json: {
      messageId: message.messageId,
      status: 'accepted',
      submittedAt: formatInstant(message.submittedAtMs),
      test: reply.test,
    },
    headers: { ...limitHeaders(reply, deps.nowMs()), ...(reply.replayed && { 'Idempotent-Replayed': 'true' }) },
  }
}

/** Spec limit.headers */
function limitHeaders({ rate }: Accepted, nowMs: number): Record<string, string> {
  const policies = rate.map(({ scope, limit }) => `"${scope}";q=${limit};w=60`)
  const states = rate.map(({ scope, left, resetsAtMs }) => {
    return `"${scope}";r=${left};t=${Math.max(0, Math.ceil((resetsAtMs - nowMs) / 1000))}`
  })
  return { 'RateLimit-Policy': policies.join(', '), RateLimit: states.join(', ') }
}
