/**
 * acts - the actions of an account's members, newest first, month by month until the page is full
 *
 * Keys: `account-audit:<account>:<yyyymm>`
 *
 * Spec member.audit, list.page
 */

import { homeShard, msOf } from '../../../cluster/id.ts'
import type { Act } from '../../../schemas/dashboard/account.ts'
import { AUDIT_MONTHS } from '../../../schemas/limits.ts'
import { computeMonth, monthName, monthStartMs } from '../../state/calendar.ts'
import { unpackAct } from '../../state/dashboard/act.ts'
import { actsKey } from '../../state/dashboard/places.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import { type Page, readNewest } from '../newest.ts'
import { readUser } from './user.ts'

/** A page of the log; null when the store did not answer. */
export async function readActs(
  read: Reader,
  accountId: string,
  { limit, after, nowMs }: Page & { readonly nowMs: number },
): Promise<{ acts: Act[]; next: string | null } | null> {
  const shard = homeShard(accountId)
  const found: string[] = []
  // Clocks may go back: entries of the month that comes are looked for too.
  const latest = after === null ? computeMonth(nowMs) + 1 : Math.min(computeMonth(msOf(after)), computeMonth(nowMs) + 1)
  for (let month = latest; month >= computeMonth(nowMs) - AUDIT_MONTHS && found.length <= limit; month -= 1) {
    const keys = [{ shard, key: actsKey(shard, accountId, monthName(monthStartMs(month))) }]
    const members = await readNewest(read, keys, { limit: limit + 1 - found.length, after })
    if (members === null) return null
    found.push(...members)
  }
  const records = found.slice(0, limit).map(unpackAct)
  const names = await readNames(read, new Set(records.flatMap(({ userId }) => userId ?? [])))
  if (names === null) return null
  const acts = records.map(({ auditId, act, userId, targets }) => {
    const userName = userId === null ? null : (names.get(userId) ?? null)
    return { auditId, at: formatInstant(msOf(auditId)), act, userId, userName, targets }
  })
  return { acts, next: found.length > limit ? (acts.at(-1)?.auditId ?? null) : null }
}

async function readNames(read: Reader, ids: ReadonlySet<string>): Promise<Map<string, string> | null> {
  const names = new Map<string, string>()
  const users = await Promise.all([...ids].map((id) => readUser(read, id)))
  for (const user of users) {
    if (user === 'unavailable') return null
    if (user !== null) names.set(user.userId, user.name)
  }
  return names
}
