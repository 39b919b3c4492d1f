/**
 * entry - one received message in the log: numbers, ids and keyed hashes only, never an address.
 *
 * Packed in the field `r`: `[stream short, sender number or 0, hash of the mailbox hash or 0]`, zeros at the end left
 * off. The number is the envelope sender's. The entry's id is the message's.
 *
 * Key: `received:<server>:<segment>`
 *
 * Spec inbound.search
 */

import type { Entry, Fact } from '../../../cluster/behaviour.ts'
import { entryIdOf, idOfShort, shortId } from '../../../cluster/id.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { receivedKey } from '../keys.ts'
import { trimZeros } from './trim.ts'

export interface ReceivedEntry {
  readonly streamId: string
  /** Person number of the envelope sender; 0 for `<>`. */
  readonly sender: number
  /** Keyed hash of the text after the plus sign of the address, or null. */
  readonly plusHash: string | null
}

export const RECEIVED_FIELD = 'r'

/** Packs an entry's field. */
export function packReceivedEntry({ streamId, sender, plusHash }: ReceivedEntry): string {
  return withSum(JSON.stringify(trimZeros([shortId(streamId), sender, plusHash ?? 0])))
}

/** Unpacks an entry's field. */
export function unpackReceivedEntry(text: string): ReceivedEntry {
  const [stream, sender, plusHash] = JSON.parse(withoutSum(text, 'received')) as [string, number?, (string | 0)?]
  return { streamId: idOfShort(stream), sender: sender ?? 0, plusHash: plusHash || null }
}

/** The message of a log's entry; null if the entry is not a received message. */
export function parseReceivedEntry({ fields }: Entry): ReceivedEntry | null {
  const at = fields.indexOf(RECEIVED_FIELD)
  const packed = at < 0 ? undefined : fields[at + 1]
  return packed === undefined ? null : unpackReceivedEntry(packed)
}

/** The read of a received message's entry. */
export function receivedFact(
  shard: number,
  { serverId, segment, messageId }: { readonly serverId: string; readonly segment: string; readonly messageId: string },
): Fact & { read: 'range' } {
  const entryId = entryIdOf(messageId)
  return { read: 'range', key: receivedKey(shard, serverId, segment), from: entryId, to: entryId, count: 1 }
}
