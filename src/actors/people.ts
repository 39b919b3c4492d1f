/**
 * people - removes the rows of persons that no message names any more, bucket by bucket, each month.
 *
 * A person last named in a month goes 14 months later: the last message of that month is past its age then. Who is on a
 * suppression list stays. One timer
 * walks an account's buckets; its months begin at a moment of the first day that follows from the account's id, so that
 * not all accounts are walked at once.
 *
 * Spec retention.person
 */

import type { CommandType, Due, Op, TimerBody } from '../../cluster/behaviour.ts'
import { PERSON_MONTHS } from './age.ts'
import { DAY_MS, monthOf, monthOfName, monthStartMs } from './calendar.ts'
import { TIMERS_LANE } from './item.ts'
import { PERSON_BUCKETS, personKey } from './keyspace.ts'
import { COUNT_FIELD, erasedMonthOf, unpackPerson } from './person.ts'
import { unitOf } from './spread.ts'
import { deleteOps } from './sweep.ts'

export const PEOPLE_TIMER = 'people'

/** The first walk of a new account. */
export function firstPeopleDue(accountId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: itemOf(accountId, 0), atMs: nextWalkMs(accountId, nowMs) }
}

export const people: CommandType<TimerBody, null> = {
  name: 'people',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [{ read: 'hash', key: keyOf(shard, body) }],
  decide(body, _states, facts, { shard, nowMs }) {
    const { accountId, bucket } = parseTimer(body)
    const ops = bucketOps(keyOf(shard, body), facts.hash(keyOf(shard, body)), monthOf(nowMs))
    const next = bucket + 1
    const due: Due =
      next < PERSON_BUCKETS
        ? { lane: TIMERS_LANE, item: itemOf(accountId, next), atMs: nowMs }
        : firstPeopleDue(accountId, nowMs)
    return { kind: 'done', reply: null, ops, due: [due] }
  },
}

/** Writes that remove what is past its age from a bucket; all of it where nobody is left. */
function bucketOps(key: string, rows: ReadonlyMap<string, string>, month: number): Op[] {
  const past: string[] = []
  let left = 0
  const judge = (stamp: string, fields: readonly string[]) => {
    if (monthOfName(stamp) + PERSON_MONTHS <= month) past.push(...fields)
    else left += 1
  }
  for (const [field, value] of rows) {
    if (field === COUNT_FIELD) continue
    const isNumber = isNumberField(field)
    const erased = isNumber ? erasedMonthOf(value) : null
    if (erased !== null) judge(erased, [field])
    if (isNumber) continue
    const person = unpackPerson(value)
    if (person.suppressions > 0) left += 1
    else judge(person.month, [field, String(person.number)])
  }
  if (past.length === 0) return []
  return left === 0 ? [{ key, write: 'UNLINK', args: [] }] : deleteOps(key, past)
}

/** HMACs have 22 characters, numbers at most 16. */
function isNumberField(field: string): boolean {
  return field.length <= 16
}

function parseTimer({ item }: TimerBody): { accountId: string; bucket: number } {
  const [, accountId = '', bucket = '0'] = item.split(':')
  return { accountId, bucket: Number.parseInt(bucket, 16) }
}

function keyOf(shard: number, body: TimerBody): string {
  const { accountId, bucket } = parseTimer(body)
  return personKey(shard, accountId, bucket)
}

function itemOf(accountId: string, bucket: number): string {
  return `${PEOPLE_TIMER}:${accountId}:${bucket.toString(16).padStart(2, '0')}`
}

function nextWalkMs(accountId: string, nowMs: number): number {
  return monthStartMs(monthOf(nowMs) + 1) + Math.floor(unitOf(accountId) * DAY_MS)
}
