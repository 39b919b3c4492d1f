/**
 * broadcasts - POST and GET /v1/broadcasts, POST /v1/broadcasts/preview, GET /v1/broadcasts/{id}, POST
 * /v1/broadcasts/{id}/cancel, /pause, /resume
 *
 * Spec broadcast.create, broadcast.preview, broadcast.read, broadcast.list, broadcast.cancel, broadcast.pause
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import { MESSAGE_BYTES_MAX } from '../../schemas/limits.ts'
import type { Refused } from '../actors/authorization/refusal.ts'
import type { BroadcastAccepted } from '../actors/broadcast/create-broadcast.ts'
import type { BroadcastOrdered, OrderBroadcastBody } from '../actors/broadcast/order-broadcast.ts'
import type { HandlerOf, RequestOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { Metrics } from '../process/metrics.ts'
import { unpackHead } from '../state/message/head.ts'
import type { CapacityShortage } from '../store/memory-pressure.ts'
import { keyFact, ownerOfRow, type Reader } from '../views/key.ts'
import { formatBroadcast, listBroadcasts, readBroadcast, showMailbox } from '../views/message/broadcast.ts'
import { readStream } from '../views/stream.ts'
import { answerRefused, makeAnswer, parsePage } from './answer.ts'
import type { BroadcastReader } from './broadcast/broadcast-reader.ts'
import { type SubmitBroadcastDeps, submitBroadcast } from './broadcast/submit.ts'

/** Dependencies of the routes of broadcasts. */
export interface BroadcastDeps extends SubmitBroadcastDeps {
  readonly nowMs: () => number
  readonly broadcastReader: BroadcastReader
  readonly roomLack: () => CapacityShortage | null
  readonly metrics: Pick<Metrics, 'refused' | 'notTaken' | 'replayed'>
}

/** POST /v1/broadcasts. Spec broadcast.create */
export function makeCreateBroadcast(deps: BroadcastDeps): HandlerOf<'createBroadcast'> {
  return async (request) => {
    const lack = deps.roomLack()
    if (lack !== null) {
      deps.metrics.notTaken(lack)
      return refusalReply('unavailable')
    }
    const { key, pieces, idempotencyKey } = request
    const { hashKeys } = deps.secrets
    const { accountId, serverId } = key
    const job = { pieces: pieces.map(bufferOf), hashKeys, accountId, serverId }
    const read = await deps.broadcastReader.read(job)
    if (read === 'busy' || read === 'failed') return refusalReply(read === 'busy' ? 'unavailable' : 'internal_error')
    if (!read.ok)
      return (await keyRefusal(deps.read, request)) ?? refusalReply('invalid_request', { issues: read.issues })
    const { prepared, streamId } = read
    const result = await submitBroadcast(deps, { key, idempotencyKey, streamId, prepared })
    return makeAnswer<BroadcastAccepted | Refused>(result, (reply) => {
      if (reply.kind === 'refused') {
        deps.metrics.refused(reply.code)
        return answerRefused(reply, deps.nowMs())
      }
      if (reply.replayed) deps.metrics.replayed()
      const found = { state: reply.broadcast, progress: null }
      const json = formatBroadcast(found, unpackHead(prepared.head, 0), prepared.sender.address)
      return { status: 202, json, ...(reply.replayed && { headers: { 'Idempotent-Replayed': 'true' } }) }
    })
  }
}

