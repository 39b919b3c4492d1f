/**
 * head - the text that a person wrote on a message, apart from its content: packed as one erasable field.
 *
 * Packed: `[subject, names, tag, metadata, headers, attachments, stored, spellings, raw, broadcast, sendAt in ms, 1 if
 * the messages of a broadcast have their own List-Unsubscribe]`, with 0 for absent values and without zeros at the
 * end. Names and spellings start with the sender's, followed by those of the recipients in the order of the log entry.
 * A spelling is the local part as written in the request, if that is not in lower case; a person's row has the address
 * in lower case. An attachment is `[name, content type, content id, size, inline]`. `stored` is
 * `[the mail's key, sealed; letters of the objects]` for content in the content store, and for a body in a pack
 * `[key, letters, day and leaf of the pack, from, bytes]`; it cannot be read without the head. Raw is
 * `[bytes, Message-ID, NOTIFY, ENVID]` of a message that came whole, NOTIFY as a digit for each recipient. A
 * broadcast's message has only its own values, and `[broadcast short, contentId, chunks of attachments]`; the rest is
 * in the broadcast's head. A sum is at the end.
 *
 * Key: `head:<server>:<segment>`, field = the message's short id
 *
 * Spec message.summary, message.read
 */

import { idOfShort, shortId } from '../../../cluster/id.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import type { ReportsWanted } from './bounce-mail.ts'
import type { PackedPlace } from './packed.ts'

/** An attachment without its bytes. */
export interface HeadAttachment {
  readonly name: string
  /** `type/subtype`; null if it follows from the name. */
  readonly contentType: string | null
  readonly contentId: string | null
  /** Bytes once decoded. */
  readonly size: number
  readonly inline: boolean
}

/** The objects of a message in the content store, and the key to them. */
export interface StoredContent {
  /** Key of the mail, sealed. */
  readonly key: string
  /** The body; all attachments, one after the other. */
  readonly body: boolean
  readonly files: boolean
  /** Position of the body in a pack; absent if it is in none. */
  readonly packed?: PackedPlace
}

/** A message that came whole, over SMTP: kept as it was written, and sent so. */
export interface RawContent {
  /** As it is kept. */
  readonly bytes: number
  /** Its own Message-ID with angle brackets; null if it has none. */
  readonly messageId: string | null
  /** Reports that its client wants; absent: none. */
  readonly reports?: ReportsWanted
}

export interface Head {
  /** Null once erased. */
  readonly subject: string | null
  readonly senderName: string | null
  /** One for each recipient. */
  readonly recipientNames: readonly (string | null)[]
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly attachments: readonly HeadAttachment[]
  /** Null if no content is there. */
  readonly stored: StoredContent | null
  /** Local parts that are not in lower case, the sender's first; null, or left off at the end, for lower case. */
  readonly spellings: readonly (string | null)[]
  /** Null if the message is composed from its parts. */
  readonly raw: RawContent | null
  /** Its broadcast, whose head has the shared values; null if there is none. */
  readonly broadcast: BroadcastOfHead | null
  /** When it is sent, ms; absent: it was not scheduled. */
  readonly sendAtMs?: number
  /** Shared by a broadcast's messages: they have their own List-Unsubscribe, and headers have placeholders. */
  readonly ownsList?: true
}

/** The remains of a head after the erasure of a person in it: only its broadcast. */
export function erasedHead({ broadcast }: Head): string {
  const none = { subject: null, senderName: null, recipientNames: [], tag: null, metadata: {}, headers: {} }
  const bare = { attachments: [], stored: null, spellings: NO_SPELLINGS, raw: null }
  return packHead({ ...none, ...bare, broadcast: broadcast && { ...broadcast, contentId: '', fileChunks: 0 } })
}

/** Whether a head was erased. A message's own head has a subject, or the id of its content. */
export function isErasedHead({ subject, broadcast }: Head): boolean {
  return subject === null && !broadcast?.contentId
}

