/**
 * release-broadcast - one step of a stream's broadcasts: some messages of the one whose turn it is enter the log.
 *
 * A step reads the bucket, the persons and the list that it needs, and writes all its messages, the cursor, the
 * counters and the next step in one commit, so a crash cannot release a message twice or skip one. If the stream is
 * held (by its pause, a held account, an unusable domain), the step writes nothing and places no timer; the order that
 * ends the hold places one. Persons being erased are left out, and count as failed.
 *
 * Guarantees: `released + failed = total` at the end in every case; releases never exceed the pace, and there is no
 * burst after a stop.
 *
 * Keys: running, broadcasting, content, log, head, status, segments, person
 *
 * Spec broadcast.release, broadcast.fair, broadcast.pace, broadcast.late, broadcast.ends
 */

import type {
  CommandType,
  Context,
  Decision,
  Done,
  Fact,
  Facts,
  Note,
  States,
  TimerBody,
} from '../../../cluster/behaviour.ts'
import { PACE_PER_MINUTE_DEFAULT } from '../../../schemas/limits.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import {
  type BroadcastState,
  broadcastEndsAtMs,
  broadcastOwner,
  broadcastRef,
  isOpenBroadcast,
  isScheduled,
  NO_PROGRESS,
  type Progress,
} from '../../state/broadcast/broadcast.ts'
import { type BucketRow, bucketPart, unpackBucket } from '../../state/broadcast/content.ts'
import { stepNote } from '../../state/broadcast/note.ts'
import { type StreamCounters, streamOwner } from '../../state/complaint-threshold.ts'
import { sendingFields, sendingRow } from '../../state/domain.ts'
import { erasingFact, isErasedFrom } from '../../state/erasure.ts'
import { contentKey, runningKey, sendingKey } from '../../state/keys.ts'
import { suppressedNotes } from '../../state/message/end.ts'
import { statsFact, statsOps } from '../../state/message/stats-rows.ts'
import { keyOfNumber } from '../../state/person/buckets.ts'
import { addressFact, addressOfRow, personFacts } from '../../state/person/person.ts'
import { type ServerCounters, serverOwner, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { suppressedFacts } from '../../state/suppression.ts'
import { eventLogOwner } from '../../state/webhook/event-log.ts'
import { acceptedSignals, announced, announceMessages } from '../webhook/announce.ts'
import { Released } from './released.ts'
import { BROADCAST_TIMER, endWrites, runningFact, stepDue } from './running.ts'

/** Maximum messages of one step. A step is one commit. */
const STEP_MESSAGES = 50
const MINUTE_MS = 60_000
/** Maximum delay of a step before its stream's schedule restarts, so that no burst follows a stop. */
const LATE_MS_MAX = 1000

const NOTHING: Done<null> = { kind: 'done', reply: null }

/** Facts read by a step. */
interface Step {
  readonly broadcast: BroadcastState
  readonly stream: StreamState
  /** Turn of the broadcast among those of its stream. */
  readonly turn: number
  readonly running: readonly (readonly [string, number])[]
  readonly progress: Progress
  readonly states: States
  readonly facts: Facts
  readonly context: Context
  readonly cmdId: string
}

export const releaseBroadcast: CommandType<TimerBody, null> = {
  name: 'release-broadcast',
  entities: (body) => [streamRef(streamOf(body))],
  counters: (body) => [streamOwner(streamOf(body))],
  facts: (body, _states, { shard }) => [runningFact(shard, streamOf(body))],
  decide(body, states, facts, context, command): Decision<null> {
    const streamId = streamOf(body)
    const stream = states.get<StreamState | null>(streamRef(streamId))
    const running = facts.sorted(runningFact(context.shard, streamId))
    const [broadcastId, turn] = running[0] ?? ['', 0]
    if (stream === null || broadcastId === '') return NOTHING
    const [ref, owner] = [broadcastRef(broadcastId), broadcastOwner(broadcastId)]
    const server = serverRef(stream.serverId)
    const owners = [owner, serverOwner(stream.serverId), eventLogOwner(stream.serverId)]
    if (!states.has(ref) || !states.has(server) || !owners.every((one) => states.hasCounter(one)))
      return { kind: 'need', entities: [ref, server], counters: owners }
    const broadcast = states.get<BroadcastState | null>(ref)
    if (broadcast === null || !isOpenBroadcast(broadcast)) return forget(broadcastId, { streamId, context })
    const progress = states.counter<Progress>(owner) ?? NO_PROGRESS
    return step({ broadcast, stream, turn, running, progress, states, facts, context, cmdId: command.cmdId })
  },
}

function streamOf({ item }: TimerBody): string {
  return item.slice(BROADCAST_TIMER.length + 1)
}

/** An entry without an open broadcast is removed. */
function forget(broadcastId: string, of: { streamId: string; context: Context }): Done<null> {
  const { streamId, context } = of
  const op = { key: runningKey(context.shard, streamId), write: 'ZREM', args: [broadcastId] } as const
  return { ...NOTHING, ops: [op], due: [stepDue(streamId, context.nowMs)] }
}

function step(found: Step): Decision<null> {
  const { broadcast, stream, states, facts, context, progress } = found
  const { accountId, contentId, sender, senderDomain } = broadcast
  const { shard, nowMs } = context
  const owner = accountRef(accountId)
  const bucket: Fact = { read: 'value', key: contentKey(shard, contentId, bucketPart(progress.bucket), 0) }
  const from = addressFact(shard, accountId, sender)
  const fields = sendingFields(senderDomain, broadcast.test)
  const sending: Fact = { read: 'fields', key: sendingKey(shard, accountId), fields }
  const reads = [bucket, from, sending]
  if (!states.has(owner) || !reads.every((fact) => facts.has(fact)))
    return { kind: 'need', entities: [owner], facts: reads }
  const account = states.get<AccountState | null>(owner)
  if (account === null) return NOTHING
  if (account.status === 'closed') return end(found, 'cancelled')
  // Spec account.hold
  if (account.held || stream.pausedAtMs !== null || broadcast.pausedAtMs !== null) return NOTHING
  // Spec broadcast.at
  if (isScheduled(broadcast, nowMs)) return NOTHING
  if (nowMs >= broadcastEndsAtMs(broadcast)) return end(found, 'completed')
  const needsDomain = !broadcast.test || senderDomain !== SIMULATOR_DOMAIN
  const isUsed = { domain: senderDomain, isTest: broadcast.test }
  if (needsDomain && sendingRow(facts, sending.key, isUsed) === null) return NOTHING
  const row = facts.field(keyOfNumber(shard, accountId, sender), String(sender))
  const text = facts.value(bucket.key)
  const rows = text === null ? [] : unpackBucket(text, progress.after)
  return release(found, { rows, address: row === null ? '' : addressOfRow(row) })
}

/** The next messages of a bucket, and the step after them. */
function release(found: Step, { rows, address }: { rows: readonly BucketRow[]; address: string }): Decision<null> {
  const { broadcast, stream, states, facts, context, progress } = found
  const { accountId, senderHmac, broadcastId } = broadcast
  const { shard, nowMs } = context
  const pace = stream.pacePerMinute ?? PACE_PER_MINUTE_DEFAULT
  const next = rows.slice(0, Math.max(1, Math.min(STEP_MESSAGES, Math.floor(pace / 60))))
  const hmacs = next.map(({ hmac }) => hmac)
  const reads = personFacts({ shard, accountId }, [...hmacs, senderHmac])
  reads.push(erasingFact(shard, accountId, [...hmacs, senderHmac]))
  if (stream.hasSuppressions === true) reads.push(...suppressedFacts(shard, stream.streamId, hmacs))
  const missing = reads.filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const isErased = (hmac: string) => isErasedFrom(facts, { shard, accountId, hmac, id: broadcastId })
  // The erasure cancels it, and wakes its stream.
  if (isErased(senderHmac)) return NOTHING
  const serverCounters = states.counter<ServerCounters>(serverOwner(broadcast.serverId))
  const released = new Released({ broadcast, stream, facts, context, cmdId: found.cmdId, address }, serverCounters)
  const kept = next.filter(({ hmac }) => !isErased(hmac))
  for (const row of kept) released.add(row)
  const { ended } = released.hour
  const stats = { shard, serverId: broadcast.serverId }
  if (ended !== null && !facts.has(statsFact(stats, ended))) return { kind: 'need', facts: [statsFact(stats, ended)] }
  const isBucketDone = next.length === rows.length
  const after: Progress = {
    released: progress.released + released.open,
    failed: progress.failed + released.suppressed + next.length - kept.length,
    bucket: isBucketDone ? progress.bucket + 1 : progress.bucket,
    after: isBucketDone ? '' : (hmacs.at(-1) ?? progress.after),
  }
  const done = written(found, { released, after, next: next.length, pace })
  if (released.news.length === 0) return done
  const counters = new Map((done.counters ?? []).map(({ owner, value }) => [owner, value]))
  const seen: States = {
    get: (ref) => states.get(ref),
    has: (ref) => states.has(ref),
    hasCounter: (owner) => states.hasCounter(owner),
    counter: (owner) => (counters.get(owner) ?? states.counter(owner)) as never,
  }
  const streamIds = released.news.map(() => stream.streamId)
  const news = { serverId: broadcast.serverId, news: released.news, streamIds, labels: released.labels }
  const told = announceMessages(news, { states: seen, facts, context: { ...context, nowMs } })
  const notes = [...(done.notes ?? []), ...suppressedNotes(released.news)]
  return told.kind === 'need' ? told : announced({ ...done, notes }, told.staged)
}

/** All writes of a step. */
function written(
  found: Step,
  of: { readonly released: Released; readonly after: Progress; readonly next: number; readonly pace: number },
): Done<null> {
  const { broadcast, turn, running, progress, states, context } = found
  const { released, after, next, pace } = of
  const { shard, nowMs } = context
  const { streamId, broadcastId } = broadcast
  const streamCounters = states.counter<StreamCounters>(streamOwner(streamId))
  const planned = Math.max(streamCounters?.nextMs ?? 0, nowMs - LATE_MS_MAX)
  const nextMs = planned + (next * MINUTE_MS) / pace
  const ops = released.finish()
  const { ended } = released.hour
  if (ended !== null) ops.push(...statsOps(found.facts, { shard, serverId: broadcast.serverId }, ended))
  if (after.bucket > progress.bucket)
    ops.push({ key: contentKey(shard, broadcast.contentId, bucketPart(progress.bucket), 0), write: 'UNLINK', args: [] })
  const counters = [
    { owner: streamOwner(streamId), value: { ...streamCounters, nextMs } },
    { owner: serverOwner(broadcast.serverId), value: released.serverCounters as unknown },
    { owner: broadcastOwner(broadcastId), value: after as unknown },
  ]
  const due = [...released.due, stepDue(streamId, Math.max(nowMs, nextMs))]
  const notes: Note[] = [stepNote(broadcast, { before: progress, after })]
  const before = states.counter<ServerCounters>(serverOwner(broadcast.serverId))
  const signals = acceptedSignals(broadcast.serverId, released.messageIds, { counters: before, nowMs })
  const begun = broadcast.status === 'accepted' && after.released > 0
  const events = begun ? [{ ref: broadcastRef(broadcastId), event: { type: 'begun' } as unknown }] : []
  if (after.bucket < broadcast.buckets) {
    ops.push({ key: runningKey(shard, streamId), write: 'ZADD', args: [String(turn + next), broadcastId] })
    return { ...NOTHING, ops, counters, due, events, notes, absent: released.absent, signals }
  }
  const serverCounters = released.serverCounters
  const ending = endWrites(broadcast, { status: 'completed', progress: after, running, serverCounters, shard, nowMs })
  return {
    ...NOTHING,
    ops: [...ops, ...ending.ops],
    counters: [...counters.slice(0, 1), ...ending.counters],
    events: [...events, ...ending.events],
    done: ending.done,
    due: [...due, ...ending.due],
    notes: [...notes, ...ending.notes],
    absent: released.absent,
    signals,
  }
}

/** Ends the broadcast, whose remaining messages are never released. */
function end(found: Step, status: 'completed' | 'cancelled'): Done<null> {
  const { broadcast, running, progress, states, context } = found
  const { shard, nowMs } = context
  const serverCounters = states.counter<ServerCounters>(serverOwner(broadcast.serverId))
  const of = { status, progress, running, serverCounters, shard, nowMs }
  const { ended: _, due, ...writes } = endWrites(broadcast, of)
  return { ...NOTHING, ...writes, due: [...due, stepDue(broadcast.streamId, nowMs)] }
}
