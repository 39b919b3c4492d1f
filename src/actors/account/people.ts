/**
 * people - removes the rows of persons that no message names, hash by hash, each month.
 *
 * A person last named in a month is removed once the last message of that month has expired, by default 14 months
 * later, and no unsubscribe link in such a message works any more. Persons on a suppression list are kept. One timer
 * walks the first persons of an account and then the buckets of each level in use; it starts at a time of the first
 * day of the month that depends on the account's id, so that not all accounts are walked at once. If the log is kept
 * for fewer months, it starts on the day on which another month has expired; and at once when that number changes
 * (`../message/sweep.ts`).
 *
 * Spec retention.person, retention.settings
 */

import type { CommandType, Decision, Due, Fact, Op, States, TimerBody } from '../../../cluster/behaviour.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { LOG_RETENTION_MONTHS_MAX } from '../../../schemas/limits.ts'
import { personCutoffMs } from '../../state/age.ts'
import { computeMonth, DAY_MS, monthOfName, monthStartMs } from '../../state/calendar.ts'
import { hashFraction } from '../../state/hash-fraction.ts'
import { firstPersonsKey } from '../../state/keys.ts'
import { type PeopleCounters, peopleDue, peopleOwner } from '../../state/log-retention.ts'
import { deleteOps } from '../../state/message/row.ts'
import {
  type BucketLevel,
  bucketKey,
  COUNT_FIELD,
  deepestOf,
  LEVELS,
  packCount,
  unpackCount,
} from '../../state/person/buckets.ts'
import { erasedMonthOf, unpackPerson } from '../../state/person/person.ts'
import { logMonths } from '../authorization/log-age.ts'

/** Place of an account's first persons in the walk. The buckets of each level follow, some at each place. */
const FIRST = 0
/** Buckets of one step, of some 5 KB. Those of the first level may be of an earlier release, and larger. */
const STEP_BUCKETS = 32
/** The first place of each level, and the place behind the last one. */
const PLACES = [FIRST + 1]
for (const level of LEVELS) PLACES.push((PLACES.at(-1) as number) + level.buckets / bucketsAt(level))

/** The first walk of a new account. */
export function firstPeopleDue(accountId: string, nowMs: number): Due {
  return peopleDue(accountId, FIRST, nextWalkMs(accountId, nowMs, LOG_RETENTION_MONTHS_MAX))
}

export const people: CommandType<TimerBody, null> = {
  name: 'people',
  frees: true,
  entities: () => [],
  counters: (body) => [peopleOwner(parseTimer(body).accountId)],
  facts: (body, _states, { shard }) => [
    countFact(shard, parseTimer(body).accountId),
    ...keysOf(shard, body).map((key): Fact => ({ read: 'hash', key })),
  ],
  decide(body, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const { accountId, place } = parseTimer(body)
    const months = logMonths({ states, facts, context }, accountId)
    if (typeof months !== 'number') return months
    const deepest = deepestOf(facts.field(firstPersonsKey(shard, accountId), COUNT_FIELD))
    const isLast = place + 1 >= (PLACES[deepest + 1] ?? 0)
    const due: Due = isLast
      ? peopleDue(accountId, FIRST, nextWalkMs(accountId, nowMs, months))
      : peopleDue(accountId, place + 1, nowMs)
    const cutoff = { cutoffMs: personCutoffMs(nowMs, months), isFirst: place === FIRST, hasBuckets: deepest >= 0 }
    const ops = keysOf(shard, body).flatMap((key) => rowOps(key, facts.hash(key), cutoff))
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
  { cutoffMs, isFirst, hasBuckets }: { cutoffMs: number; isFirst: boolean; hasBuckets: boolean },
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
  // The count of a full first hash names the levels in use.
  if (left === 0 && !(isFirst && hasBuckets)) return [{ key, write: 'UNLINK', args: [] }]
  if (isFirst) return deleteOps(key, past)
  // A bucket has room again for as many persons as have left.
  const { given } = unpackCount(rows.get(COUNT_FIELD) ?? null)
  const count = packCount({ given, left: Math.max(0, given - left) })
  return [...deleteOps(key, past), { key, write: 'HSET', args: [COUNT_FIELD, count] }]
}

/** HMACs have 22 characters, numbers at most 16. */
function isNumberField(field: string): boolean {
  return field.length <= 16
}

function parseTimer({ item }: TimerBody): { accountId: string; place: number } {
  const [, accountId = '', place = '0'] = item.split(':')
  return { accountId, place: Number(place) }
}

function bucketsAt({ index }: BucketLevel): number {
  return index === 0 ? 1 : STEP_BUCKETS
}

function countFact(shard: number, accountId: string): Fact {
  return { read: 'fields', key: firstPersonsKey(shard, accountId), fields: [COUNT_FIELD] }
}

/** The hashes of a place. */
function keysOf(shard: number, body: TimerBody): readonly string[] {
  const { accountId, place } = parseTimer(body)
  const level = LEVELS.find(({ index }) => place < (PLACES[index + 1] ?? 0))
  if (place === FIRST || level === undefined) return [firstPersonsKey(shard, accountId)]
  const count = bucketsAt(level)
  const from = (place - (PLACES[level.index] ?? 0)) * count
  return Array.from({ length: count }, (_, at) => bucketKey(level, from + at, { shard, accountId }))
}

/** When the rows of another month can go. */
function nextWalkMs(accountId: string, nowMs: number, months: number): number {
  const offsetMs = Math.floor(hashFraction(accountId) * DAY_MS)
  if (months === LOG_RETENTION_MONTHS_MAX) return monthStartMs(computeMonth(nowMs) + 1) + offsetMs
  const month = computeMonth(personCutoffMs(nowMs, months))
  let dayMs = nowMs - (nowMs % DAY_MS) + DAY_MS
  while (computeMonth(personCutoffMs(dayMs, months)) === month) dayMs += DAY_MS
  return dayMs + offsetMs
}
