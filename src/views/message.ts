/**
 * message - a message as GET /v1/messages/{id} shows it, read back from what its acceptance and its attempts wrote
 *
 * A message of another server, of another account or past its age is not there. Three steps: the segment that its id
 * lies in, together with the key; entry, head and statuses; persons and content.
 *
 * Keys: `key:<sha256>`, `segments:<server>`, `log head status:<server>:<segment>`, `person:<account>:<xx>`
 *
 * Spec message.summary, message.recipient, message.read, event.catalogue
 */

import type { Entry, Fact, FactValue } from '../../cluster/behaviour.ts'
import { entryIdOf, msOf, shardOf, shortId } from '../../cluster/id.ts'
import { RECIPIENTS_MAX } from '../../schemas/limits.ts'
import type { Message } from '../../schemas/message.ts'
import { contentExpiresAtMs, isPastAge } from '../actors/age.ts'
import { DAY_MS, monthOf, monthStartMs } from '../actors/calendar.ts'
import { type Head, unpackHead } from '../actors/head.ts'
import { headKey, logKey, segmentsKey, statusKey } from '../actors/keyspace.ts'
import { type LogEntry, logEntryOf } from '../actors/log-entry.ts'
import { messageStatus, type RecipientState, statusField, unpackStatus } from '../actors/status.ts'
import { formatInstant } from './instant.ts'
import { type KeyOwner, keyFact, ownerOfRow, type Reader } from './key.ts'
import { readPersons } from './person.ts'
import { formatEvents, formatRecipient, type Person } from './recipient.ts'

/** Segments of one month or day: more than a server can fill. */
const SEGMENTS_MAX = 10_000
const SOURCES = { a: 'api', s: 'smtp', b: 'broadcast' } as const

export interface MessageBody {
  readonly text: string | null
  readonly html: string | null
}

export interface MessageDeps {
  readonly read: Reader
  /** Null once it is gone; undefined when the store did not answer. */
  readonly readBody: (place: { shard: number; contentId: string }) => Promise<MessageBody | null | undefined>
  /** The store's time in ms. */
  readonly nowMs: () => number
}

/** What the store holds of a message. */
interface Stored {
  readonly messageId: string
  readonly submittedAtMs: number
  readonly test: boolean
  readonly streamId: string
  readonly entry: LogEntry
  readonly head: Head
  readonly recipients: readonly RecipientState[]
}

/** One message of the key's server, whole; or why it is not shown. */
export async function readMessage(
  deps: MessageDeps,
  owner: KeyOwner,
  messageId: string,
): Promise<Message | 'unauthorized' | 'not_found' | 'unavailable'> {
  const accountId = owner.accountId as string
  const shard = shardOf(accountId) as number
  const id = messageId.toLowerCase()
  const nowMs = deps.nowMs()
  const test = owner.mode === 'test'
  const isHere = shardOf(id) === shard && !isPastAge(msOf(id), { nowMs, test })
  const segments = isHere ? [segmentsFact(shard, owner, id)] : []
  const seen = await deps.read(shard, [keyFact(shard, owner.hash), ...segments])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const segment = (seen[1] as readonly (readonly [string, number])[] | undefined)?.at(-1)?.[0]
  if (segment === undefined) return 'not_found'
  const stored = await readStored(deps.read, { owner, shard, segment, id })
  if (stored === 'unavailable' || stored === 'not_found') return stored
  const { entry } = stored
  const expiresAtMs = contentExpiresAtMs(stored.submittedAtMs, test)
  const [persons, body] = await Promise.all([
    readPersons(deps.read, { shard, accountId, numbers: [entry.sender, ...entry.recipients] }),
    nowMs < expiresAtMs ? deps.readBody({ shard, contentId: entry.contentId }) : null,
  ])
  if (persons === null || body === undefined) return 'unavailable'
  return formatMessage(stored, persons, body, expiresAtMs)
}

/** Segments that begin in the month (live) or day (test) of the id, up to it: the last one holds it. */
function segmentsFact(shard: number, { serverId, mode }: KeyOwner, id: string): Fact {
  const ms = msOf(id)
  const min = mode === 'test' ? Math.floor(ms / DAY_MS) * DAY_MS : monthStartMs(monthOf(ms))
  return { read: 'sorted', key: segmentsKey(shard, serverId as string), min, max: ms, count: SEGMENTS_MAX }
}

async function readStored(
  read: Reader,
  { owner, shard, segment, id }: { owner: KeyOwner; shard: number; segment: string; id: string },
): Promise<Stored | 'not_found' | 'unavailable'> {
  const serverId = owner.serverId as string
  const short = shortId(id)
  const entryId = entryIdOf(id)
  const fields = Array.from({ length: RECIPIENTS_MAX }, (_, index) => statusField(short, index))
  const seen = await read(shard, [
    { read: 'range', key: logKey(shard, serverId, segment), from: entryId, to: entryId, count: 1 },
    { read: 'fields', key: headKey(shard, serverId, segment), fields: [short] },
    { read: 'fields', key: statusKey(shard, serverId, segment), fields },
  ])
  if (seen === null) return 'unavailable'
  const [log, heads, statuses] = seen as readonly [readonly Entry[], readonly (string | null)[], FactValue]
  const entry = log[0] === undefined ? null : logEntryOf(log[0])
  const head = heads[0]
  if (entry === null || head === null || head === undefined) return 'not_found'
  const submittedAtMs = msOf(id)
  const rows = (statuses as readonly (string | null)[]).slice(0, entry.recipients.length)
  return {
    messageId: id,
    submittedAtMs,
    test: owner.mode === 'test',
    streamId: entry.streamId ?? (owner.defaultStreamId as string),
    entry,
    head: unpackHead(head, entry.recipients.length),
    recipients: rows.map((row) => unpackStatus(row, submittedAtMs)),
  }
}

async function formatMessage(
  stored: Stored,
  persons: readonly string[],
  body: MessageBody | null,
  expiresAtMs: number,
): Promise<Message> {
  // Nodemailer is only loaded by who reads a message: an idle process does without.
  const { formatMessageId } = await import('../mail/compose.ts')
  const { entry, head, recipients } = stored
  const from = { address: persons[0] as string, name: head.senderName }
  const people = recipients.map(
    (state, index): Person => ({
      address: persons[index + 1] as string,
      name: head.recipientNames[index] ?? null,
      kind: entry.kinds[index] ?? 'to',
      state,
    }),
  )
  return {
    messageId: stored.messageId,
    streamId: stored.streamId,
    broadcastId: null,
    source: SOURCES[entry.source],
    status: messageStatus(recipients.map(({ status }) => status)),
    test: stored.test,
    from: { email: from.address, name: from.name },
    subject: head.subject,
    tag: head.tag,
    metadata: { ...head.metadata },
    submittedAt: formatInstant(stored.submittedAtMs),
    sizeBytes: recipients[0]?.sizeBytes ?? null,
    attachmentCount: head.attachments.length,
    recipients: people.map(formatRecipient),
    contentAvailable: body !== null,
    contentExpiresAt: formatInstant(expiresAtMs),
    messageIdHeader: formatMessageId({ messageId: stored.messageId, from }),
    headers: { ...head.headers },
    text: body?.text ?? null,
    html: body?.html ?? null,
    attachments: await formatAttachments(head),
    events: formatEvents(people),
  }
}

async function formatAttachments({ attachments }: Head): Promise<Message['attachments']> {
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
