/** whole - opens every message of a sealed segment, for checks of objects. */

import { DamagedValue } from '../../../cluster/sum.ts'
import { unpackHead } from '../../state/message/head.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import type { SealedRow } from '../../state/message/sealed.ts'
import { unpackStatus } from '../../state/message/status.ts'
import { type SealedSegment, SegmentFailure } from './segment.ts'

/** Why an object cannot be used. `away`: the content store did not answer. */
export type ObjectDamage = 'missing' | 'broken' | 'away'

/**
 * Opens a segment whole. Takes its row, and a function that gets the entry id and the head of each message. Returns its
 * damage; null if every message is there. Never throws SegmentFailure.
 */
export async function openSegmentWhole(
  segment: SealedSegment,
  { messages }: Pick<SealedRow, 'messages'>,
  each: (entryId: string, head: string) => Promise<void> = () => Promise.resolve(),
): Promise<ObjectDamage | null> {
  try {
    return (await openAll(segment, each)) === messages ? null : 'broken'
  } catch (error) {
    if (error instanceof DamagedValue) return 'broken'
    if (!(error instanceof SegmentFailure)) throw error
    return error.kind === 'gone' ? 'missing' : error.kind
  }
}

/** Returns the number of messages that open; -1 if one has too few statuses. */
async function openAll(
  segment: SealedSegment,
  each: (entryId: string, head: string) => Promise<void>,
): Promise<number> {
  await segment.hold()
  const { blocks } = await segment.tail()
  let count = 0
  for (const number of blocks.keys()) {
    for (const { entryId, log, head, statuses } of await segment.block(number)) {
      const { recipients } = unpackLogEntry(log)
      unpackHead(head, recipients.length)
      for (const text of statuses) unpackStatus(text, 0)
      if (statuses.length !== recipients.length) return -1
      count += 1
      await each(entryId, head)
    }
  }
  return count
}
