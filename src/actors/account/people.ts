/**
 * people - removes the rows of persons that no message names, hash by hash, each month.
 *
 * A person last named in a month is removed once the last message of that month has expired, by default 14 months
 * later, and no unsubscribe link in such a message works any more. Persons on a suppression list are kept. One timer
 * walks the first persons of an account and its other buckets, if any; it starts at a time of the first day of the
 * month that depends on the account's id, so that not all accounts are walked at once. If the log is kept for fewer
 * months, it starts on the day on which another month has expired; and at once when that number changes
 * (`../message/sweep.ts`).
 *
 * Spec retention.person, retention.settings
 */

import type { CommandType, Decision, Due, Op, States, TimerBody } from '../../../cluster/behaviour.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { LOG_RETENTION_MONTHS_MAX } from '../../../schemas/limits.ts'
import { personCutoffMs } from '../../state/age.ts'
import { DAY_MS, monthOf, monthOfName, monthStartMs } from '../../state/calendar.ts'
import { hashFraction } from '../../state/hash-fraction.ts'
import { firstPersonsKey, PERSON_BUCKETS, personKey } from '../../state/keys.ts'
import { type PeopleCounters, peopleDue, peopleOwner } from '../../state/log-retention.ts'
import { deleteOps } from '../../state/message/row.ts'
import { COUNT_FIELD, erasedMonthOf, FIRST_PERSONS, unpackPerson } from '../../state/person.ts'
import { logMonths } from '../authorization/log-age.ts'

/** Place of an account's first persons in the walk; bucket b has the place b + 1. */
const FIRST = 0

/** The first walk of a new account. */
export function firstPeopleDue(accountId: string, nowMs: number): Due {
  return peopleDue(accountId, FIRST, nextWalkMs(accountId, nowMs, LOG_RETENTION_MONTHS_MAX))
}

export const people: CommandType<TimerBody, null> = {
  name: 'people',
  frees: true,
  entities: () => [],
  counters: (body) => [peopleOwner(parseTimer(body).accountId)],
  facts: (body, _states, { shard }) => [{ read: 'hash', key: keyOf(shard, body) }],
  decide(body, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const { accountId, place } = parseTimer(body)
    const months = logMonths({ states, facts, context }, accountId)
    if (typeof months !== 'number') return months
    const key = keyOf(shard, body)
    const rows = facts.hash(key)
    const isAll = place === FIRST && Number(rows.get(COUNT_FIELD) ?? 0) < FIRST_PERSONS
    const isLast = isAll || place === PERSON_BUCKETS
    const due: Due = isLast
      ? peopleDue(accountId, FIRST, nextWalkMs(accountId, nowMs, months))
      : peopleDue(accountId, place + 1, nowMs)
    // A full first hash means that there are buckets, so its count is kept.
    const keepsCount = place === FIRST && !isAll
    const ops = rowOps(key, rows, { cutoffMs: personCutoffMs(nowMs, months), keepsCount })
    return { kind: 'done', reply: null, ops, due: [due], counters: walkedWith(months, { states, accountId }) }
  },
}

/** The counters, if they have another number of months. */
function walkedWith(
  months: number,
  { states, accountId }: { states: Pick<States, 'counter'>; accountId: string },
): { owner: string; value: PeopleCounters | null }[] {
  const owner = peopleOwner(accountId)
  const before = states.counter<PeopleCounters>(owner)?.months ?? LOG_RETENTION_MONTHS_MAX
  if (months === before) return []
  return [{ owner, value: months === LOG_RETENTION_MONTHS_MAX ? null : { months } }]
}

/** Writes that remove expired rows from a hash, or the whole hash if no person is left. */
function rowOps(
  key: string,
  rows: ReadonlyMap<string, string>,
  { cutoffMs, keepsCount }: { cutoffMs: number; keepsCount: boolean },
): Op[] {
  const past: string[] = []
  let left = 0
  const judge = (stamp: string, fields: readonly string[]) => {
    if (monthStartMs(monthOfName(stamp) + 1) <= cutoffMs) past.push(...fields)
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

/** When the rows of another month can go. */
function nextWalkMs(accountId: string, nowMs: number, months: number): number {
  const offsetMs = Math.floor(hashFraction(accountId) * DAY_MS)
  if (months === LOG_RETENTION_MONTHS_MAX) return monthStartMs(monthOf(nowMs) + 1) + offsetMs
  const month = monthOf(personCutoffMs(nowMs, months))
  let dayMs = nowMs - (nowMs % DAY_MS) + DAY_MS
  while (monthOf(personCutoffMs(dayMs, months)) === month) dayMs += DAY_MS
  return dayMs + offsetMs
}
