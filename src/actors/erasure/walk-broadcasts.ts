/**
 * walk-broadcasts - the broadcasts of a server: erased persons are removed from them, and those sent by one are
 * cancelled.
 *
 * The bucket of an open one that may hold the person is rewritten without the person, who counts as failed; one from
 * the person is cancelled, and its shared content is removed, also of an ended one. Until then the release skips the
 * person (`release-broadcast.ts`).
 *
 * Keys: `broadcasts:<server>`, `content:<contentId>:r<k>`, `:head`, `:body`, `:a<k>`
 *
 * Spec erasure.broadcasts
 */

import type { Fact, Need, Op, Staged } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import {
  type BroadcastState,
  broadcastEndsAtMs,
  broadcastOwner,
  broadcastRef,
  isOpenBroadcast,
  NO_PROGRESS,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { bucketOf, bucketPart, packBucket, unpackBucket } from '../../state/broadcast/content.ts'
import { stepNote } from '../../state/broadcast/note.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { broadcastsKey, contentKey } from '../../state/keys.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'
import { endWrites, runningFact, stepDue } from '../broadcast/running.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Broadcasts of one step. */
const STEP_BROADCASTS = 50

/** Maximum broadcasts of a step that may hold the person, because a bucket has 128 KB. */
const STEP_SUSPECTS = 4

/** One step: it ends with the first broadcast that it writes something of, or the last suspect. */
export function walkBroadcasts(step: ServerStep): StepResult {
  const { erasureId, server, walk, place, states, facts, context } = step
  const fact = broadcastsFact(context.shard, server.serverId, step)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const all = facts.sorted(fact).map(([broadcastId]) => broadcastId)
  // Broadcasts submitted after the order are later mail.
  const ids = all.filter((id) => id > place.after && id < erasureId)
  if (ids.length === 0) return OVER
  const refs = ids.map(broadcastRef)
  if (!refs.every((ref) => states.has(ref))) return { kind: 'need', entities: refs }
  const isFrom = ({ senderHmac }: BroadcastState) => senderHmac === walk.hmac
  const suspects = ids
    .flatMap((id) => states.get<BroadcastState | null>(broadcastRef(id)) ?? [])
    .filter((broadcast) => isFrom(broadcast) || isOpenBroadcast(broadcast))
    .slice(0, STEP_SUSPECTS)
  const asked = suspects.map((one) => (isFrom(one) ? endBroadcast(step, one) : leaveOut(step, one)))
  const needs = asked.filter((one): one is Need => one !== null && 'kind' in one)
  if (needs.length > 0) return allNeeds(needs)
  const at = asked.findIndex((one) => one !== null)
  const writes = at < 0 ? null : (asked[at] as Staged)
  const looked = at < 0 ? suspects.length : at + 1
  const isLast = looked < suspects.length || suspects.length === STEP_SUSPECTS
  const last = isLast ? suspects[looked - 1]?.broadcastId : all.length === STEP_BROADCASTS ? ids.at(-1) : undefined
  return {
    kind: 'stepped',
    place: last === undefined ? null : { ...place, after: last },
    ...(writes !== null && { staged: writes }),
  }
}

/** One round of reading for all. */
function allNeeds(needs: readonly Need[]): Need {
  return {
    kind: 'need',
    facts: needs.flatMap(({ facts }) => facts ?? []),
    counters: needs.flatMap(({ counters }) => counters ?? []),
  }
}

function broadcastsFact(
  shard: number,
  serverId: string,
  { place, erasureId }: Pick<ServerStep, 'place' | 'erasureId'>,
): Fact & { read: 'sorted' } {
  const min = place.after === '' ? 0 : msOf(place.after)
  return { read: 'sorted', key: broadcastsKey(shard, serverId), min, max: msOf(erasureId), count: STEP_BROADCASTS }
}

/** One from the person: cancelled if it is open, and its content is removed. */
function endBroadcast(step: ServerStep, broadcast: BroadcastState): Staged | Need {
  const { states, facts, context } = step
  const { shard, nowMs } = context
  const { broadcastId, serverId, streamId, contentId, parts } = broadcast
  const gone = parts.flatMap(({ part, chunks }) =>
    Array.from({ length: chunks }, (_, chunk): Op => {
      return { key: contentKey(shard, contentId, part, chunk), write: 'UNLINK', args: [] }
    }),
  )
  if (!isOpenBroadcast(broadcast)) return { ops: gone }
  const running = runningFact(shard, streamId)
  const [owner, serverCounts] = [broadcastOwner(broadcastId), serverOwner(serverId)]
  if (!facts.has(running) || !states.hasCounter(owner) || !states.hasCounter(serverCounts))
    return { kind: 'need', facts: [running], counters: [owner, serverCounts] }
  const { ended: _, ...writes } = endWrites(broadcast, {
    status: 'cancelled',
    progress: states.counter<Progress>(owner) ?? NO_PROGRESS,
    running: facts.sorted(running),
    serverCounters: states.counter<ServerCounters>(serverCounts),
    shard,
    nowMs,
  })
  // An expiry needs an existing key, so it comes before the removal.
  return { ...writes, ops: [...writes.ops, ...gone], due: [...writes.due, stepDue(streamId, nowMs)] }
}

/** Removes the person from the bucket of an open broadcast; null if the person is in none. */
function leaveOut(step: ServerStep, broadcast: BroadcastState): Staged | Need | null {
  const { walk, states, facts, context } = step
  const { shard } = context
  const { broadcastId, contentId, buckets } = broadcast
  const owner = broadcastOwner(broadcastId)
  const bucket = bucketOf(walk.hmac, buckets)
  const key = contentKey(shard, contentId, bucketPart(bucket), 0)
  const fact: Fact = { read: 'value', key }
  if (!facts.has(fact) || !states.hasCounter(owner)) return { kind: 'need', facts: [fact], counters: [owner] }
  const text = facts.value(key)
  const rows = text === null ? [] : unpackBucket(text)
  const left = rows.filter(({ hmac }) => hmac !== walk.hmac)
  if (left.length === rows.length) return null
  const progress = states.counter<Progress>(owner) ?? NO_PROGRESS
  const expiresAtMs = broadcastEndsAtMs(broadcast) + DAY_MS
  const ops: Op[] = [{ key, write: 'SET', args: [packBucket(left), 'PXAT', String(expiresAtMs)] }]
  // Whose turn has come is in the log, or was left out and counted then.
  const waits = bucket > progress.bucket || (bucket === progress.bucket && walk.hmac > progress.after)
  if (!waits) return { ops }
  const after = { ...progress, failed: progress.failed + 1 }
  return { ops, counters: [{ owner, value: after }], notes: [stepNote(broadcast, { before: progress, after })] }
}
