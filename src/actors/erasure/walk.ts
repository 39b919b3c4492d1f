/**
 * walk - carries erasures out, one step after the other, each its own commit.
 *
 * First the content of commands whose behaviour threw is removed; then, server by server, including removed servers,
 * whose data is kept: suppression lists, broadcasts, the log, received mail, and answers of webhooks. The position of
 * the walk is in the counters of the erasure, written by the commit of each step, so that a crash repeats no count and
 * skips nothing. Once everything is walked, and every required header read, the erasure is done, and the account's next
 * one begins.
 *
 * Keys: erasures, erasing, erased, servers, removed, unborne, staged
 *
 * Spec erasure.states, erasure.servers
 */

import type {
  CommandType,
  Context,
  Decision,
  Done,
  Fact,
  Facts,
  Op,
  States,
  TimerBody,
} from '../../../cluster/behaviour.ts'
import { entityKey, stagedKey, unborneKey } from '../../../cluster/keyspace.ts'
import { DAY_MS } from '../../state/calendar.ts'
import {
  countErasedOp,
  ERASURE_READABLE_MS,
  type ErasureState,
  type ErasuresCounters,
  type ErasureWalk,
  eraseDue,
  erasedFact,
  erasureOfTimer,
  erasureOwner,
  erasureRef,
  erasuresOwner,
  nextPhase,
  SERVER_PHASES,
  type ServerPhase,
  WALK_BEGIN,
  type WalkPlace,
  waitsForLooks,
} from '../../state/erasure.ts'
import { erasingKey, erasuresKey, removedServersKey, serversKey } from '../../state/keys.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import type { ServerStep, Stepped, StepResult } from './step.ts'
import { walkBroadcasts } from './walk-broadcasts.ts'
import { walkLists } from './walk-lists.ts'
import { logStepFacts, walkLog } from './walk-log.ts'
import { walkPosts } from './walk-posts.ts'
import { receivedStepFacts, walkReceived } from './walk-received.ts'

/** Servers of a list read to find the next one: all of one millisecond, and one more. */
const SERVERS_LOOKED_AT = 16
/** Commands whose content is removed in one step. */
const STEP_UNBORNE = 500
const NOTHING: Done<null> = { kind: 'done', reply: null }

type SortedFact = Fact & { readonly read: 'sorted' }

const PHASES: Readonly<Record<ServerPhase, (step: ServerStep) => StepResult>> = {
  lists: walkLists,
  broadcasts: walkBroadcasts,
  log: walkLog,
  received: walkReceived,
  posts: walkPosts,
}

/** A step of an erasure. */
interface Turn {
  readonly accountId: string
  readonly erasureId: string
  readonly walk: ErasureWalk
  readonly states: States
  readonly facts: Facts
  readonly context: Context
}

export const walkErasure: CommandType<TimerBody, null> = {
  name: 'walk-erasure',
  frees: true,
  entities: ({ item }) => [erasureRef(erasureOfTimer(item).erasureId)],
  counters({ item }) {
    const { accountId, erasureId } = erasureOfTimer(item)
    return [erasureOwner(erasureId), erasuresOwner(accountId)]
  },
  facts({ item }, states, { shard }): readonly Fact[] {
    const { erasureId } = erasureOfTimer(item)
    const walk = states.counter<ErasureWalk>(erasureOwner(erasureId))
    if (walk?.place == null) return []
    const { place } = walk
    if (place.phase === 'log') return logStepFacts(shard, { erasureId, walk, place })
    return place.phase === 'received' ? receivedStepFacts(shard, { erasureId, place }) : []
  },
  decide({ item }, states, facts, context): Decision<null> {
    const { accountId, erasureId } = erasureOfTimer(item)
    const walk = states.counter<ErasureWalk>(erasureOwner(erasureId))
    if (walk === null) return NOTHING
    const turn: Turn = { accountId, erasureId, walk, states, facts, context }
    // The last check resumes the walk.
    if (waitsForLooks(walk)) return NOTHING
    if (walk.place === null) return finish(turn)
    const result = stepAt(turn, walk.place)
    return result.kind === 'need' ? result : written(turn, result)
  },
}

function stepAt(turn: Turn, place: WalkPlace): StepResult {
  const { phase } = place
  if (phase === 'unborne') return forgetUnborne(turn, place)
  if (phase === 'seek') return nextServer(turn, place)
  const { states } = turn
  const ref = serverRef(place.serverId)
  if (!states.has(ref)) return { kind: 'need', entities: [ref] }
  const server = states.get<ServerState | null>(ref)
  // It was removed in the meantime, with all its data.
  if (server === null) return { kind: 'stepped', place: { ...place, phase: 'seek' } }
  const result = PHASES[phase]({ ...turn, server, place })
  return result.kind === 'need' || result.place !== null ? result : { ...result, place: nextPhase(place) }
}

