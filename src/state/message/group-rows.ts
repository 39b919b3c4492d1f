/**
 * group-rows - the groups of a server's hours that have ended, by the hour for eight days and by the day for 13 months
 *
 * Keys: `group-hours:<server>:<yyyymmdd>`: `<letter>.<hour of the day>` -> `{name: row}`, and
 * `group-days:<server>:<yyyymm>`: `<letter>.<dd>` -> the same of a whole day. Letters, names and rows are those of
 * `group-count.ts`. A day has room for so many names of a kind; later ones count under the empty name. The hours of a
 * day use the names of the day, so that both have the same sums.
 *
 * Spec stats.groups, retention.stats
 */

import type { FactOf, Facts, Op } from '../../../cluster/behaviour.ts'
import { GROUP_CLASSES_MAX, GROUP_HOURS_DAYS, GROUP_SITES_MAX, GROUP_TAGS_MAX } from '../../../schemas/limits.ts'
import { STATS_MONTHS } from '../age.ts'
import { computeMonth, DAY_MS, dayName, HOUR_MS, monthName, monthStartMs } from '../calendar.ts'
import { groupDaysKey, groupHoursKey } from '../keys.ts'
import type { HourCounters } from '../server.ts'
import { addGroupRows, REST } from './group-count.ts'
import type { MailRow } from './hour-count.ts'
import type { StatsPlace } from './stats-rows.ts'

/** Names of a kind that a day holds besides the rest. */
const NAMES_MAX: Readonly<Record<string, number>> = {
  s: GROUP_SITES_MAX,
  c: GROUP_CLASSES_MAX,
  m: GROUP_SITES_MAX,
  t: GROUP_TAGS_MAX,
}
/** Maximum number of sites that are registrable domains, because others choose these names. The rest are providers. */
const DOMAINS_MAX = 20
const DAY_HOURS = 24

/** Rows by name. */
export type GroupRows = ReadonlyMap<string, MailRow>

/** The field of a kind for the day that contains `ms`. */
export function dayField(letter: string, ms: number): string {
  return `${letter}.${dayName(ms).slice(6)}`
}

/** The field of a kind's hour of the day. */
export function hourField(letter: string, hourOfDay: number): string {
  return `${letter}.${hourOfDay}`
}

/** Reads a field; a missing one (null) counts as empty. */
export function unpackGroups(text: string | null): GroupRows {
  return new Map(text === null ? [] : Object.entries(JSON.parse(text) as Record<string, MailRow>))
}

/** What must be read before an hour can be moved: its day, and itself. */
export function groupFacts({ shard, serverId }: StatsPlace, [hour, groups]: HourCounters): FactOf<'fields'>[] {
  const ms = hour * HOUR_MS
  const letters = lettersOf(groups)
  return [
    {
      read: 'fields',
      key: groupDaysKey(shard, serverId, monthName(ms)),
      fields: letters.map((letter) => dayField(letter, ms)),
    },
    {
      read: 'fields',
      key: groupHoursKey(shard, serverId, dayName(ms)),
      fields: letters.map((letter) => hourField(letter, hour % DAY_HOURS)),
    },
  ]
}

function lettersOf(groups: HourCounters[1]): string[] {
  return [...new Set(Object.keys(groups).map((group) => group.slice(0, 1)))]
}

/** Writes that add an hour to its day. The facts of `groupFacts` must have been read. */
export function groupOps(facts: Facts, place: StatsPlace, ended: HourCounters): Op[] {
  const [hour, groups] = ended
  const ms = hour * HOUR_MS
  const [days, hours] = groupFacts(place, ended) as [FactOf<'fields'>, FactOf<'fields'>]
  const dayArgs: string[] = []
  const hourArgs: string[] = []
  for (const letter of lettersOf(groups)) {
    const added = Object.entries(groups).filter(([group]) => group.startsWith(letter))
    const day = new Map(unpackGroups(facts.field(days.key, dayField(letter, ms))))
    const own = new Map(unpackGroups(facts.field(hours.key, hourField(letter, hour % DAY_HOURS))))
    for (const [group, row] of added) {
      const name = hasRoom(letter, group.slice(2), day) ? group.slice(2) : REST
      day.set(name, addGroupRows(day.get(name), row))
      own.set(name, addGroupRows(own.get(name), row))
    }
    dayArgs.push(dayField(letter, ms), packGroups(day))
    hourArgs.push(hourField(letter, hour % DAY_HOURS), packGroups(own))
  }
  if (dayArgs.length === 0) return []
  const dayStartMs = Math.floor(ms / DAY_MS) * DAY_MS
  return [
    { key: days.key, write: 'HSET', args: dayArgs },
    {
      key: days.key,
      write: 'PEXPIREAT',
      args: [String(monthStartMs(computeMonth(ms) + STATS_MONTHS + 1) + DAY_MS)],
    },
    { key: hours.key, write: 'HSET', args: hourArgs },
    { key: hours.key, write: 'PEXPIREAT', args: [String(dayStartMs + (GROUP_HOURS_DAYS + 2) * DAY_MS)] },
  ]
}

function hasRoom(letter: string, name: string, day: GroupRows): boolean {
  if (day.has(name)) return true
  const names = day.size - (day.has(REST) ? 1 : 0)
  if (letter !== 's') return names < (NAMES_MAX[letter] ?? 0)
  const domains = [...day.keys()].filter((one) => one.includes('.')).length
  return name.includes('.') ? domains < DOMAINS_MAX : names - domains < GROUP_SITES_MAX - DOMAINS_MAX
}

function packGroups(rows: GroupRows): string {
  return JSON.stringify(Object.fromEntries(rows))
}
