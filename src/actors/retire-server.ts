/**
 * retire-server - archives the streams of a removed server, in small steps.
 *
 * Nobody can read them any more; an inbound one refuses mail to its address from then on.
 *
 * Spec server.remove, stream.archive
 */

import type { CommandType, Due, Fact, TimerBody } from '../../cluster/behaviour.ts'
import { streamsKey } from '../state/keys.ts'
import { TIMERS_LANE } from '../state/message/item.ts'
import { type StreamState, streamRef } from '../state/stream.ts'

export const RETIRE_TIMER = 'retire'

/** Streams of one step: more than are made within a millisecond. */
const STEP_STREAMS = 200

/** The next step: streams made at `fromMs` and later. */
export function retireDue(serverId: string, nowMs: number, fromMs = 0): Due {
  return { lane: TIMERS_LANE, item: `${RETIRE_TIMER}:${serverId}:${fromMs}`, atMs: nowMs }
}

export const retire: CommandType<TimerBody, null> = {
  name: 'retire',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [streamsFact(shard, body)],
  decide(body, states, facts, { shard, nowMs }) {
    const rows = facts.sorted(streamsFact(shard, body))
    const refs = rows.map(([streamId]) => streamRef(streamId))
    if (!refs.every((ref) => states.has(ref))) return { kind: 'need', entities: refs }
    const open = refs.filter((ref) => states.get<StreamState | null>(ref)?.archivedAtMs === null)
    const last = rows.at(-1)
    const isMore = last !== undefined && rows.length === STEP_STREAMS
    return {
      kind: 'done',
      reply: null,
      events: open.map((ref) => ({ ref, event: { type: 'archived', archivedAtMs: nowMs } })),
      due: isMore ? [retireDue(parse(body).serverId, nowMs, last[1])] : [],
    }
  },
}

function streamsFact(shard: number, body: TimerBody): Fact & { read: 'sorted' } {
  const { serverId, fromMs } = parse(body)
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: streamsKey(shard, serverId), min: fromMs, max, count: STEP_STREAMS }
}

function parse({ item }: TimerBody): { serverId: string; fromMs: number } {
  const [, serverId = '', fromMs = '0'] = item.split(':')
  return { serverId, fromMs: Number(fromMs) }
}