/** A packed head whose body lies in a pack from now on; null: it was erased, or its body lies in an object already. */
export function headWithPack(
  text: string,
  { key, packed, recipients }: { readonly key: string; readonly packed: PackedPlace; readonly recipients: number },
): string | null {
  const head = unpackHead(text, recipients)
  const { stored } = head
  const isOther = stored !== null && (stored.body || stored.packed !== undefined || stored.key !== key)
  if (isErasedHead(head) || isOther) return null
  return packHead({ ...head, stored: { key, body: false, files: stored?.files ?? false, packed } })
}

/** A packed head without the place of its body in a pack, and without the key: attachments have ended before. */
export function headWithoutPack(head: Head): string {
  return packHead({ ...head, stored: null })
}

/** Where the rest of a broadcast's message is found. */
export interface BroadcastOfHead {
  readonly broadcastId: string
  /** Id of the broadcast's content; '' once the message was erased. */
  readonly contentId: string
  /** Chunks of its attachments, all together. */
  readonly fileChunks: number
}

const NO_SPELLINGS: Head['spellings'] = []

type PackedStored = [key: string, objects: string, pack?: string, from?: number, length?: number]
type PackedRaw = [bytes: number, messageId?: string | 0, notify?: string, envid?: string]
type PackedAttachment = [string, (string | 0)?, (string | 0)?, number?, number?]

/** Packs a head. */
export function packHead(head: Head): string {
  const packed: unknown[] = [
    head.subject ?? 0,
    packNames(head),
    head.tag ?? 0,
    packMap(head.metadata),
    packMap(head.headers),
    head.attachments.length === 0 ? 0 : head.attachments.map(packAttachment),
    head.stored === null ? 0 : packStored(head.stored),
    head.spellings.length === 0 ? 0 : trim(head.spellings.map((spelling) => spelling ?? 0)),
    head.raw === null ? 0 : packRaw(head.raw),
    head.broadcast === null ? 0 : packBroadcast(head.broadcast),
    head.sendAtMs ?? 0,
    head.ownsList ? 1 : 0,
  ]
  return withSum(JSON.stringify(trim(packed)))
}

/** Unpacks a head of a message with `recipients` recipients. */
export function unpackHead(text: string, recipients: number): Head {
  const [subject, names, tag, metadata, headers, attachments, stored, spellings, raw, broadcast, sendAtMs, ownsList] =
    JSON.parse(withoutSum(text, 'head')) as [
      unknown,
      (string | 0)[] | 0 | undefined,
      unknown,
      Record<string, string> | 0 | undefined,
      Record<string, string> | 0 | undefined,
      PackedAttachment[] | 0 | undefined,
      PackedStored | 0 | undefined,
      (string | 0)[] | 0 | undefined,
      PackedRaw | 0 | undefined,
      [short: string, contentId: string, fileChunks?: number] | 0 | undefined,
      number | undefined,
      number | undefined,
    ]
  const named = names || []
  return {
    subject: textOrNull(subject),
    senderName: textOrNull(named[0]),
    recipientNames: Array.from({ length: recipients }, (_, index) => textOrNull(named[index + 1])),
    tag: textOrNull(tag),
    metadata: metadata || {},
    headers: headers || {},
    attachments: (attachments || []).map(unpackAttachment),
    stored: stored ? unpackStored(stored) : null,
    spellings: (spellings || []).map(textOrNull),
    raw: raw ? unpackRaw(raw) : null,
    broadcast: broadcast
      ? { broadcastId: idOfShort(broadcast[0]), contentId: broadcast[1], fileChunks: broadcast[2] ?? 0 }
      : null,
    ...(sendAtMs && { sendAtMs }),
    ...(ownsList === 1 && { ownsList: true as const }),
  }
}

/** The head of a broadcast's message with its shared values. Takes its own head and the broadcast's. */
export function mergeHeads(own: Head, shared: Head): Head {
  const [, ...recipients] = own.spellings
  return {
    ...shared,
    subject: own.subject ?? shared.subject,
    recipientNames: own.recipientNames,
    metadata: { ...shared.metadata, ...own.metadata },
    stored: own.stored,
    spellings: [shared.spellings[0] ?? null, ...recipients],
    broadcast: own.broadcast,
  }
}

