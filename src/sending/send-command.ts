/**
 * send-command - the command that asks for messages to be accepted, made of an order in its one form
 *
 * All that needs the installation's secret is computed here: HMACs of addresses, hashes of the tag and of the
 * Idempotency-Key. The decision itself stays pure.
 *
 * Spec send.normal, request.idempotency
 */

import type { Command } from '../../cluster/behaviour.ts'
import type { SendBody, SendItem } from '../actors/message/send.ts'
import type { Secrets } from '../process/secrets.ts'
import type { HeadAttachment } from '../state/message/head.ts'
import type { SourceLetter } from '../state/message/log-entry.ts'
import type { PackedPart } from '../store/content.ts'
import type { OutgoingObjects } from '../store/outgoing.ts'
import type { ServerKey } from '../views/key.ts'
import type { Attachment, SendMessage } from './email-form.ts'

/** The settings that affect sending. */
export interface SendSettings {
  readonly secrets: Secrets
  /** Whether sending requires an active subscription. */
  readonly billing: boolean
  /** Whether live mail goes through the operator's relay. */
  readonly hasRelay: () => boolean
}

/** One message with its content. */
export interface PackedMessage {
  readonly message: SendMessage
  readonly parts: readonly PackedPart[]
  /** Its content for the content store, or null. */
  readonly objects: OutgoingObjects | null
  /** Bytes as built, if its upper bound is too large. */
  readonly builtBytes: number | null
}

/** Messages to send, all or none. */
export interface SendOrder {
  /** When it came, monotonic ms. */
  readonly startedAtMs: number
  /** The key that was shown. */
  readonly key: ServerKey
  /** The way it came. */
  readonly source: SourceLetter
  readonly cmdId: string
  readonly messages: readonly SendMessage[]
  /** Whether refusals name the message's `index`. */
  readonly batch: boolean
  /** Whether each message is accepted or refused on its own; absent for all or none. */
  readonly partial?: boolean
  /**
   * The Idempotency-Key as given, and the fingerprint of the request (`computeFingerprint`); null if none was given.
   */
  readonly idempotency: { readonly key: string; readonly fingerprint: string } | null
}

/** The content of an order's messages. */
export interface SendContent {
  /** In the order of the messages. */
  readonly packed: readonly PackedMessage[]
  /** Whether content for Redis travels with the command as blobs; otherwise it is written under its final names. */
  readonly rides: boolean
}

/** Makes the command. */
export function makeSendCommand(
  settings: SendSettings,
  { key, source, cmdId, batch, partial, idempotency }: SendOrder,
  { packed, rides }: SendContent,
): Command<SendBody> {
  const { secrets, billing } = settings
  const { serverId } = key
  const blobs: Uint8Array[] = []
  const messages: SendItem[] = []
  for (const one of packed) {
    messages.push(makeItem(settings, key, one, rides ? blobs.length : null))
    // Content within the commit has one chunk per part.
    if (rides) for (const { chunks } of one.parts) blobs.push(chunks[0] as Uint8Array)
  }
  return {
    name: 'accept',
    cmdId,
    body: {
      accountId: key.accountId,
      serverId,
      test: key.mode === 'test',
      keyHash: key.hash,
      billing,
      defaultStreamId: key.defaultStreamId,
      source,
      idempotency:
        idempotency === null
          ? null
          : {
              hash: secrets.idempotencyHash(serverId, idempotency.key),
              fingerprint: idempotency.fingerprint,
            },
      messages,
      batch,
      ...(partial && { partial }),
    },
    ...(rides && { blobs }),
  }
}

/** Takes the index of the message's first blob, or null if its content is written before. */
function makeItem(
  { secrets, hasRelay }: SendSettings,
  { accountId, serverId, mode }: ServerKey,
  { message, parts, objects, builtBytes }: PackedMessage,
  firstBlob: number | null,
): SendItem {
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
    attachments: message.raw?.attachments ?? message.attachments.map(headAttachment),
    raw: message.raw === null ? null : rawContent(message.raw),
    content: {
      parts: parts.map(({ part, chunks }, index) => ({
        part,
        chunks: chunks.length,
        blob: firstBlob === null ? null : firstBlob + index,
      })),
      stored: objects?.stored ?? null,
    },
    builtBytes,
    sendAtMs: message.sendAtMs,
    lane: mode === 'test' ? 'simulate' : hasRelay() ? 'relay' : 'deliver',
  }
}

function headAttachment({ name, contentType, contentId, size }: Attachment): HeadAttachment {
  return { name, contentType, contentId, size, inline: contentId !== null }
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

function rawContent({ bytes, messageId, reports }: NonNullable<SendMessage['raw']>): SendItem['raw'] {
  return { bytes: bytes.length, messageId, ...(reports && { reports }) }
}
