/**
 * patch-stream - renames a stream, changes how long an inbound one keeps content, or archives it for good.
 *
 * A shorter time applies to stored data at the next sweep. An archived stream accepts no new messages; its queued mail
 * is still delivered. Its name stays reserved. Once its inbound stream is archived, a server may have another one.
 *
 * Spec stream.patch, stream.name, stream.archive
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { namesKey } from '../../state/keys.ts'
import { inboundName, type StreamChanges, streamName, streamRef } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import {
  authorizeTenant,
  refuseClosed,
  type StreamOrder,
  type StreamReply,
  streamOfOrder,
  streamOrderEntities,
} from '../authorization/stream.ts'

export interface PatchStreamBody extends StreamOrder {
  /** Any subset. */
  readonly changes: StreamChanges
}

export const patchStream: CommandType<PatchStreamBody, StreamReply | Refused> = {
  name: 'patch-stream',
  entities: streamOrderEntities,
  counters: () => [],
  facts: ({ accountId, serverId, changes }, _states, { shard }) =>
    changes.name === undefined
      ? []
      : [{ read: 'fields', key: namesKey(shard, accountId), fields: [streamName(serverId, changes.name)] }],
  decide(body, states, facts, context) {
    const { shard } = context
    const tenant = authorizeTenant(body, states, { facts, context })
    if ('kind' in tenant) return tenant
    const { accountId, serverId, changes } = body
    const stream = streamOfOrder(body, states)
    // Whether the body is valid depends on the stream's kind, and this refusal comes before the account's state.
    if (stream !== null && stream.kind !== 'inbound' && changes.contentRetentionDays !== undefined)
      return refuse('invalid_request')
    const refusal = refuseClosed(tenant)
    if (refusal !== null) return refusal
    if (stream === null) return refuse('not_found')
    const names = namesKey(shard, accountId)
    const ops: Op[] = []
    if (changes.name !== undefined && changes.name !== stream.name) {
      const known = facts.field(names, streamName(serverId, changes.name))
      if (known !== null) return refuse('stream_exists', { streamId: known })
      ops.push({ key: names, write: 'HDEL', args: [streamName(serverId, stream.name)] })
      ops.push({ key: names, write: 'HSET', args: [streamName(serverId, changes.name), stream.streamId] })
    }
    const reply: StreamReply = { kind: 'stream', stream: { ...stream, ...changes } }
    if (Object.keys(changes).length === 0) return { kind: 'done', reply }
    return {
      kind: 'done',
      reply,
      events: [{ ref: streamRef(stream.streamId), event: { type: 'patched', changes } }],
      ops,
    }
  },
}

export const archiveStream: CommandType<StreamOrder, StreamReply | Refused> = {
  name: 'archive-stream',
  entities: streamOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const tenant = authorizeTenant(body, states, { facts, context })
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
