/**
 * message-files - GET /v1/messages/{id}/raw and GET /v1/messages/{id}/attachments/{position}
 *
 * Nothing is stored longer for them. The raw form is composed again; an attachment of a message that came whole over
 * SMTP is found by parsing the message.
 *
 * Spec message.raw, message.attachment, retention.attachments
 */

import { homeShard } from '../../../cluster/id.ts'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Answer, type Download, RATE_REFUSAL, refusalReply } from '../../http/respond.ts'
import { attachmentBytes } from '../../mail/mime/body.ts'
import type { ComposeAgain } from '../../outbound/compose-again.ts'
import type { SubmittedBody } from '../../sending/submitted-body.ts'
import { type OutgoingStore, readFiles, readRaw } from '../../store/outgoing.ts'
import type { ServerKey } from '../../views/key.ts'
import { isContentWhole, readCopy } from '../../views/message/copy.ts'
import { formatAttachments, type MessageDeps, readStoredMessage } from '../../views/message/message.ts'
import type { StoredMessage } from '../../views/message/summary.ts'
import type { ContentBytes } from './content-bytes.ts'
import { formatDisposition, formatFileHead, parsePosition } from './file-head.ts'

export interface MessageFilesDeps extends Pick<MessageDeps, 'read' | 'nowMs'> {
  readonly outgoing: OutgoingStore
  readonly composeAgain: ComposeAgain
  readonly contentBytes: ContentBytes
  /** Parses a message that came whole; `busy`: it may be parsed at the next try. */
  readonly readSubmitted: (raw: Buffer) => SubmittedBody | Promise<SubmittedBody | 'busy'>
}

/** The handlers. */
export function messageFileHandlers(deps: MessageFilesDeps) {
  return { readMessageRaw: makeReadRaw(deps), readMessageFile: makeReadFile(deps) }
}

/** GET /v1/messages/{id}/raw */
function makeReadRaw(deps: MessageFilesDeps): HandlerOf<'readMessageRaw'> {
  return async ({ key, params }) => {
    const stored = await readStoredMessage(deps, key, params.id ?? '')
    if (typeof stored === 'string') return refusalReply(stored)
    if (!isContentWhole(stored, deps.nowMs())) return refusalReply('content_expired')
    return withBytes(deps, { key, bytes: stored.recipients[0]?.sizeBytes ?? MESSAGE_BYTES_MAX }, async () => {
      const bytes = await composeCopy(deps, key, stored)
      if (typeof bytes === 'string') return refusalReply(REFUSALS[bytes])
      const headers = formatDisposition(`${stored.messageId}.eml`)
      return { ...wholeOf(bytes), contentType: 'message/rfc822', headers } satisfies Download
    })
  }
}

/** The copy of the first recipient. If a body is nowhere, it may have left for a pack since the head was read. */
async function composeCopy(deps: MessageFilesDeps, key: ServerKey, stored: StoredMessage): ReturnType<ComposeAgain> {
  const copy = await readCopy(deps.read, key, stored)
  const bytes = typeof copy === 'string' ? copy : await deps.composeAgain(copy)
  if (bytes !== 'expired' || stored.head.stored?.packed !== undefined) return bytes
  const again = await readStoredMessage(deps, key, stored.messageId)
  const isPacked = typeof again !== 'string' && again.head.stored?.packed !== undefined
  return isPacked ? composeCopy(deps, key, again) : bytes
}

/** A message that cannot be built has failed, and has no raw form. */
const REFUSALS = { expired: 'content_expired', unbuildable: 'not_found', unavailable: 'unavailable' } as const

/** GET /v1/messages/{id}/attachments/{position} */
function makeReadFile(deps: MessageFilesDeps): HandlerOf<'readMessageFile'> {
  return async ({ key, params }) => {
    const stored = await readStoredMessage(deps, key, params.id ?? '')
    if (typeof stored === 'string') return refusalReply(stored)
    const { attachments, raw } = stored.head
    const position = parsePosition(params.position ?? '', attachments.length)
    if (position === null) return refusalReply('not_found')
    if (!isContentWhole(stored, deps.nowMs())) return refusalReply('content_expired')
    const held = raw?.bytes ?? attachments.reduce((sum, { size }) => sum + size, 0)
    return withBytes(deps, { key, bytes: held }, async () => {
      const bytes = await readAttachment(deps, key, { stored, position })
      if (bytes === null) return refusalReply('content_expired')
      if (bytes === undefined) return refusalReply('unavailable')
      const { name, contentType } = (await formatAttachments(stored.head))[position]!
      return { ...wholeOf(bytes), ...formatFileHead(contentType, name) } satisfies Download
    })
  }
}

/** Null once it is gone; undefined if the store did not answer, or no thread is free. */
async function readAttachment(
  deps: MessageFilesDeps,
  { accountId }: ServerKey,
  { stored, position }: { readonly stored: StoredMessage; readonly position: number },
): Promise<Uint8Array | null | undefined> {
  const { entry, head, test } = stored
  const place = { shard: homeShard(accountId), contentId: entry.contentId, test }
  if (head.raw === null) {
    const files = await readFiles(deps.outgoing, { ...place, head })
    return files ? (files[position] ?? null) : files
  }
  const whole = await readRaw(deps.outgoing, { ...place, stored: head.stored })
  if (whole === null || whole === undefined) return whole
  const parsed = await deps.readSubmitted(whole)
  if (parsed === 'busy') return undefined
  const attachment = parsed.mail.attachments[position]
  return attachment === undefined ? null : attachmentBytes(whole, attachment.place)
}

/** Holds the bytes until the answer is over. */
async function withBytes(
  { contentBytes }: MessageFilesDeps,
  { key, bytes }: { readonly key: ServerKey; readonly bytes: number },
  make: () => Promise<Answer>,
): Promise<Answer> {
  const give = contentBytes.take(key.accountId, bytes)
  if (give === null) return RATE_REFUSAL
  let answer: Answer | null = null
  try {
    answer = await make()
  } finally {
    if (answer === null || !('read' in answer)) give()
  }
  return 'read' in answer ? { ...answer, end: give } : answer
}

function wholeOf(bytes: Uint8Array): Pick<Download, 'size' | 'read'> {
  return {
    size: bytes.length,
    async *read(from, length) {
      yield bytes.subarray(from, from + length)
    },
  }
}
