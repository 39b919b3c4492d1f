/**
 * audit - the log of operators' actions: one entry for each, written by the commit of the action.
 *
 * Every command that an operator may give carries `by` (operator, act, note) in its body, and its decision adds
 * `auditOps`. A refused order changes nothing and is not logged.
 *
 * An entry is on the shard of its subject, in one sorted set for each UTC month with members `<auditId> <JSON>`. A
 * Redis stream is not used, because a note is free text and may name a person, and a member of a set can be removed for
 * good. `before` and `after` have ids, names, figures and states, never an address.
 *
 * Key: `audit:<yyyymm>` zset, score = ms of the entry's id; it expires 13 months after its month.
 *
 * Spec operator.audit, operator.note
 */

import type { Context, Op } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import { AUDIT_MONTHS } from '../../schemas/limits.ts'
import type { RouteName } from '../../schemas/routes.ts'
import { computeMonth, monthName, monthStartMs } from './calendar.ts'
import { auditKey } from './keys.ts'

/**
 * An action of an operator: a write route of the operator listener, or a new operator key made directly in the store.
 */
export type AuditedAct = RouteName | 'makeOperatorKey'

/** The author of an order, in the body of a command. */
export interface OperatorAct {
  /** Token id of the operator's key; null for direct access to the store. */
  readonly actor: string | null
  readonly act: AuditedAct
  readonly note: string | null
}

/** Part of a state: fields by name. */
export type Fields = Readonly<Record<string, unknown>>

/** The subject of an act. */
export interface ActSubject {
  /** Ids by the name of their field: `{accountId}`, `{serverId, tokenId}`. */
  readonly targets: Readonly<Record<string, string>>
  /** The changed fields before and after the act; null if there was, or is, nothing. */
  readonly before: Fields | null
  readonly after: Fields | null
}

/** One entry of the log. */
export interface AuditRecord extends OperatorAct, ActSubject {
  /** Its milliseconds are the time of the act. */
  readonly auditId: string
}

/** The writes that log an act. Takes the turn's context, the author and the subject. */
export function auditOps(context: Pick<Context, 'shard' | 'newId'>, by: OperatorAct, subject: ActSubject): Op[] {
  return entryOps(context.shard, { auditId: context.newId(), ...by, ...subject })
}

/** The same for an order that others may give too: no writes if `by` is absent. */
export function auditOpsOf(context: Context, by: OperatorAct | undefined, subject: ActSubject): Op[] {
  return by === undefined ? [] : auditOps(context, by, subject)
}

/** The writes of an entry that has its id. */
export function entryOps(shard: number, entry: AuditRecord): Op[] {
  const atMs = msOf(entry.auditId)
  const key = auditKey(shard, monthName(atMs))
  // The month's last day is readable for the whole of its time.
  const expiresAtMs = monthStartMs(computeMonth(atMs) + 1 + AUDIT_MONTHS)
  return [
    { key, write: 'ZADD', args: [String(atMs), packAudit(entry)] },
    { key, write: 'PEXPIREAT', args: [String(expiresAtMs)] },
  ]
}

/** The fields that differ between two states of one entity, before and after. */
export function computeDifference<State extends object>(was: State, is: State): { before: Fields; after: Fields } {
  const before: Record<string, unknown> = {}
  const after: Record<string, unknown> = {}
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)])) {
    const [old, now] = [(was as Fields)[name] ?? null, (is as Fields)[name] ?? null]
    if (JSON.stringify(old) === JSON.stringify(now)) continue
    before[name] = old
    after[name] = now
  }
  return { before, after }
}

/** Packs an entry as a member of its month. */
export function packAudit({ auditId, actor, act, note, targets, before, after }: AuditRecord): string {
  return `${auditId} ${JSON.stringify([act, actor, targets, note, before, after])}`
}

/** Unpacks a member of a month. */
export function unpackAudit(member: string): AuditRecord {
  const space = member.indexOf(' ')
  const [act, actor, targets, note, before, after] = JSON.parse(member.slice(space + 1)) as [
    AuditedAct,
    string | null,
    AuditRecord['targets'],
    string | null,
    Fields | null,
    Fields | null,
  ]
  return { auditId: member.slice(0, space), actor, act, note, targets, before, after }
}
