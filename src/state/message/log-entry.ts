/**
 * log-entry - one message in the log: numbers and ids only, never an address.
 *
 * Packed in the field `m`: `[contentId, stream, sender, [recipients], kinds, tag hash, source letter]`. The stream is
 * a short id, 0 for the server's default stream; persons are numbers; kinds is one letter (t c b) a recipient. Left
 * off at the end are the source `a` (api), and then an absent tag. A sum follows. The entry's id is
 * the message's.
 *
 * Key: `log:<server>:<segment>`
 *
 * Spec message.summary
 */

import type { Entry } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'

/** How a message came: over the API, over SMTP, out of a broadcast. */
export type SourceLetter = 'a' | 's' | 'b'
export type RecipientKind = 'to' | 'cc' | 'bcc'

export interface LogEntry {
  readonly contentId: string
  /** Null for the server's default stream. */
  readonly streamId: string | null
  /** Person number of the sender. */
  readonly sender: number
  /** Person numbers. */
  readonly recipients: readonly number[]
  readonly kinds: readonly RecipientKind[]
  readonly tagHash: string | null
  readonly source: SourceLetter
}

export const LOG_FIELD = 'm'

const KINDS = { t: 'to', c: 'cc', b: 'bcc' } as const

/** Packs an entry's field. */
export function packLogEntry(entry: LogEntry): string {
  let kinds = ''
  for (const kind of entry.kinds) kinds += kind[0]
  const stream = entry.streamId === null ? 0 : shortId(entry.streamId)
  const packed: unknown[] = [entry.contentId, stream, entry.sender, entry.recipients, kinds]
  if (entry.tagHash !== null || entry.source !== 'a') packed.push(entry.tagHash ?? 0)
  if (entry.source !== 'a') packed.push(entry.source)
  return withSum(JSON.stringify(packed))
}

/** Unpacks an entry's field. */
export function unpackLogEntry(text: string): LogEntry {
  const [contentId, stream, sender, recipients, kinds, tagHash, source] = JSON.parse(withoutSum(text, 'log')) as [
    string,
    string | 0,
    number,
    number[],
    string,
    (string | 0)?,
    SourceLetter?,
  ]
  return {
    contentId,
    streamId: stream === 0 ? null : idOfShort(stream),
    sender,
    recipients,
    kinds: Array.from(kinds, (letter) => KINDS[letter as 't' | 'c' | 'b']),
    tagHash: tagHash || null,
    source: source ?? 'a',
  }
}

/** The message of a log entry; null if the entry is not a message. */
export function parseLogEntry(entry: Entry): LogEntry | null {
  const packed = entry.fields[entry.fields.indexOf(LOG_FIELD) + 1]
  return packed === undefined ? null : unpackLogEntry(packed)
}
