/**
 * session - a signed-in browser in one account, stored in a row like a key's, under the hash of its token.
 *
 * The row has the data that every request needs: user, role and expiry. A changed role, a removal and an end are
 * written into it by their own commit, so the row is always current. A request proves itself by `<level>.<SHA-256>`,
 * with the lowest sufficient level.
 *
 * Key: `key:<sha256>` hash `kind` (`session`), `accountId`, `tokenId` (the session), `revoked`, `userId`, `level`,
 * `since`, `seen`, `confirmed`, `factor`, `needsFactor`; it expires with the session
 *
 * Spec session.life, session.confirm, member.role
 */

import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { CONFIRMED_MINUTES, SESSION_DAYS, SESSION_IDLE_DAYS } from '../../../schemas/limits.ts'
import type { Level } from '../../../schemas/route.ts'
import { DAY_MS, MINUTE_MS } from '../calendar.ts'
import { apiKeyKey } from '../keys.ts'

/** The row of a session. */
export interface SessionRow {
  readonly accountId: string
  readonly sessionId: string
  readonly userId: string
  readonly level: Level
  readonly sinceMs: number
  readonly seenMs: number
  /** Until when its user counts as confirmed; 0: not. */
  readonly confirmedMs: number
  /** Until when a second factor that was shown or set up in this session counts as just shown; 0 if none. */
  readonly factorMs: number
  /** Whether its account requires a second factor that was neither used nor set up in this session. */
  readonly needsFactor: boolean
}

export const SESSION_FIELDS = [
  'kind',
  'accountId',
  'tokenId',
  'revoked',
  'userId',
  'level',
  'since',
  'seen',
  'confirmed',
  'factor',
  'needsFactor',
] as const

/** A session that was not used for this long is noted as used again. */
export const SEEN_EACH_MS = 10 * MINUTE_MS
/** How long an ended session is distinguished from an unknown one. */
const ENDED_MS = DAY_MS
const LEVELS = 'rwa'
const PROOF = /^([rwa])\.([0-9a-f]{64})$/

/** The proof of a session in a request. */
export function proofOf(level: Level, hash: string): string {
  return `${level}.${hash}`
}

/** Reads such a proof; null for the hash of an API key. */
export function parseProof(text: string): { readonly level: Level; readonly hash: string } | null {
  const found = PROOF.exec(text)
  return found === null ? null : { level: found[1] as Level, hash: found[2] as string }
}

/** Whether a level permits an action that requires another. */
export function holdsLevel(has: Level, takes: Level): boolean {
  return LEVELS.indexOf(has) >= LEVELS.indexOf(takes)
}

/** The read that a proof asks for. */
export function sessionFact(shard: number, hash: string): FactOf<'fields'> {
  return { read: 'fields', key: apiKeyKey(shard, hash), fields: SESSION_FIELDS }
}

/** The session in a row, by the names of its fields; null if it does not exist or has ended. */
export function sessionOfRow(row: ReadonlyMap<string, string | null>): SessionRow | null {
  const text = (name: string): string => row.get(name) ?? ''
  const level = text('level') as Level
  const isThere = text('kind') === 'session' && text('revoked') === '' && text('userId') !== ''
  if (!isThere || level.length !== 1 || !LEVELS.includes(level)) return null
  return {
    accountId: text('accountId'),
    sessionId: text('tokenId'),
    userId: text('userId'),
    level,
    sinceMs: Number(text('since')),
    seenMs: Number(text('seen')),
    confirmedMs: Number(text('confirmed')),
    factorMs: Number(text('factor')),
    needsFactor: text('needsFactor') !== '',
  }
}

/** When a session ends by itself. */
export function sessionEndMs({ sinceMs, seenMs }: Pick<SessionRow, 'sinceMs' | 'seenMs'>): number {
  return Math.min(sinceMs + SESSION_DAYS * DAY_MS, seenMs + SESSION_IDLE_DAYS * DAY_MS)
}

/** The expiry of a confirmation made now. */
export function confirmedUntilMs(nowMs: number): number {
  return nowMs + CONFIRMED_MINUTES * MINUTE_MS
}

/** The writes of a new session's row. */
export function sessionOps(shard: number, hash: string, row: SessionRow): Op[] {
  const { accountId, sessionId, userId, level, sinceMs, seenMs, confirmedMs, factorMs } = row
  const needsFactor = row.needsFactor ? '1' : ''
  const fields = { kind: 'session', accountId, tokenId: sessionId, revoked: '', userId, level, needsFactor }
  const shown = { confirmed: String(confirmedMs), factor: String(factorMs) }
  const times = { since: String(sinceMs), seen: String(seenMs), ...shown }
  return [
    { key: apiKeyKey(shard, hash), write: 'HSET', args: Object.entries({ ...fields, ...times }).flat() },
    { key: apiKeyKey(shard, hash), write: 'PEXPIREAT', args: [String(sessionEndMs(row))] },
  ]
}

/** The writes that end a session; also of one whose row is still to come, which then does not come. */
export function endedSessionOps(shard: number, hash: string, nowMs: number): Op[] {
  const key = apiKeyKey(shard, hash)
  return [
    { key, write: 'HSET', args: ['kind', 'session', 'revoked', String(nowMs)] },
    { key, write: 'PEXPIREAT', args: [String(nowMs + ENDED_MS)] },
  ]
}
