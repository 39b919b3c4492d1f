/**
 * act - the log of actions of an account's members: writes, sign-ins, reads of content, limits reached.
 *
 * An entry is written by the commit that makes the act true. It holds ids, never an address. The entry of an export is
 * written before its first row leaves, and gets its rows and result at its end.
 *
 * Key: `account-audit:<account>:<yyyymm>` zset, members `<auditId> [act, userId or null, targets]`, score = ms of the
 * id; it expires 13 months after its month
 *
 * Spec member.audit
 */

import type { Context, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { AUDIT_MONTHS } from '../../../schemas/limits.ts'
import { computeMonth, monthName, monthStartMs } from '../calendar.ts'
import { actsKey } from './places.ts'

/** An action of a user, in the body of a command. */
export interface MemberAct {
  readonly accountId: string
  /** Null for an unknown user, or an API key. */
  readonly userId: string | null
  /** Name of a route, or `signIn`, `signInRefused`, `limitReached`. */
  readonly act: string
  /** Ids by the names of their fields; of an export also its filters, rows and result. */
  readonly targets: Readonly<Record<string, string>>
}

/** An entry of the log. */
export interface ActRecord extends Omit<MemberAct, 'accountId'> {
  readonly auditId: string
}

/** The writes that log an act, under a new id unless one is given. */
export function actOps(
  { shard, newId }: Pick<Context, 'shard' | 'newId'>,
  act: MemberAct,
  auditId: string = newId(),
): Op[] {
  const atMs = msOf(auditId)
  const key = keyOf(shard, act, auditId)
  return [
    { key, write: 'ZADD', args: [String(atMs), packAct(act, auditId)] },
    { key, write: 'PEXPIREAT', args: [String(monthStartMs(computeMonth(atMs) + 1 + AUDIT_MONTHS))] },
  ]
}

/** The writes that replace the targets of an entry. In: the act as it was logged. */
export function actChangedOps(
  context: Pick<Context, 'shard' | 'newId'>,
  act: MemberAct,
  { auditId, targets }: Pick<ActRecord, 'auditId' | 'targets'>,
): Op[] {
  const key = keyOf(context.shard, act, auditId)
  return [{ key, write: 'ZREM', args: [packAct(act, auditId)] }, ...actOps(context, { ...act, targets }, auditId)]
}

function keyOf(shard: number, { accountId }: MemberAct, auditId: string): string {
  return actsKey(shard, accountId, monthName(msOf(auditId)))
}

function packAct({ act, userId, targets }: MemberAct, auditId: string): string {
  return `${auditId} ${JSON.stringify([act, userId, targets])}`
}

/** Reads an entry. */
export function unpackAct(member: string): ActRecord {
  const [act, userId, targets] = JSON.parse(member.slice(37)) as [string, string | null, Record<string, string>]
  return { auditId: member.slice(0, 36), act, userId, targets }
}
