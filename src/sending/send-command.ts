/**
 * send-command - the command that asks for messages to be accepted, made of a request in its one form
 *
 * All that needs the installation's secret is computed here: HMACs of addresses, hashes of the tag and of the
 * Idempotency-Key. The decision itself stays pure.
 *
 * Spec send.normal, request.idempotency
 */

import type { Command } from '../../cluster/behaviour.ts'
import { ROUTES } from '../../schemas/routes.ts'
import type { SendBody, SendItem } from '../actors/message/send.ts'
import type { KeyOwner } from '../http/key.ts'
import type { EdgeRequest } from '../http/request.ts'
import type { Secrets } from '../process/secrets.ts'
import type { PackedPart } from '../store/content.ts'
import { fingerprintOf, type SendMessage } from './email-form.ts'

/** What of the settings decides how a message is sent. */
export interface SendSettings {
  readonly secrets: Secrets
  /** Whether sends need an active subscription. */
  readonly billing: boolean
  /** Whether live mail goes through the operator's relay. */
  readonly hasRelay: boolean
}

/** One message with its content. */
export interface PackedMessage {
  readonly message: SendMessage
  readonly parts: readonly PackedPart[]
  /** Bytes as built, where its upper bound is too large. */
  readonly builtBytes: number | null
}

/** What is to be sent. */
export interface SendInput {
  readonly request: EdgeRequest
  readonly owner: KeyOwner
  readonly packed: readonly PackedMessage[]
  readonly cmdId: string
  /** Whether the content rides along as blobs; else it is written under its final names. */
  readonly rides: boolean
}

/** Makes the command. */
export function makeSendCommand(settings: SendSettings, input: SendInput): Command<SendBody> {
  const { request, owner, packed, cmdId, rides } = input
  const { secrets, billing } = settings
  const serverId = owner.serverId as string
  const key = request.idempotencyKey
  const blobs: Uint8Array[] = []
  const messages: SendItem[] = []
  for (const one of packed) {
    messages.push(makeItem(settings, owner, one, rides ? blobs.length : null))
    // What rides in the commit has one chunk a part.
    if (rides) for (const { chunks } of one.parts) blobs.push(chunks[0] as Uint8Array)
  }
  return {
    name: 'accept',
    cmdId,
    body: {
      accountId: owner.accountId as string,
      serverId,
      test: owner.mode === 'test',
      keyHash: owner.hash,
      billing,
      defaultStreamId: owner.defaultStreamId as string,
      source: 'a',
      idempotency:
        key === null
          ? null
          : {
              hash: secrets.idempotencyHash(serverId, key),
              fingerprint: fingerprintOf(request.route.path, request.body),
            },
      messages,
      batch: request.route === ROUTES.sendBatch,
    },
    ...(rides && { blobs }),
  }
}

/** In: the index of the message's first blob, null where its content is written before. */
function makeItem(
  { secrets, hasRelay }: SendSettings,
  owner: KeyOwner,
  { message, parts, builtBytes }: PackedMessage,
  firstBlob: number | null,
): SendItem {
  const accountId = owner.accountId as string
  const serverId = owner.serverId as string
  const { from } = message
  return {
    streamId: message.streamId,
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
      parts: parts.map(({ part, chunks }, index) => ({
        part,
        chunks: chunks.length,
        blob: firstBlob === null ? null : firstBlob + index,
      })),
    },
    builtBytes,
    lane: owner.mode === 'test' ? 'simulate' : hasRelay ? 'relay' : 'deliver',
  }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}
