/**
 * streams - POST, GET and PATCH /v1/streams, POST /v1/streams/{id}/archive
 *
 * Spec stream.create, stream.read, stream.list, stream.patch, stream.archive
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import type { ServerKeyOrder, StreamReply } from '../actors/authorization/stream.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { Reader, ServerKey } from '../views/key.ts'
import { formatStream, listStreams, readStream } from '../views/stream.ts'
import { giveOrder, type Order, type OrderDeps, parsePage } from './answer.ts'

/** Dependencies of the routes of streams. */
export interface StreamDeps extends OrderDeps {
  readonly read: Reader
  readonly inboundDomain: string
}

/** The only field of a stream whose place depends on the stream's kind. */
const MISPLACED = {
  issues: [{ path: 'contentRetentionDays', message: 'Only inbound streams have this field' }],
}

/** POST /v1/streams */
export function makeCreateStream(deps: StreamDeps): HandlerOf<'createStream'> {
  return ({ key, body }) => {
    const { kind: streamKind, name } = body
    return orderStream(deps, key, { name: 'create-stream', body: { streamKind, name }, status: 201 })
  }
}

/** GET /v1/streams */
export function makeListStreams({ read, inboundDomain }: StreamDeps): HandlerOf<'listStreams'> {
  return async ({ key, query }) => {
    const { kind = null, archived } = query
    const filter = { kind, archived: archived === undefined ? null : archived === 'true' }
    const seen = await listStreams(read, key, { ...parsePage(query), filter })
    if (typeof seen === 'string') return refusalReply(seen)
    const streams = seen.streams.map((stream) => formatStream(stream, inboundDomain))
    return { status: 200, json: { streams, next: seen.next } }
  }
}

/** GET /v1/streams/{id} */
export function makeReadStream({ read, inboundDomain }: StreamDeps): HandlerOf<'readStream'> {
  return async ({ key, params }) => {
    const seen = await readStream(read, key, params.id ?? '')
    if (typeof seen === 'string') return refusalReply(seen)
    return seen === null ? refusalReply('not_found') : { status: 200, json: formatStream(seen, inboundDomain) }
  }
}

/** PATCH /v1/streams/{id} */
export function makePatchStream(deps: StreamDeps): HandlerOf<'patchStream'> {
  return ({ key, params, body }) => {
    const asked = { streamId: params.id ?? '', changes: body }
    return orderStream(deps, key, { name: 'patch-stream', body: asked, status: 200 })
  }
}

/** POST /v1/streams/{id}/archive */
export function makeArchiveStream(deps: StreamDeps): HandlerOf<'archiveStream'> {
  return ({ key, params }) =>
    orderStream(deps, key, { name: 'archive-stream', body: { streamId: params.id ?? '' }, status: 200 })
}

/** The fields of an order other than its author. */
interface Asked {
  readonly streamId?: string
  readonly [field: string]: unknown
}

interface StreamOrder extends Order {
  readonly body: Asked
  readonly status: number
}

/** Asks the account's shard; the turn checks key and state. */
async function orderStream(deps: StreamDeps, owner: ServerKey, { name, body, status }: StreamOrder): Promise<Answer> {
  const { accountId, serverId, hash } = owner
  const shard = homeShard(accountId)
  const by: ServerKeyOrder = { accountId, serverId, keyHash: hash }
  const order = { name, body: { ...by, ...withOwnId(body, shard, serverId) } }
  const { reply, answer, refused } = await giveOrder<StreamReply>(deps, shard, order)
  if (refused?.code === 'invalid_request') return refusalReply('invalid_request', MISPLACED)
  return answer ?? { status, json: formatStream(reply.stream, deps.inboundDomain) }
}

/**
 * An id of another shard would name a key that does not exist here. The server's own id is used, which is never the id
 * of a stream.
 */
function withOwnId(body: Asked, shard: number, noStream: string): Asked {
  if (body.streamId === undefined) return body
  const id = body.streamId.toLowerCase()
  return { ...body, streamId: shardOf(id) === shard ? id : noStream }
}
