/**
 * create-stream - adds a stream to a server.
 *
 * Spec stream.create, stream.name, stream.inbound
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { namesKey } from '../../state/keys.ts'
import { inboundName, makeStream, newStreamStaged, type StreamKind, streamName } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import {
  authorizeTenant,
  refuseClosed,
  type ServerKeyOrder,
  type StreamReply,
  serverKeyOrderEntities,
} from '../authorization/stream.ts'

export interface CreateStreamBody extends ServerKeyOrder {
  readonly streamKind: StreamKind
  readonly name: string
}

export const createStream: CommandType<CreateStreamBody, StreamReply | Refused> = {
  name: 'create-stream',
  entities: serverKeyOrderEntities,
  counters: () => [],
  facts: ({ accountId, serverId, name }, _states, { shard }) => [
    { read: 'fields', key: namesKey(shard, accountId), fields: [streamName(serverId, name), inboundName(serverId)] },
  ],
  decide(body, states, facts, context) {
    const tenant = authorizeTenant(body, states, { facts, context })
    if ('kind' in tenant) return tenant
    const { accountId, serverId, streamKind: kind, name } = body
    const { account, server } = tenant
    const isInbound = kind === 'inbound'
    // Sending streams are available to every account that is not closed.
    if (isInbound && account.status === 'pending') return refuse('account_not_active')
    const refusal = refuseClosed(tenant)
    if (refusal !== null) return refusal
    if (isInbound && server.mode === 'test') return refuse('stream_kind_not_allowed')
    const names = namesKey(context.shard, accountId)
    const sameName = facts.field(names, streamName(serverId, name))
    if (sameName !== null) return refuse('stream_exists', { streamId: sameName })
    const inbound = facts.field(names, inboundName(serverId))
    if (isInbound && inbound !== null) return refuse('inbound_stream_exists', { streamId: inbound })
    const streamId = context.newId()
    const stream = makeStream({ streamId, serverId, kind, name, createdAtMs: context.nowMs })
    return {
      kind: 'done',
      reply: { kind: 'stream', stream },
      ...newStreamStaged(stream, { shard: context.shard, accountId }),
    }
  },
}
