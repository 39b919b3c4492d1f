/**
 * streams - POST /v1/operator/streams/{streamId}/pause and /resume, PATCH /v1/operator/streams/{streamId}
 *
 * Spec operator.stream, operator.note
 */

import { shardOf } from '../../../cluster/id.ts'
import type { StreamReply } from '../../actors/authorization/stream.ts'
import type { OperateStreamBody, StreamAct } from '../../actors/server/operate-stream.ts'
import type { Handler, HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { formatStream } from '../../views/stream.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorRequest } from '../as-operator.ts'
import type { StreamDeps } from '../streams.ts'

/** POST /v1/operator/streams/{streamId}/pause */
export function makePauseStream(deps: StreamDeps): HandlerOf<'pauseStream'> {
  return operate(deps, () => ({ act: 'pause' }))
}

/** POST /v1/operator/streams/{streamId}/resume */
export function makeResumeStream(deps: StreamDeps): HandlerOf<'resumeStream'> {
  return operate(deps, () => ({ act: 'resume' }))
}

/** PATCH /v1/operator/streams/{streamId} */
export function makePaceStream(deps: StreamDeps): HandlerOf<'paceStream'> {
  return operate(deps, (body) => ({ act: 'pace', pacePerMinute: body.pacePerMinute }))
}

function operate<Body>(deps: StreamDeps, orderOf: (body: Body) => StreamAct): Handler<OperatorRequest<Body>> {
  return asOperator(deps.read, async ({ params, body }, by) => {
    const streamId = (params.streamId ?? '').toLowerCase()
    const shard = shardOf(streamId)
    if (shard === null) return refusalReply('not_found')
    const asked: OperateStreamBody = { streamId, order: orderOf(body), by }
    const { reply, answer } = await giveOrder<StreamReply>(deps, shard, { name: 'operate-stream', body: asked })
    if (answer !== undefined) return answer
    const { stream } = reply
    const json = { ...formatStream(stream, deps.inboundDomain), pacePerMinute: stream.pacePerMinute ?? null }
    return { status: 200, json }
  })
}
