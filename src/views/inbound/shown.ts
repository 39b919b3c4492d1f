/**
 * shown - a received message as the contract shows it: the summary, the whole, and both forms of the event
 *
 * Until it is parsed, only the envelope is shown: `unchecked`, without text and without any header field. Once its
 * content has ended all that remains is the reference.
 *
 * Spec inbound.summary, inbound.read, inbound.event
 */

import type { ReceivedMessage, ReceivedSummary } from '../../../schemas/inbound.ts'
import { EVENT_PEOPLE_MAX } from '../../../schemas/limits.ts'
import type { EventBody } from '../../../schemas/webhook.ts'
import type { ParsedContent } from '../../mail/mime/received-mail.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import type { StoredReceived } from './rows.ts'

/** The inputs of a view of received mail apart from the store. */
export interface ShownAt {
  readonly nowMs: number
  readonly inboundDomain: string
}

/** Whether the content of a message can be read now. */
export function isContentKept({ head, contentExpiresAtMs }: StoredReceived, nowMs: number): boolean {
  return head !== null && nowMs < contentExpiresAtMs
}

/** The summary. */
export function formatReceivedSummary(stored: StoredReceived, { nowMs, inboundDomain }: ShownAt): ReceivedSummary {
  const head = isContentKept(stored, nowMs) ? stored.head : null
  return {
    ...formatReference(stored, inboundDomain),
    contentAvailable: head !== null,
    contentExpiresAt: formatInstant(stored.contentExpiresAtMs),
    ...headShown(head),
  }
}

/** The whole message. In: the result of parsing, null if there is none or its content has expired. */
export function formatReceivedMessage(
  stored: StoredReceived,
  parsed: ParsedContent | null,
  at: ShownAt,
): ReceivedMessage {
  return { ...formatReceivedSummary(stored, at), ...contentShown(stored, parsed, at.nowMs) }
}

/** The fields of a delivery of the event; without `parsed`, the form `reference`. */
export function formatInboundEvent(
  stored: StoredReceived,
  parsed: ParsedContent | null | undefined,
  at: ShownAt,
): EventBody {
  const reference = {
    event: 'inbound',
    serverId: stored.serverId,
    ...formatReference(stored, at.inboundDomain),
  } as const
  if (parsed === undefined) return reference
  const content = contentShown(stored, parsed, at.nowMs)
  return {
    ...reference,
    ...content,
    to: content.to.slice(0, EVENT_PEOPLE_MAX),
    cc: content.cc.slice(0, EVENT_PEOPLE_MAX),
  }
}

/** The address that a message was sent to, as its envelope spelled it. */
export function envelopeRecipientOf(
  { entry, standing }: Pick<StoredReceived, 'entry' | 'standing'>,
  inboundDomain: string,
): string {
  const { spelledId, mailboxHash } = standing
  const localPart = spelledId ?? entry.streamId
  return `${mailboxHash === null ? localPart : `${localPart}+${mailboxHash}`}@${inboundDomain}`
}

function formatReference(stored: StoredReceived, inboundDomain: string) {
  const { messageId, entry, standing, receivedAtMs } = stored
  return {
    inboundMessageId: messageId,
    streamId: entry.streamId,
    receivedAt: formatInstant(receivedAtMs),
    envelopeRecipient: envelopeRecipientOf(stored, inboundDomain),
    mailboxHash: standing.mailboxHash,
    sizeBytes: standing.sizeBytes,
    attachmentCount: standing.attachmentCount,
    hasText: standing.hasText,
    hasHtml: standing.hasHtml,
    authentication: { ...standing.authentication, checkedAt: formatInstantOrNull(standing.checkedAtMs) },
    parseIssue: standing.parseIssue,
  }
}

function headShown(head: StoredReceived['head']) {
  const { fromAddress = null, fromName = null, subject = null, dateMs = null } = head ?? {}
  return {
    from: fromAddress === null ? null : { address: fromAddress, name: fromName },
    subject,
    date: formatInstantOrNull(dateMs),
  }
}

function contentShown(stored: StoredReceived, parsed: ParsedContent | null, nowMs: number) {
  const head = isContentKept(stored, nowMs) ? stored.head : null
  const content = head === null ? null : parsed
  return {
    ...headShown(head),
    envelope: head === null ? null : { sender: head.sender },
    replyTo: people(content?.replyTo),
    to: people(content?.to),
    toCount: content?.toCount ?? 0,
    cc: people(content?.cc),
    ccCount: content?.ccCount ?? 0,
    messageIdHeader: content?.messageIdHeader ?? null,
    inReplyTo: content?.inReplyTo ?? null,
    references: [...(content?.references ?? [])],
    headers: (content?.headers ?? []).map(({ name, value }) => ({ name, value })),
    text: content?.text ?? null,
    html: content?.html ?? null,
    attachments: (content?.attachments ?? []).map(({ place: _, ...attachment }) => attachment),
    contentOmitted: head === null ? ('expired' as const) : (content?.contentOmitted ?? null),
  }
}

function people(list: ParsedContent['to'] | undefined): { address: string; name: string | null }[] {
  return (list ?? []).map(({ address, name }) => ({ address, name }))
}
