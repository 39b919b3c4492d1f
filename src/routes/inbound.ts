/**
 * inbound - POST /v1/inbound/search, GET /v1/inbound/{id}, and its raw mail and attachments
 *
 * Addresses and mailbox hashes are searched by their keyed hashes, which are made here. Mail is streamed from the
 * content store as the client takes it.
 *
 * Spec inbound.search, inbound.read, inbound.raw, inbound.attachment
 */

import type { ReceivedSearch } from '../../schemas/inbound.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, type Download, refusalReply } from '../http/respond.ts'
import type { ReceivedAttachment } from '../mail/mime/body.ts'
import { makeTransferDecoder } from '../mail/mime/transfer.ts'
import type { Secrets } from '../process/secrets.ts'
import type { openRaw } from '../store/received.ts'
import {
  confirmDamage,
  type FoundReceived,
  findReceived,
  type ReceivedDeps,
  readParsedContent,
  readReceived,
} from '../views/inbound/received.ts'
import { type ReceivedFilter, searchReceived } from '../views/inbound/search.ts'
import { isContentKept } from '../views/inbound/shown.ts'
import type { ServerKey } from '../views/key.ts'
import { formatDisposition, formatFileHead, parsePosition } from './content/file-head.ts'

type OpenRaw =
  Parameters<typeof openRaw> extends [unknown, ...infer Rest] ? (...rest: Rest) => ReturnType<typeof openRaw> : never

/** Dependencies of the routes. */
export interface InboundDeps extends ReceivedDeps {
  readonly secrets: Pick<Secrets, 'addressHmac' | 'tagHash'>
  /** Opens the raw mail, or a part of it. */
  readonly openRaw: OpenRaw
}

/** POST /v1/inbound/search */
export function makeSearchReceived(deps: InboundDeps): HandlerOf<'searchReceived'> {
  return async ({ key, body }) => {
    const page = { limit: body.limit, after: body.after?.toLowerCase() ?? null }
    const seen = await searchReceived(deps, key, { filter: makeFilter(deps.secrets, key, body), page })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/inbound/{id} */
export function makeReadReceived(deps: InboundDeps): HandlerOf<'readReceived'> {
  return async ({ key, params }) => {
    const seen = await readReceived(deps, key, params.id ?? '')
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/inbound/{id}/raw */
export function makeReadReceivedRaw(deps: InboundDeps): HandlerOf<'readReceivedRaw'> {
  return async ({ key, params }) => {
    const found = await findReceived(deps, key, params.id ?? '')
    if (typeof found === 'string') return refusalReply(found)
    const place = placeOf(deps, found)
    if (place === null) return refusalReply('content_expired')
    const raw = await deps.openRaw(place, { from: 0, length: 0 })
    if (raw === 'away') return refusalReply('unavailable')
    if (raw === 'damaged') return await refuseDamaged(deps, key, found)
    return {
      size: raw.size,
      contentType: 'message/rfc822',
      headers: formatDisposition(`${found.stored.messageId}.eml`),
      read: (from, length) => readRaw(deps, place, { from, length }),
    } satisfies Download
  }
}

/** GET /v1/inbound/{id}/attachments/{position} */
export function makeReadReceivedFile(deps: InboundDeps): HandlerOf<'readReceivedFile'> {
  return async ({ key, params }): Promise<Answer> => {
    const found = await findReceived(deps, key, params.id ?? '')
    if (typeof found === 'string') return refusalReply(found)
    const position = parsePosition(params.position ?? '', found.stored.standing.attachmentCount)
    if (position === null) return refusalReply('not_found')
    const place = placeOf(deps, found)
    if (place === null) return refusalReply('content_expired')
    const parsed = await readParsedContent(deps, found)
    if (parsed === undefined) return refusalReply('unavailable')
    if (parsed === 'damaged') return await refuseDamaged(deps, key, found)
    const attachment = parsed?.attachments[position]
    if (attachment === undefined) return refusalReply('content_expired')
    const { size, contentType, name } = attachment
    return {
      size,
      ...formatFileHead(contentType, name),
      read: (from, length) => decoded(readRaw(deps, place, spanOf(attachment)), attachment, { from, length }),
    } satisfies Download
  }
}

/** The refusal of content that cannot be read: damaged, or no longer stored by now. */
async function refuseDamaged(deps: InboundDeps, key: ServerKey, found: FoundReceived): Promise<Answer> {
  const again = await confirmDamage(deps, key, found)
  return refusalReply(typeof again === 'string' ? again : 'content_expired')
}

type Place = Parameters<OpenRaw>[0]

/** The place of a message's content; null if it is no longer kept. */
function placeOf({ nowMs }: InboundDeps, { shard, stored }: FoundReceived): Place | null {
  const { serverId, head } = stored
  return head !== null && isContentKept(stored, nowMs()) ? { shard, serverId, head } : null
}

function spanOf({ place }: ReceivedAttachment): { from: number; length: number } {
  return { from: place.start, length: place.length }
}

/** The bytes of a raw mail; an error cuts the answer off. */
async function* readRaw(
  { openRaw }: InboundDeps,
  place: Place,
  span: { from: number; length: number },
): AsyncGenerator<Buffer> {
  if (span.length === 0) return
  const raw = await openRaw(place, span)
  if (typeof raw === 'string') throw new Error(`The raw mail cannot be read: ${raw}`)
  yield* raw.pieces
}

/** An attachment's bytes from `from` on; earlier bytes are decoded and skipped. */
async function* decoded(
  pieces: AsyncIterable<Buffer>,
  { place }: ReceivedAttachment,
  { from, length }: { from: number; length: number },
): AsyncGenerator<Buffer> {
  const decoder = makeTransferDecoder(place.encoding)
  let at = 0
  const cut = (bytes: Buffer): Buffer => {
    const piece = bytes.subarray(Math.max(0, from - at), Math.max(0, from + length - at))
    at += bytes.length
    return piece
  }
  for await (const piece of pieces) {
    yield cut(decoder.push(piece))
    if (at >= from + length) return
  }
  yield cut(decoder.end())
}

function makeFilter(secrets: InboundDeps['secrets'], owner: ServerKey, search: ReceivedSearch): ReceivedFilter {
  const { streamId, from, recipient, mailboxHash, receivedFrom, receivedTo } = search
  const { accountId, serverId } = owner
  return {
    streamId: streamId?.toLowerCase() ?? null,
    from: from === undefined ? null : secrets.addressHmac(accountId, from),
    recipient: recipient?.toLowerCase() ?? null,
    mailboxHash: mailboxHash === undefined ? null : { text: mailboxHash, hash: secrets.tagHash(serverId, mailboxHash) },
    fromMs: receivedFrom === undefined ? null : Date.parse(receivedFrom),
    toMs: receivedTo === undefined ? null : Date.parse(receivedTo),
  }
}
