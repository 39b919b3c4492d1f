/**
 * archive-stream - a stream takes no new messages any more, for good; what it holds is still delivered.
 *
 * The name stays taken. The server may have another inbound stream once its inbound one is archived.
 *
 * Spec stream.archive
 */

import type { CommandType, Op } from '../../cluster/behaviour.ts'
import { namesKey } from '../state/keys.ts'
import { inboundName, streamRef } from '../state/stream.ts'
import { type Refused, refuse } from './order/refusal.ts'
import {
  refuseClosed,
  type StreamOrder,
  type StreamReply,
  streamOfOrder,
  streamOrderEntities,
  tenantOf,
} from './order/stream.ts'

export const archiveStream: CommandType<StreamOrder, StreamReply | Refused> = {
  name: 'archive-stream',
  entities: streamOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, _facts, { shard, nowMs }) {
    const tenant = tenantOf(body, states)
    if ('kind' in tenant) return tenant
    const refusal = refuseClosed(tenant)
    if (refusal !== null) return refusal
    const stream = streamOfOrder(body, states)
    if (stream === null) return refuse('not_found')
    if (stream.isDefault) return refuse('default_stream')
    if (stream.archivedAtMs !== null) return { kind: 'done', reply: { kind: 'stream', stream } }
    const { accountId, serverId, streamId } = body
    const freed: Op = { key: namesKey(shard, accountId), write: 'HDEL', args: [inboundName(serverId)] }
    return {
      kind: 'done',
      reply: { kind: 'stream', stream: { ...stream, archivedAtMs: nowMs } },
      events: [{ ref: streamRef(streamId), event: { type: 'archived', archivedAtMs: nowMs } }],
      ops: stream.kind === 'inbound' ? [freed] : [],
    }
  },
}
