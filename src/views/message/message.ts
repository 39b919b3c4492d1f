/**
 * message - a message as GET /v1/messages/{id} returns it, rebuilt from the rows of its acceptance and its attempts
 *
 * A message of another server, of another account or past its age is not there. It takes three reads: the segment of
 * its id, together with the key; entry, head and statuses; persons and content.
 *
 * Keys: `key:<sha256>`, `segments:<server>`, `log head status:<server>:<segment>`, `person:<account>:<x…>`
 *
 * Spec message.summary, message.recipient, message.read, event.catalogue
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { entryIdOf, homeShard, msOf, shardOf, shortId } from '../../../cluster/id.ts'
import { DamagedValue } from '../../../cluster/sum.ts'
import type { Message } from '../../../schemas/message.ts'
import { findLinks } from '../../mail/links.ts'
import { computeMonth, DAY_MS, monthStartMs } from '../../state/calendar.ts'
import { segmentsKey } from '../../state/keys.ts'
import { type Head, type StoredContent, spelledAddress, unpackHead } from '../../state/message/head.ts'
import { keepsContent } from '../../state/message/retention.ts'
import { MessageRows } from '../../state/message/row.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import { readPersons } from '../person.ts'
import { readIsPast } from '../retention.ts'
import { formatEvents } from './recipient.ts'
import { readEntries, readStored } from './rows.ts'
import { formatSummary, peopleOf, type StoredMessage } from './summary.ts'

/** Segments of one month or day: more than a server can fill. */
const SEGMENTS_MAX = 10_000

export interface MessageBody {
  readonly text: string | null
  readonly html: string | null
}

export interface MessageDeps {
  readonly read: Reader
  /** Null once it is gone; undefined when the store did not answer. */
  readonly readBody: (place: {
    shard: number
    contentId: string
    test: boolean
    stored: StoredContent | null
  }) => Promise<MessageBody | null | undefined>
  /** The store's time in ms. */
  readonly nowMs: () => number
}

/** One message of the key's server, whole; or why it is not shown. */
export async function readMessage(
  deps: MessageDeps,
  owner: ServerKey,
  messageId: string,
): Promise<Message | 'unauthorized' | 'not_found' | 'unavailable'> {
  const stored = await readStoredMessage(deps, owner, messageId)
  return typeof stored === 'string' ? stored : readWhole(deps, owner, stored)
}

/** The stored rows of one message of the key's server, or the reason why it is not found. */
export async function readStoredMessage(
  deps: Pick<MessageDeps, 'read' | 'nowMs'>,
  owner: ServerKey,
  messageId: string,
): Promise<StoredMessage | 'unauthorized' | 'not_found' | 'unavailable'> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  const id = messageId.toLowerCase()
  const nowMs = deps.nowMs()
  const isPast = shardOf(id) === shard ? await readIsPast(deps.read, owner, { atMs: msOf(id), nowMs }) : true
  if (isPast === null) return 'unavailable'
  const isHere = !isPast
  const segments = isHere ? [segmentsFact(shard, owner, id)] : []
  const seen = await deps.read(shard, [keyFact(shard, owner.hash), ...segments])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const segment = seen[1]?.at(-1)?.[0]
  if (segment === undefined) return 'not_found'
  const found = { messageId: id, entryId: entryIdOf(id), segment, packed: null }
  const entries = await readEntries(deps.read, { shard, serverId: owner.serverId }, [found])
  const stored = entries === null ? null : await readStored(deps.read, { owner, shard, entries, nowMs })
  if (stored === null) return 'unavailable'
  return stored[0] ?? 'not_found'
}

/** Reads the other parts of a message: its addresses, and its text while that is kept. */
export async function readWhole(
  deps: MessageDeps,
  { accountId, serverId }: Pick<ServerKey, 'accountId' | 'serverId'>,
  stored: StoredMessage,
): Promise<Message | 'unavailable'> {
  const shard = homeShard(accountId)
  const { entry, head } = stored
  const isKept = keepsContent(stored, deps.nowMs())
  const [persons, body] = await Promise.all([
    readPersons(deps.read, { shard, accountId, numbers: [entry.sender, ...entry.recipients] }),
    isKept ? readBodyOf(deps, { shard, serverId }, stored) : null,
  ])
  if (persons === null || body === undefined) return 'unavailable'
  // It is not counted as damage: an erasure may have removed the object since the head was read.
  if (isKept && body === null && (head.stored?.body === true || head.stored?.packed !== undefined))
    throw new DamagedValue('The content of a message is missing')
  const addresses = persons.map((address, place) => spelledAddress(stored.head, place, address))
  return formatMessage(stored, addresses, body)
}

/** The body of a message. If it is nowhere, it may have left for a pack since the head was read. */
async function readBodyOf(
  { read, readBody }: MessageDeps,
  { shard, serverId }: { readonly shard: number; readonly serverId: string },
  { messageId, segment, entry, head, test }: StoredMessage,
): Promise<MessageBody | null | undefined> {
  const place = { shard, contentId: entry.contentId, test }
  const body = await readBody({ ...place, stored: head.stored })
  if (body !== null || head.stored?.packed !== undefined) return body
  const seen = await read(shard, [new MessageRows(shard, { serverId, segment }).headsFact([shortId(messageId)])])
  if (seen === null) return undefined
  const text = seen[0][0] ?? null
  const stored = text === null ? null : unpackHead(text, entry.recipients.length).stored
  return stored?.packed === undefined ? null : readBody({ ...place, stored })
}

/** The segments from the beginning of the id's month (live) or day (test) up to the id; the last one contains it. */
export function segmentsFact(
  shard: number,
  { serverId, mode }: Pick<ServerKey, 'serverId' | 'mode'>,
  id: string,
): FactOf<'sorted'> {
  const ms = msOf(id)
  const min = mode === 'test' ? Math.floor(ms / DAY_MS) * DAY_MS : monthStartMs(computeMonth(ms))
  return { read: 'sorted', key: segmentsKey(shard, serverId), min, max: ms, count: SEGMENTS_MAX }
}

async function formatMessage(
  stored: StoredMessage,
  addresses: readonly string[],
  body: MessageBody | null,
): Promise<Message> {
  // Nodemailer is loaded when a message is first read, so an idle process does not need it.
  const { formatMessageId } = await import('../../mail/compose/compose.ts')
  const { head, messageId } = stored
  const from = { address: addresses[0] as string, name: head.senderName }
  return {
    ...formatSummary(stored, addresses, body !== null),
    messageIdHeader: head.raw?.messageId ?? formatMessageId({ messageId, from }),
    headers: { ...head.headers },
    text: body?.text ?? null,
    html: body?.html ?? null,
    attachments: await formatAttachments(head),
    ...formatLinks(body),
    events: formatEvents(peopleOf(stored, addresses)),
  }
}

/** Spec message.links */
function formatLinks(body: MessageBody | null): Pick<Message, 'links' | 'images'> {
  const { links, images } = findLinks({ text: body?.text ?? null, html: body?.html ?? null })
  return { links: [...links], images: [...images] }
}

/** The attachments as they are shown. */
export async function formatAttachments({ attachments }: Head): Promise<Message['attachments']> {
  if (attachments.length === 0) return []
  const { detectMimeType } = await import('nodemailer/lib/mime-funcs')
  return attachments.map(({ name, contentType, contentId, size, inline }) => ({
    name,
    contentType: contentType ?? detectMimeType(name.split('.').pop() ?? 'bin'),
    contentId,
    size,
    inline,
  }))
}
