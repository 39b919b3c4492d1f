/**
 * rows - the two rows of a received message that its outcomes read and write: its standing, and the head of
 * its content
 */

import type { Fact, Facts, Op } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { receivedStateKey } from '../../state/keys.ts'
import {
  type ContentHead,
  contentHeadKey,
  packContentHead,
  unpackContentHead,
} from '../../state/received/content-head.ts'
import type { ReceivedPlace } from '../../state/received/parse-item.ts'
import { packStanding, type ReceivedStanding, unpackStanding } from '../../state/received/standing.ts'

/** The reads of both. */
export function rowFacts(shard: number, { serverId, segment, messageId }: ReceivedPlace): Fact[] {
  const fields = [shortId(messageId)]
  return [
    { read: 'fields', key: receivedStateKey(shard, serverId, segment), fields },
    { read: 'fields', key: contentHeadKey(shard, serverId, messageId), fields },
  ]
}

/** Both, as they were read. */
export interface ReceivedRows {
  /** Null once its reference has left. */
  readonly standing: ReceivedStanding | null
  /** Null once its content has left. */
  readonly head: ContentHead | null
}

/** The rows read. */
export function rowsIn(facts: Facts, shard: number, { serverId, segment, messageId }: ReceivedPlace): ReceivedRows {
  const short = shortId(messageId)
  const standing = facts.field(receivedStateKey(shard, serverId, segment), short)
  const head = facts.field(contentHeadKey(shard, serverId, messageId), short)
  return {
    standing: standing === null ? null : unpackStanding(standing, msOf(messageId)),
    head: head === null ? null : unpackContentHead(head),
  }
}

/** The writes of both; the head if there is one. */
export function rowWrites(
  shard: number,
  { serverId, segment, messageId }: ReceivedPlace,
  { standing, head }: { standing: ReceivedStanding; head: ContentHead | null },
): Op[] {
  const short = shortId(messageId)
  const packed = packStanding(standing, msOf(messageId))
  const ops: Op[] = [{ key: receivedStateKey(shard, serverId, segment), write: 'HSET', args: [short, packed] }]
  if (head === null) return ops
  const key = contentHeadKey(shard, serverId, messageId)
  return [...ops, { key, write: 'HSET', args: [short, packContentHead(head)] }]
}
