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
import { type ContentStore, contentKeys, isInline, type PackedPart, packContent, writeParts } from '../content.ts'
import { fingerprintOf, normaliseEmail, type SendMessage } from '../edge/email.ts'
import type { KeyOwner } from '../edge/key.ts'
import type { EdgeRequest, Handler } from '../edge/request.ts'
import { type Answer, refuse } from '../edge/respond.ts'
import { mayBeTooLarge } from '../mail/size.ts'
import type { Metrics } from '../metrics.ts'
import type { Secrets } from '../secrets.ts'
import { formatInstant } from '../views/instant.ts'
import type { Reader } from '../views/key.ts'
import { maySend } from '../views/sender.ts'
import { type Ask, answerOf, answerRefused } from './answer.ts'

/** What the route of a send needs. */
export interface SendDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly secrets: Secrets
  readonly content: ContentStore
  readonly metrics: Metrics
  /** Whether sends need an active subscription. */
  readonly billing: boolean
  /** Whether live mail goes through the operator's relay. */
  readonly hasRelay: boolean
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
  const body = request.body as EmailBody
  const message = normaliseEmail(body)
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
    command: makeCommand(deps, { request, owner, body, message, parts, cmdId, builtBytes }),
  }
}

interface CommandInput {
  readonly request: EdgeRequest
  readonly owner: KeyOwner
  readonly body: EmailBody
  readonly message: SendMessage
  readonly parts: readonly PackedPart[]
  readonly cmdId: string
  readonly builtBytes: number | null
}

function makeCommand(deps: SendDeps, input: CommandInput): Command<SendBody> {
  const { request, owner, body, message, parts, cmdId, builtBytes } = input
  const accountId = owner.accountId as string
  const serverId = owner.serverId as string
  const test = owner.mode === 'test'
  const inline = isInline(parts)
  const { secrets } = deps
  return {
    name: 'accept',
    cmdId,
    body: {
      accountId,
      serverId,
      test,
      keyHash: owner.hash,
      billing: deps.billing,
      streamId: body.streamId?.toLowerCase() ?? null,
      defaultStreamId: owner.defaultStreamId as string,
      source: 'a',
      idempotency:
        request.idempotencyKey === null
          ? null
          : {
              hash: secrets.idempotencyHash(serverId, request.idempotencyKey),
              fingerprint: fingerprintOf(request.route.path, body),
            },
      messages: [
        {
          from: { ...message.from, hmac: secrets.addressHmac(accountId, message.from.address) },
          recipients: message.recipients.map(({ address, name, kind }) => ({
            address,
            name,
            kind,
            hmac: secrets.addressHmac(accountId, address),
            domain: domainOf(address),
          })),
          subject: message.subject,
          tag: message.tag,
          tagHash: message.tag === null ? null : secrets.tagHash(serverId, message.tag),
          metadata: message.metadata,
          headers: message.headers,
          attachments: message.attachments.map(({ name, contentType, contentId, size }) => ({
            name,
            contentType,
            contentId,
            size,
            inline: contentId !== null,
          })),
          content: {
            parts: parts.map(({ part, chunks }, index) => ({
              part,
              chunks: chunks.length,
              blob: inline ? index : null,
            })),
          },
          builtBytes,
          lane: test ? 'simulate' : deps.hasRelay ? 'relay' : 'deliver',
        },
      ],
    },
    // What rides in the commit has one chunk a part.
    ...(inline && { blobs: parts.map(({ chunks }) => chunks[0] as Uint8Array) }),
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

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}
