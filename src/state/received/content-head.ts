/**
 * content-head - the data of a received message that expires with its content: its place in the content store, the
 * key, and the header fields for lists.
 *
 * Packed: `[object, key, parsed object, envelope sender, From address, From name, subject, date ms, named, ip, HELO]`,
 * 0 for absent values, zeros at the end left off. `named` are hashes of the addresses of To, Cc, Bcc, Reply-To and
 * Sender, six bytes each, one after the other; a `+` before them means that the mail names more. Deleting the row
 * erases the content in every copy of the content store.
 *
 * Key: `received-head:<server>:<yyyymmdd>:<0-f>`, the day and its sixteenth, an hour and a half, in which the message
 * was received; field = the message's short id. The key expires on day 32, by when the sweep has come by.
 *
 * Spec inbound.summary, retention.inbound
 */

import { newCmdId } from '../../../cluster/cmd-id.ts'
import { msOf } from '../../../cluster/id.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { DAY_MS, dayName } from '../calendar.ts'
import { receivedHeadKey } from '../keys.ts'
import { RECEIVED_DAYS } from '../object-name.ts'
import { trimZeros } from './trim.ts'

/** Sixteenths of a day. */
const SLICES = 16
/** Length of a slice; an object is named by a row in the slice of its time, or in a neighbouring one. */
export const HEAD_SLICE_MS = DAY_MS / SLICES

export interface ContentHead {
  /** Id of the raw mail's object. */
  readonly objectId: string
  /** The key of the mail's objects, sealed. */
  readonly key: string
  /** Id of the parse result's object; null until there is one, and if nothing was parsed. */
  readonly parsedId: string | null
  /** MAIL FROM; null for `<>`. */
  readonly sender: string | null
  readonly fromAddress: string | null
  readonly fromName: string | null
  readonly subject: string | null
  readonly dateMs: number | null
  readonly named: NamedHashes
  /** The session, for completing verdicts that DNS failures left open; null once all are complete. */
  readonly session: ReceivedSession | null
}

/** The sender's session of a mail. */
export interface ReceivedSession {
  readonly ip: string
  readonly helo: string
}

/** Keyed hashes of the addresses that a mail names, eight characters each, in one text. */
export interface NamedHashes {
  readonly hashes: string
  /** False if the mail names more. */
  readonly isWhole: boolean
}

const NOBODY: NamedHashes = { hashes: '', isWhole: true }
const MORE = '+'

/** Characters of the hash of an address that a mail names. */
export const NAMED_CHARS = 8

/** Whether a mail names an address. Takes the HMAC of the address. */
export function namesPerson({ hashes }: NamedHashes, hmac: string): boolean {
  const sought = hmac.slice(0, NAMED_CHARS)
  for (let at = 0; at < hashes.length; at += NAMED_CHARS) if (hashes.startsWith(sought, at)) return true
  return false
}

/** The row of a message that was just received. */
export function freshHead(of: Pick<ContentHead, 'objectId' | 'key' | 'sender' | 'session'>): ContentHead {
  return { ...of, parsedId: null, fromAddress: null, fromName: null, subject: null, dateMs: null, named: NOBODY }
}

/** Packs a row. */
export function packContentHead(head: ContentHead): string {
  const { named, session } = head
  const packed = trimZeros<unknown>([
    head.objectId,
    head.key,
    head.parsedId ?? 0,
    head.sender ?? 0,
    head.fromAddress ?? 0,
    head.fromName ?? 0,
    head.subject ?? 0,
    head.dateMs === null ? 0 : String(head.dateMs),
    named.isWhole && named.hashes === '' ? 0 : (named.isWhole ? '' : MORE) + named.hashes,
    session === null ? 0 : session.ip,
    session === null ? 0 : session.helo,
  ])
  return withSum(JSON.stringify(packed))
}

/** Unpacks a row. */
export function unpackContentHead(text: string): ContentHead {
  const [objectId, key, parsedId, sender, address, name, subject, date, named, ip, helo] = JSON.parse(
    withoutSum(text, 'received-head'),
  ) as [string, string, ...(string | 0 | undefined)[]]
  const dateText = textOrNull(date)
  const ipText = textOrNull(ip)
  return {
    objectId,
    key,
    parsedId: textOrNull(parsedId),
    sender: textOrNull(sender),
    fromAddress: textOrNull(address),
    fromName: textOrNull(name),
    subject: textOrNull(subject),
    dateMs: dateText === null ? null : Number(dateText),
    named: unpackNamed(textOrNull(named)),
    session: ipText === null ? null : { ip: ipText, helo: textOrNull(helo) ?? '' },
  }
}

/** The key that holds a message's row. */
export function contentHeadKey(shard: number, serverId: string, messageId: string): string {
  return receivedHeadKey(shard, serverId, headSlice(msOf(messageId)))
}

/** The slice of an instant: `<yyyymmdd>:<0-f>`. */
export function headSlice(ms: number): string {
  return `${dayName(ms)}:${Math.floor((ms % DAY_MS) / HEAD_SLICE_MS).toString(SLICES)}`
}

/**
 * When the key of a slice expires: everything of its day is past its age then, and the daily sweep has taken it away.
 */
export function headExpiresAtMs(ms: number): number {
  return (Math.floor(ms / DAY_MS) + RECEIVED_DAYS + 1) * DAY_MS
}

/**
 * A new id of an object: the time that leads to its row, and random characters. `random` returns a number in [0, 1).
 */
export function newObjectId(ms: number, random: () => number): string {
  return newCmdId(ms, random)
}

function unpackNamed(text: string | null): NamedHashes {
  if (text === null) return NOBODY
  return text.startsWith(MORE) ? { hashes: text.slice(MORE.length), isWhole: false } : { hashes: text, isWhole: true }
}

function textOrNull(value: string | 0 | undefined): string | null {
  return typeof value === 'string' ? value : null
}
