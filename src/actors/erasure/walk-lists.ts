/**
 * walk-lists - the suppression lists of a server, from which an erasure lifts no entry, but removes replies of
 * servers.
 *
 * An entry stays, under the HMAC of the address, and leads to the pseudonym. Its reply may name the person in a form
 * that is not recognizable as an address, so it is removed.
 *
 * Keys: `streams:<server>`, `suppressed:<stream>:<x>`
 *
 * Spec erasure.suppressions
 */

import type { Fact, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { streamsKey } from '../../state/keys.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { packSuppression, suppressedFacts, suppressedKeyOf, suppressionIn } from '../../state/suppression.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Streams of one step. */
const STEP_STREAMS = 100

/** One step. */
export function walkLists({ server, walk, place, states, facts, context }: ServerStep): StepResult {
  const { shard } = context
  const { hmac } = walk
  const fact = streamsFact(shard, server.serverId, place.after)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const ids = facts.sorted(fact).map(([streamId]) => streamId)
  const streamIds = ids.filter((streamId) => streamId > place.after)
  if (streamIds.length === 0) return OVER
  const refs = streamIds.map(streamRef)
  if (!refs.every((ref) => states.has(ref))) return { kind: 'need', entities: refs }
  const listed = streamIds.filter((id) => states.get<StreamState | null>(streamRef(id))?.hasSuppressions === true)
  const reads = listed.flatMap((streamId) => suppressedFacts(shard, streamId, [hmac]))
  if (!reads.every((read) => facts.has(read))) return { kind: 'need', facts: reads }
  const ops = listed.flatMap((streamId): Op[] => {
    const entry = suppressionIn(facts, shard, { streamId, hmac })
    if (entry === null || entry.response === null) return []
    const packed = packSuppression({ ...entry, response: null })
    return [{ key: suppressedKeyOf(shard, { streamId, hmac }), write: 'HSET', args: [hmac, packed] }]
  })
  const isMore = ids.length === STEP_STREAMS
  return {
    kind: 'stepped',
    place: isMore ? { ...place, after: streamIds.at(-1) as string } : null,
    staged: { ops },
  }
}

/** Ids of one millisecond rise, as the members of their set do. */
function streamsFact(shard: number, serverId: string, after: string): Fact & { read: 'sorted' } {
  const min = after === '' ? 0 : msOf(after)
  return { read: 'sorted', key: streamsKey(shard, serverId), min, max: Number.MAX_SAFE_INTEGER, count: STEP_STREAMS }
}
