/**
 * act - the log of actions of an account's members: writes, sign-ins, reads of content, limits reached.
 *
 * An entry is written by the commit that makes the act true. It holds ids, never an address.
 *
 * Key: `account-audit:<account>:<yyyymm>` zset, members `<auditId> [act, userId or null, targets]`, score = ms of the
 * id; it expires 13 months after its month
 *
 * Spec member.audit
 */

import type { Context, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { AUDIT_MONTHS } from '../../../schemas/limits.ts'
import { monthName, monthOf, monthStartMs } from '../calendar.ts'
import { actsKey } from './places.ts'

/** An action of a user, in the body of a command. */
export interface MemberAct {
  readonly accountId: string
  /** Null for an unknown user. */
  readonly userId: string | null
  /** Name of a route, or `signIn`, `signInRefused`, `limitReached`. */
  readonly act: string
  /** Ids by the names of their fields. */
  readonly targets: Readonly<Record<string, string>>
}

/** An entry of the log. */
export interface ActRecord extends Omit<MemberAct, 'accountId'> {
  readonly auditId: string
}

/** The writes that log an act. */
export function actOps(context: Pick<Context, 'shard' | 'newId'>, of: MemberAct): Op[] {
  const { shard } = context
  const auditId = context.newId()
  const atMs = msOf(auditId)
  const key = actsKey(shard, of.accountId, monthName(atMs))
  return [
    { key, write: 'ZADD', args: [String(atMs), `${auditId} ${JSON.stringify([of.act, of.userId, of.targets])}`] },
    { key, write: 'PEXPIREAT', args: [String(monthStartMs(monthOf(atMs) + 1 + AUDIT_MONTHS))] },
  ]
}

/** Reads an entry. */
export function unpackAct(member: string): ActRecord {
  const [act, userId, targets] = JSON.parse(member.slice(37)) as [string, string | null, Record<string, string>]
  return { auditId: member.slice(0, 36), act, userId, targets }
}
