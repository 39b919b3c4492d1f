/**
 * raw-mail - a received mail in memory that threads share without copies, either as just received or from the content
 * store.
 */

import { shardOf } from '../../cluster/id.ts'
import type { ParseJob } from '../actors/inbound/parse-job.ts'
import { openRaw, type ReceivedStore } from '../store/received.ts'
import type { TakeMemory } from './byte-gate.ts'
import type { FreshMails } from './fresh-mails.ts'

/** Reads a whole raw mail. Returns `gone` if it was removed or is damaged, and `away` if the store does not answer. */
export async function readReceivedMail(
  { received, freshMails }: { received: ReceivedStore; freshMails: FreshMails | null },
  { serverId, head }: Pick<ParseJob, 'serverId' | 'head'>,
  take: TakeMemory,
): Promise<Uint8Array | 'gone' | 'away'> {
  const fresh = freshMails?.take(head.objectId) ?? null
  if (fresh !== null) return fresh
  const raw = await openRaw(received, { shard: shardOf(serverId) as number, serverId, head })
  if (typeof raw === 'string') return raw === 'damaged' ? 'gone' : raw
  const whole = take(raw.size)
  let at = 0
  try {
    for await (const piece of raw.pieces) {
      whole.set(piece, at)
      at += piece.length
    }
  } catch {
    // It was removed during the read, or is damaged; the next look decides which.
    return 'away'
  }
  return whole
}