/** The spellings for a head: null if all addresses are in lower case. */
export function collectSpellings(
  sender: string,
  recipients: readonly { readonly address: string }[],
): Head['spellings'] {
  let spellings: (string | null)[] | null = isLowerCase(sender) ? null : [localPartOf(sender)]
  for (let index = 0; index < recipients.length; index += 1) {
    const { address } = recipients[index] as { address: string }
    if (isLowerCase(address)) continue
    spellings ??= []
    while (spellings.length <= index) spellings.push(null)
    spellings.push(localPartOf(address))
  }
  return spellings ?? NO_SPELLINGS
}

/**
 * An address as the message's request wrote it. Takes 0 for the sender, then 1 and on for the recipients; and the
 * address of its row, which is returned if it has changed since (a pseudonym).
 */
export function spelledAddress({ spellings }: Pick<Head, 'spellings'>, place: number, address: string): string {
  const spelling = spellings[place] ?? null
  if (spelling === null) return address
  const at = address.lastIndexOf('@')
  return address.slice(0, Math.max(at, 0)).toLowerCase() === spelling.toLowerCase()
    ? spelling + address.slice(at)
    : address
}

function isLowerCase(address: string): boolean {
  return address === address.toLowerCase()
}

function localPartOf(address: string): string {
  return address.slice(0, address.lastIndexOf('@'))
}

function packNames({ senderName, recipientNames }: Head): (string | 0)[] | 0 {
  if (senderName === null && recipientNames.every((name) => name === null)) return 0
  return trim([senderName ?? 0, ...recipientNames.map((name) => name ?? 0)])
}

function packMap(map: Readonly<Record<string, string>>): Readonly<Record<string, string>> | 0 {
  for (const _ in map) return map
  return 0
}

function packRaw({ bytes, messageId, reports }: RawContent): PackedRaw {
  if (reports === undefined) return messageId === null ? [bytes] : [bytes, messageId]
  const notify = reports.notify.map((bits) => bits.toString(16)).join('')
  return reports.envid === null ? [bytes, messageId ?? 0, notify] : [bytes, messageId ?? 0, notify, reports.envid]
}

function unpackRaw([bytes, messageId, notify, envid]: PackedRaw): RawContent {
  const raw = { bytes, messageId: textOrNull(messageId) }
  if (notify === undefined) return raw
  return {
    ...raw,
    reports: { envid: textOrNull(envid), notify: Array.from(notify, (bits) => Number.parseInt(bits, 16)) },
  }
}

function packBroadcast({ broadcastId, contentId, fileChunks }: BroadcastOfHead): (string | number)[] {
  return trim([shortId(broadcastId), contentId, fileChunks])
}

function packStored({ key, body, files, packed }: StoredContent): PackedStored {
  const letters = `${body ? 'b' : ''}${files ? 'f' : ''}`
  return packed === undefined ? [key, letters] : [key, letters, packed.object, packed.from, packed.length]
}

function unpackStored([key, objects, object, from = 0, length = 0]: PackedStored): StoredContent {
  const stored = { key, body: objects.includes('b'), files: objects.includes('f') }
  return object === undefined ? stored : { ...stored, packed: { object, from, length } }
}

function packAttachment(attachment: HeadAttachment): unknown[] {
  const { name, contentType, contentId, size, inline } = attachment
  return trim([name, contentType ?? 0, contentId ?? 0, size, inline ? 1 : 0])
}

function unpackAttachment([name, contentType, contentId, size, inline]: PackedAttachment): HeadAttachment {
  return {
    name,
    contentType: textOrNull(contentType),
    contentId: textOrNull(contentId),
    size: size ?? 0,
    inline: inline === 1,
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function trim<Value>(packed: Value[]): Value[] {
  while (packed.length > 1 && packed.at(-1) === 0) packed.pop()
  return packed
}
