/**
 * send-command - the command that asks for one message to be accepted, made of a request in its one form
 *
 * All that needs the installation's secret is computed here: HMACs of addresses, hashes of the tag and of the
 * Idempotency-Key. The decision itself stays pure.
 *
 * Spec send.normal, request.idempotency
 */

import type { Command } from '../../cluster/behaviour.ts'
import type { EmailBody } from '../../schemas/email.ts'
import type { SendBody, SendItem } from '../actors/send.ts'
import { isInline, type PackedPart } from '../content.ts'
import { fingerprintOf, type SendMessage } from '../edge/email.ts'
import type { KeyOwner } from '../edge/key.ts'
import type { EdgeRequest } from '../edge/request.ts'
import type { Secrets } from '../secrets.ts'

/** What of the settings decides how a message is sent. */
export interface SendSettings {
  readonly secrets: Secrets
  /** Whether sends need an active subscription. */
  readonly billing: boolean
  /** Whether live mail goes through the operator's relay. */
  readonly hasRelay: boolean
}

/** One message that is to be sent. */
export interface SendInput {
  readonly request: EdgeRequest
  readonly owner: KeyOwner
  readonly message: SendMessage
  readonly parts: readonly PackedPart[]
  readonly cmdId: string
  /** Bytes as built, where its upper bound is too large. */
  readonly builtBytes: number | null
}

/** Makes the command; small content rides along as blobs. */
export function makeSendCommand(settings: SendSettings, input: SendInput): Command<SendBody> {
  const { request, owner, parts, cmdId } = input
  const { secrets, billing } = settings
  const inline = isInline(parts)
  const serverId = owner.serverId as string
  const body = request.body as EmailBody
  const key = request.idempotencyKey
  return {
    name: 'accept',
    cmdId,
    body: {
      accountId: owner.accountId as string,
      serverId,
      test: owner.mode === 'test',
      keyHash: owner.hash,
      billing,
      streamId: body.streamId?.toLowerCase() ?? null,
      defaultStreamId: owner.defaultStreamId as string,
      source: 'a',
      idempotency:
        key === null
          ? null
          : { hash: secrets.idempotencyHash(serverId, key), fingerprint: fingerprintOf(request.route.path, body) },
      messages: [makeItem(settings, input, inline)],
    },
    // What rides in the commit has one chunk a part.
    ...(inline && { blobs: parts.map(({ chunks }) => chunks[0] as Uint8Array) }),
  }
}

function makeItem(
  { secrets, hasRelay }: SendSettings,
  { owner, message, parts, builtBytes }: SendInput,
  inline: boolean,
): SendItem {
  const accountId = owner.accountId as string
  const serverId = owner.serverId as string
  const { from } = message
  return {
    from: {
      address: from.address,
      domain: from.domain,
      name: from.name,
      hmac: secrets.senderHmac(accountId, from.address),
    },
    recipients: message.recipients.map((one) => ({
      address: one.address,
      name: one.name,
      kind: one.kind,
      hmac: secrets.addressHmac(accountId, one.address),
      domain: domainOf(one.address),
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
      parts: parts.map(({ part, chunks }, index) => ({ part, chunks: chunks.length, blob: inline ? index : null })),
    },
    builtBytes,
    lane: owner.mode === 'test' ? 'simulate' : hasRelay ? 'relay' : 'deliver',
  }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}
