/**
 * people - removes the rows of persons that no message names, hash by hash, each month.
 *
 * A person last named in a month is removed 14 months later, because the last message of that month has expired by
 * then. Persons on a suppression list are kept. One timer walks the first persons of an account and its other buckets,
 * if any; it starts at a time of the first day of the month that depends on the account's id, so that not all accounts
 * are walked at once.
 *
 * Spec retention.person
 */

import type { CommandType, Due, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { PERSON_MONTHS } from '../../state/age.ts'
import { DAY_MS, monthOf, monthOfName, monthStartMs } from '../../state/calendar.ts'
import { firstPersonsKey, PERSON_BUCKETS, personKey } from '../../state/keys.ts'
import { deleteOps } from '../../state/message/row.ts'
import { COUNT_FIELD, erasedMonthOf, FIRST_PERSONS, unpackPerson } from '../../state/person.ts'
import { unitOf } from '../../state/spread.ts'

export const PEOPLE_TIMER = 'people'
/** Place of an account's first persons in the walk; bucket b has the place b + 1. */
const FIRST = 0

/** The first walk of a new account. */
export function firstPeopleDue(accountId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: itemOf(accountId, FIRST), atMs: nextWalkMs(accountId, nowMs) }
}

export const people: CommandType<TimerBody, null> = {
  name: 'people',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [{ read: 'hash', key: keyOf(shard, body) }],
  decide(body, _states, facts, { shard, nowMs }) {
    const { accountId, place } = parseTimer(body)
    const key = keyOf(shard, body)
    const rows = facts.hash(key)
    const isAll = place === FIRST && Number(rows.get(COUNT_FIELD) ?? 0) < FIRST_PERSONS
    const isLast = isAll || place === PERSON_BUCKETS
    const due: Due = isLast
      ? firstPeopleDue(accountId, nowMs)
      : { lane: TIMERS_LANE, item: itemOf(accountId, place + 1), atMs: nowMs }
    // A full first hash means that there are buckets, so its count is kept.
    const keepsCount = place === FIRST && !isAll
    return { kind: 'done', reply: null, ops: rowOps(key, rows, { month: monthOf(nowMs), keepsCount }), due: [due] }
  },
}

/** Writes that remove expired rows from a hash, or the whole hash if no person is left. */
function rowOps(
  key: string,
  rows: ReadonlyMap<string, string>,
  { month, keepsCount }: { month: number; keepsCount: boolean },
): Op[] {
  const past: string[] = []
  let left = 0
  const judge = (stamp: string, fields: readonly string[]) => {
    if (monthOfName(stamp) + PERSON_MONTHS <= month) past.push(...fields)
    else left += 1
  }
  for (const [field, value] of rows) {
    if (field === COUNT_FIELD) continue
    const isNumber = isNumberField(field)
    const erased = isNumber ? unlessDamaged(() => erasedMonthOf(value)) : null
    if (erased !== null) judge(erased, [field])
    if (isNumber) continue
    const person = unlessDamaged(() => unpackPerson(value))
    // A damaged row names no month: `repair` removes it.
    if (person === null || person.suppressions > 0) left += 1
    else judge(person.month, [field, String(person.number)])
  }
  if (past.length === 0) return []
  return left === 0 && !keepsCount ? [{ key, write: 'UNLINK', args: [] }] : deleteOps(key, past)
}

/** HMACs have 22 characters, numbers at most 16. */
function isNumberField(field: string): boolean {
  return field.length <= 16
}

function parseTimer({ item }: TimerBody): { accountId: string; place: number } {
  const [, accountId = '', place = '0'] = item.split(':')
  return { accountId, place: Number(place) }
}

function keyOf(shard: number, body: TimerBody): string {
  const { accountId, place } = parseTimer(body)
  return place === FIRST ? firstPersonsKey(shard, accountId) : personKey(shard, accountId, place - 1)
}

function itemOf(accountId: string, place: number): string {
  return `${PEOPLE_TIMER}:${accountId}:${place}`
}

function nextWalkMs(accountId: string, nowMs: number): number {
  return monthStartMs(monthOf(nowMs) + 1) + Math.floor(unitOf(accountId) * DAY_MS)
}
