/**
 * find-message - finds the server and segment of a message among some servers of its shard
 *
 * Keys: `segments:<server>`, `log:<server>:<segment>`
 *
 * Spec operator.message, member.find
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { computeMonth, monthStartMs } from '../../state/calendar.ts'
import { segmentsKey } from '../../state/keys.ts'
import { MessageRows } from '../../state/message/row.ts'
import type { Reader } from '../key.ts'
import type { ShardServer } from '../shard-servers.ts'

/** Server, segment and shard of a message. */
export interface MessagePlace extends ShardServer {
  readonly shard: number
  readonly messageId: string
  readonly segment: string
}

/** Finds a message among some servers of its shard. The id may be in either case. */
export async function findMessageAmong(
  read: Reader,
  of: { readonly shard: number; readonly servers: readonly ShardServer[]; readonly id: string },
): Promise<MessagePlace | 'not_found' | 'unavailable'> {
  const { shard, servers } = of
  const messageId = of.id.toLowerCase()
  const max = msOf(messageId)
  // Segments of test servers are days, but the last one that begins before the message still contains it.
  const min = monthStartMs(computeMonth(max))
  const segments = await read(
    shard,
    servers.map(({ serverId }): FactOf<'sorted'> => {
      return { read: 'sorted', key: segmentsKey(shard, serverId), min, max, count: 1, newest: true }
    }),
  )
  if (segments === null) return 'unavailable'
  const places = servers.flatMap(({ accountId, serverId }, at) => {
    const segment = segments[at]?.[0]?.[0]
    return segment === undefined ? [] : [{ shard, messageId, accountId, serverId, segment }]
  })
  const logs = await read(
    shard,
    places.map((place): FactOf<'range'> => new MessageRows(shard, place).entryFact(messageId)),
  )
  if (logs === null) return 'unavailable'
  return places[logs.findIndex((entries) => entries.length > 0)] ?? 'not_found'
}