/** POST /v1/broadcasts/preview: nothing is stored. Spec broadcast.preview */
export function makePreviewBroadcast(deps: BroadcastDeps): HandlerOf<'previewBroadcast'> {
  return async (request) => {
    const { key, pieces } = request
    const { accountId, serverId } = key
    const job = { pieces: pieces.map(bufferOf), hashKeys: deps.secrets.hashKeys, accountId, serverId }
    const read = await deps.broadcastReader.preview(job)
    if (read === 'busy' || read === 'failed') return refusalReply(read === 'busy' ? 'unavailable' : 'internal_error')
    if (!read.ok)
      return (await keyRefusal(deps.read, request)) ?? refusalReply('invalid_request', { issues: read.issues })
    const stream = await readStream(deps.read, key, read.streamId)
    if (typeof stream === 'string') return refusalReply(stream)
    if (stream === null) return refusalReply('stream_not_found')
    if (stream.kind !== 'broadcast') return refusalReply('stream_kind_not_allowed')
    const { from, to, ...message } = read.message
    const { sizeBytes } = message
    if (sizeBytes > MESSAGE_BYTES_MAX) return refusalReply('message_too_large', { sizeBytes, max: MESSAGE_BYTES_MAX })
    const json = { index: read.index, from: showMailbox(from), to: showMailbox(to), ...message }
    return { status: 200, json }
  }
}

/** GET /v1/broadcasts */
export function makeListBroadcasts({ read }: BroadcastDeps): HandlerOf<'listBroadcasts'> {
  return async ({ key, query }) => {
    const { streamId, status = null } = query
    const filter = { streamId: streamId?.toLowerCase() ?? null, status }
    const seen = await listBroadcasts(read, key, { ...parsePage(query), filter })
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** GET /v1/broadcasts/{id} */
export function makeReadBroadcast({ read }: BroadcastDeps): HandlerOf<'readBroadcast'> {
  return async ({ key, params }) => {
    const seen = await readBroadcast(read, key, params.id ?? '')
    if (typeof seen === 'string') return refusalReply(seen)
    return seen === null ? refusalReply('not_found') : { status: 200, json: seen }
  }
}

type OrderRequest = RequestOf<'cancelBroadcast' | 'pauseBroadcast' | 'resumeBroadcast'>

/** POST /v1/broadcasts/{id}/cancel, /pause, /resume. */
export function makeOrderBroadcast(
  deps: BroadcastDeps,
  order: OrderBroadcastBody['order'],
): (request: OrderRequest) => Promise<Answer> {
  return async ({ key, params }) => {
    const { accountId, serverId, hash } = key
    const shard = homeShard(accountId)
    const id = (params.id ?? '').toLowerCase()
    // The content does not change, so it is read first, and the answer needs no read after the order is done.
    const before = await readBroadcast(deps.read, key, id)
    if (typeof before === 'string') return refusalReply(before)
    // An id of another shard would name a key that does not exist here. The server's own id is used, which is never
    // the id of a broadcast.
    const broadcastId = shardOf(id) === shard ? id : serverId
    const body: OrderBroadcastBody = { accountId, serverId, keyHash: hash, broadcastId, order }
    const result = await deps.ask(shard, { name: 'order-broadcast', cmdId: deps.newCmdId(), body })
    return makeAnswer<BroadcastOrdered | Refused>(result, (reply) => {
      if (reply.kind === 'refused') return answerRefused(reply, deps.nowMs())
      const after = formatBroadcast({ state: reply.broadcast, progress: reply.progress }, null, before?.from ?? '')
      const said = before === null ? {} : { subject: before.subject, tag: before.tag, metadata: before.metadata }
      return { status: 200, json: { ...after, ...said } }
    })
  }
}

/** A revoked key gets only that refusal, not the issues of its body. Spec key.revoke */
async function keyRefusal(
  read: Reader,
  { key }: RequestOf<'createBroadcast' | 'previewBroadcast'>,
): Promise<Answer | null> {
  const seen = await read(homeShard(key.accountId), [keyFact(homeShard(key.accountId), key.hash)])
  if (seen === null) return refusalReply('unavailable')
  return ownerOfRow(key.hash, seen[0]) === null ? refusalReply('unauthorized') : null
}

/** Each piece has its own copy, so its buffer has no other data. */
function bufferOf({ buffer }: Buffer): ArrayBuffer {
  return buffer as ArrayBuffer
}
