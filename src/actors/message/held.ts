/**
 * held - mail of a paused account that waits until the account is resumed.
 *
 * States of an item: in its lane -> held (it came due while the account was held) -> in its lane again, due at once.
 * Held items are not polled, so they cost nothing. Held time counts, so an attempt that fails after 48 hours is the
 * last one.
 *
 * Key: `held:<account>` zset, `<lane> <attempts> <item>` by when it came to wait
 *
 * Spec account.hold
 */

import type { CommandType, Due, Fact, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { heldKey } from '../../state/keys.ts'

export const RELEASE_TIMER = 'release'

/** Items of one step. */
const STEP_ITEMS = 200

/** An item as it waits. */
interface HeldItem {
  readonly lane: string
  readonly item: string
  /** Attempts that it has had. */
  readonly attempts: number
}

/** The write that holds an item; its lane must lose it in the same commit. */
export function holdOps(
  shard: number,
  accountId: string,
  { lane, item, attempts, nowMs }: HeldItem & { nowMs: number },
) {
  const member = `${lane} ${attempts} ${item}`
  return [{ key: heldKey(shard, accountId), write: 'ZADD', args: [String(nowMs), member] }] satisfies Op[]
}

/** Brings held items of an account back, step by step, once it is no longer held. */
export function releaseDue(accountId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: `${RELEASE_TIMER}:${accountId}`, atMs: nowMs }
}

export const release: CommandType<TimerBody, null> = {
  name: 'release',
  frees: true,
  entities: (body) => [accountRef(accountOf(body))],
  counters: () => [],
  facts: (body, _states, { shard }) => [heldFact(shard, accountOf(body))],
  decide(body, states, facts, { shard, nowMs }) {
    const accountId = accountOf(body)
    // It was held again in the meantime, and the next release takes the rest.
    if (states.get<AccountState | null>(accountRef(accountId))?.held !== false) return { kind: 'done', reply: null }
    const members = facts.sorted(heldFact(shard, accountId)).map(([member]) => member)
    if (members.length === 0) return { kind: 'done', reply: null }
    const due: Due[] = members.map(parseHeld).map((held) => ({ ...held, atMs: nowMs }))
    if (members.length === STEP_ITEMS) due.push(releaseDue(accountId, nowMs))
    return {
      kind: 'done',
      reply: null,
      due,
      ops: [{ key: heldKey(shard, accountId), write: 'ZREM', args: members }],
    }
  },
}

function heldFact(shard: number, accountId: string): Fact & { read: 'sorted' } {
  return {
    read: 'sorted',
    key: heldKey(shard, accountId),
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    count: STEP_ITEMS,
  }
}

function parseHeld(member: string): HeldItem {
  const [lane = '', attempts = '0', item = ''] = member.split(' ')
  return { lane, attempts: Number(attempts), item }
}

function accountOf({ item }: TimerBody): string {
  return item.slice(item.indexOf(':') + 1)
}
