/**
 * look - received mail whose header has to be read to know whether it names the person being erased.
 *
 * States of an item: placed by the walk -> looked; if the content store did not answer, again after a second, two,
 * four, up to a minute; the erasure stays pending. A mail without an answer after five claims is erased. Guarantees:
 * each is counted once, and the last one resumes the waiting walk.
 *
 * Lane: `look/<account>`, item `<erasure id>.<server short>.<segment>.<message short>`
 *
 * Spec erasure.received
 */

import type { CommandType, Decision, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { MINUTE_MS } from '../../state/calendar.ts'
import { type ErasureWalk, eraseDue, erasureOwner, waitsForLooks, withTold } from '../../state/erasure.ts'
import type { ContentHead } from '../../state/received/content-head.ts'
import { accountOfLookLane, readLookItem } from '../../state/received/look-item.ts'
import type { ReceivedPlace } from '../../state/received/parse-item.ts'
import { rowFacts, rowsIn } from '../inbound/rows.ts'
import { eraseReceived, toldOfReceived } from './erased-received.ts'

/** A mail whose header must be read, and the HMAC of the erased address. */
export interface LookJob extends ReceivedPlace {
  readonly accountId: string
  readonly hmac: string
  readonly sizeBytes: number
  readonly head: ContentHead
}

/** Whether the header names the address; `away` if the content store did not answer. */
export interface LookOutcome {
  readonly result: 'named' | 'not named' | 'away'
}

const SECOND_MS = 1000

export const prepareLook: CommandType<PrepareBody, LookJob | null> = {
  name: 'prepare look',
  frees: true,
  entities: () => [],
  counters: ({ item }) => [erasureOwner(readLookItem(item).erasureId)],
  facts: ({ item }, _states, { shard }) => rowFacts(shard, readLookItem(item).place),
  decide({ lane, item }, states, facts, { shard, nowMs }) {
    const { erasureId, place } = readLookItem(item)
    const walk = states.counter<ErasureWalk>(erasureOwner(erasureId))
    const { standing, head } = rowsIn(facts, shard, place)
    if (walk === null) return { kind: 'done', reply: null }
    if (standing !== null && head !== null) {
      const { sizeBytes } = standing
      return { kind: 'done', reply: { accountId: accountOfLookLane(lane), ...place, hmac: walk.hmac, sizeBytes, head } }
    }
    // Its content has expired in the meantime, so no check is needed.
    return { reply: null, ...lookedAt(walk, { lane, erasureId, nowMs }) }
  },
}

export const lookOutcome: CommandType<OutcomeBody<LookOutcome>, null> = {
  name: 'look outcome',
  frees: true,
  entities: () => [],
  counters: ({ item }) => [erasureOwner(readLookItem(item).erasureId)],
  facts: ({ item }, _states, { shard }) => rowFacts(shard, readLookItem(item).place),
  decide({ lane, item, attempt, current, outcome }, states, facts, context): Decision<null> {
    const done = [{ lane, item }]
    const { shard, nowMs } = context
    const { erasureId, place } = readLookItem(item)
    const walk = states.counter<ErasureWalk>(erasureOwner(erasureId))
    if (!current || walk === null) return { kind: 'done', reply: null, ...(current && { done }) }
    if (outcome?.result === 'away') {
      const atMs = nowMs + Math.min(MINUTE_MS, SECOND_MS * 2 ** (attempt - 1))
      return { kind: 'done', reply: null, due: [{ lane, item, atMs }] }
    }
    const { standing, head } = rowsIn(facts, shard, place)
    const isOfPerson = outcome === null || outcome.result === 'named'
    const erased =
      isOfPerson && standing !== null
        ? eraseReceived(context, place, { standing, head })
        : { ops: [], due: [], count: 0 }
    const told = isOfPerson && standing !== null ? toldOfReceived(place.messageId, standing) : []
    const at = walk.place && withTold(walk.place, told, nowMs)
    const counted = { ...walk, receivedMessages: walk.receivedMessages + erased.count, place: at }
    const looked = lookedAt(counted, { lane, erasureId, nowMs })
    return { ...looked, reply: null, done, ops: erased.ops, due: [...erased.due, ...looked.due] }
  },
}

/** One check fewer; with the last one the walk continues. */
function lookedAt(walk: ErasureWalk, of: { lane: string; erasureId: string; nowMs: number }) {
  const { lane, erasureId, nowMs } = of
  const looks = walk.looks - 1
  const isLast = looks === 0 && waitsForLooks(walk)
  return {
    kind: 'done' as const,
    counters: [{ owner: erasureOwner(erasureId), value: { ...walk, looks } }],
    due: isLast ? [eraseDue({ accountId: accountOfLookLane(lane), erasureId }, nowMs)] : [],
  }
}
