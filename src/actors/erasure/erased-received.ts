/**
 * erased-received - the writes for erasing a received message: its head row, which has the key to its content, is
 * removed, its objects are ordered removed, and the text after the plus sign of its address is removed too
 */

import type { Context, Due, Op } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { TOLD_NO_END, type ToldSpan } from '../../state/erasure.ts'
import { type ContentHead, contentHeadKey } from '../../state/received/content-head.ts'
import type { ReceivedPlace } from '../../state/received/parse-item.ts'
import type { ReceivedStanding } from '../../state/received/standing.ts'
import { rowWrites } from '../inbound/rows.ts'
import { unlinkReceivedDue } from '../message/unlink.ts'

/**
 * Its sender was checked this long before its event was announced at most: usually a moment, longer if the store was
 * unreachable or the clock was slow.
 */
const ANNOUNCED_MS = DAY_MS

export interface ErasedReceived {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
  /** 1 if it had content. */
  readonly count: 0 | 1
}

/** The writes and removals. Takes its current rows; the head is null once its content has expired. */
export function eraseReceived(
  context: Pick<Context, 'shard' | 'nowMs'>,
  place: ReceivedPlace,
  { standing, head }: { readonly standing: ReceivedStanding; readonly head: ContentHead | null },
): ErasedReceived {
  const { shard } = context
  const { serverId, messageId } = place
  const ops: Op[] =
    standing.mailboxHash === null
      ? []
      : rowWrites(shard, place, { standing: { ...standing, mailboxHash: null }, head: null })
  if (head === null) return { ops, due: [], count: 0 }
  ops.push({ key: contentHeadKey(shard, serverId, messageId), write: 'HDEL', args: [shortId(messageId)] })
  const objects = [head.objectId, head.parsedId].filter((id) => id !== null)
  return { ops, due: objects.map((id) => unlinkReceivedDue(context, serverId, id)), count: 1 }
}

/**
 * The writes that remove a message of which a row is damaged. Takes its head as far as it can be read. Objects that
 * only a damaged head names are removed by the sweep of the content store.
 */
export function removeDamaged(
  context: Pick<Context, 'shard' | 'nowMs'>,
  { serverId, messageId }: ReceivedPlace,
  of: { readonly stateKey: string; readonly hasHead: boolean; readonly head: ContentHead | null },
): ErasedReceived {
  const short = shortId(messageId)
  const ops: Op[] = [{ key: of.stateKey, write: 'HDEL', args: [short] }]
  if (of.hasHead) ops.push({ key: contentHeadKey(context.shard, serverId, messageId), write: 'HDEL', args: [short] })
  const objects = [of.head?.objectId ?? null, of.head?.parsedId ?? null].filter((id) => id !== null)
  const due = objects.map((id) => unlinkReceivedDue(context, serverId, id))
  return { ops, due, count: of.hasHead ? 1 : 0 }
}

/** When the event of a received message was announced; nothing while it is not parsed. Takes its standing. */
export function toldOfReceived(
  messageId: string,
  { isParsed, checkedAtMs }: Pick<ReceivedStanding, 'isParsed' | 'checkedAtMs'>,
): ToldSpan[] {
  if (!isParsed) return []
  return [[msOf(messageId), checkedAtMs === null ? TOLD_NO_END : checkedAtMs + ANNOUNCED_MS]]
}