function nextServer({ accountId, facts, context }: Turn, place: WalkPlace): StepResult {
  const { shard } = context
  const { list, serverId: before, serverMs: beforeMs } = place
  const key = list === 'servers' ? serversKey(shard, accountId) : removedServersKey(shard, accountId)
  const min = Math.max(0, beforeMs)
  const fact: SortedFact = { read: 'sorted', key, min, max: Number.MAX_SAFE_INTEGER, count: SERVERS_LOOKED_AT }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const found = facts.sorted(fact).find(([id, ms]) => ms > beforeMs || id > before)
  if (found !== undefined) {
    const [serverId, serverMs] = found
    return { kind: 'stepped', place: { ...WALK_BEGIN, phase: SERVER_PHASES[0], list, serverId, serverMs } }
  }
  if (list === 'removed') return { kind: 'stepped', place: null }
  return { kind: 'stepped', place: { ...WALK_BEGIN, phase: 'seek', list: 'removed' } }
}

/** Removes the content of commands whose behaviour threw, because it may be anyone's data. */
function forgetUnborne({ facts, context }: Turn, place: WalkPlace): StepResult {
  const { shard, nowMs } = context
  const days = [nowMs - DAY_MS, nowMs].map((ms) => unborneFact(shard, Math.floor(ms / DAY_MS)))
  if (!days.every((fact) => facts.has(fact))) return { kind: 'need', facts: days }
  const ops: Op[] = days.flatMap((fact): Op[] => {
    const ids = facts.sorted(fact).map(([cmdId]) => cmdId)
    if (ids.length === 0) return []
    const said = ids.map((cmdId): Op => ({ key: stagedKey(shard, cmdId), write: 'UNLINK', args: [] }))
    return [...said, { key: fact.key, write: 'ZREM', args: ids }]
  })
  const isMore = days.some((fact) => facts.sorted(fact).length === STEP_UNBORNE)
  return { kind: 'stepped', place: isMore ? place : nextPhase(place), staged: { ops } }
}

function unborneFact(shard: number, day: number): SortedFact {
  return { read: 'sorted', key: unborneKey(shard, day), min: 0, max: Number.MAX_SAFE_INTEGER, count: STEP_UNBORNE }
}

/** The writes of a step, with the new position of the walk. */
function written({ accountId, erasureId, walk, context }: Turn, result: Stepped): Done<null> {
  const { staged = {}, messages = 0, receivedMessages = 0, looks = 0 } = result
  const after: ErasureWalk = {
    ...walk,
    messages: walk.messages + messages,
    receivedMessages: walk.receivedMessages + receivedMessages,
    looks: walk.looks + looks,
    place: result.place,
  }
  return {
    ...NOTHING,
    ...staged,
    counters: [...(staged.counters ?? []), { owner: erasureOwner(erasureId), value: after }],
    due: [...(staged.due ?? []), eraseDue({ accountId, erasureId }, context.nowMs)],
  }
}

/** The end of an erasure, and the beginning of the account's next one. */
function finish(turn: Turn): Decision<null> {
  const { accountId, erasureId, walk, states, facts, context } = turn
  const { shard, nowMs } = context
  const { hmac, pseudonym, messages, receivedMessages } = walk
  const queue: SortedFact = {
    read: 'sorted',
    key: erasuresKey(shard, accountId),
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    count: SERVERS_LOOKED_AT,
  }
  const erasing: Fact = { read: 'fields', key: erasingKey(shard, accountId), fields: [hmac] }
  const reads = [queue, erasing, erasedFact(shard)]
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const open = (states.counter<ErasuresCounters>(erasuresOwner(accountId))?.open ?? 1) - 1
  const next = facts.sorted(queue).find(([id]) => id !== erasureId)?.[0]
  const erasure = states.get<ErasureState | null>(erasureRef(erasureId))
  const ops: Op[] = [{ key: erasuresKey(shard, accountId), write: 'ZREM', args: [erasureId] }]
  // A later one of the same address is still to come.
  if (facts.field(erasing.key, hmac) === erasureId) ops.push({ key: erasing.key, write: 'HDEL', args: [hmac] })
  ops.push(
    { key: entityKey(shard, 'erasure', erasureId), write: 'PEXPIREAT', args: [String(nowMs + ERASURE_READABLE_MS)] },
    countErasedOp(facts, shard, (before) => ({
      done: before.done + 1,
      messages: before.messages + messages,
      received: before.received + receivedMessages,
      ms: nowMs,
    })),
  )
  return {
    ...NOTHING,
    events:
      erasure === null
        ? []
        : [
            {
              ref: erasureRef(erasureId),
              event: { type: 'done', completedAtMs: nowMs, pseudonym, messages, receivedMessages },
            },
          ],
    ops,
    counters: [
      { owner: erasureOwner(erasureId), value: null },
      { owner: erasuresOwner(accountId), value: open > 0 ? { open } : null },
    ],
    due: next === undefined ? [] : [eraseDue({ accountId, erasureId: next }, nowMs)],
  }
}
