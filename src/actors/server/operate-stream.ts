/**
 * operate-stream - an operator's actions on a stream: pause, resume, pace.
 *
 * A repeated order is answered with the current state. Resuming removes the counters of complaints, so that their
 * window restarts.
 *
 * Spec operator.stream, stream.brake
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { auditOps, computeDifference, type OperatorAct } from '../../state/audit.ts'
import { streamOwner } from '../../state/complaint-threshold.ts'
import { type StreamEvent, type StreamState, streamEntity, streamRef } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import type { StreamReply } from '../authorization/stream.ts'
import { stepDue } from '../broadcast/running.ts'

/** Pace: messages a minute of its broadcasts, null for the default. */
export type StreamAct =
  | { readonly act: 'pause' }
  | { readonly act: 'resume' }
  | { readonly act: 'pace'; readonly pacePerMinute: number | null }

export interface OperateStreamBody {
  readonly streamId: string
  readonly order: StreamAct
  readonly by: OperatorAct
}

export const operateStream: CommandType<OperateStreamBody, StreamReply | Refused> = {
  name: 'operate-stream',
  entities: ({ streamId }) => [streamRef(streamId)],
  counters: () => [],
  facts: () => [],
  decide({ streamId, order, by }, states, _facts, context) {
    const ref = streamRef(streamId)
    const stream = states.get<StreamState | null>(ref)
    if (stream === null) return refuse('not_found')
    const event = decideEvent(order, stream, context.nowMs)
    const after = event === null ? stream : (streamEntity.apply(stream, event) as StreamState)
    return {
      kind: 'done',
      reply: { kind: 'stream', stream: after },
      events: event === null ? [] : [{ ref, event }],
      counters: event?.type === 'resumed' ? [{ owner: streamOwner(streamId), value: {} }] : [],
      // Its broadcasts wait for this.
      due: event?.type === 'resumed' ? [stepDue(streamId, context.nowMs)] : [],
      ops: auditOps(context, by, { targets: { streamId }, ...computeDifference(stream, after) }),
    }
  },
}

/** The event of the order; null if nothing changes. */
function decideEvent(order: StreamAct, stream: StreamState, nowMs: number): StreamEvent | null {
  if (order.act === 'pause') return stream.pausedAtMs === null ? { type: 'paused', pausedAtMs: nowMs } : null
  if (order.act === 'resume') return stream.pausedAtMs === null ? null : { type: 'resumed' }
  const { pacePerMinute } = order
  return pacePerMinute === (stream.pacePerMinute ?? null) ? null : { type: 'paced', pacePerMinute }
}
