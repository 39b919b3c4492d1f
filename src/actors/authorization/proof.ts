/**
 * proof - whether the proof of an order is valid in its turn, either an API key or a session of the dashboard.
 *
 * A key is live while its owner's state holds its hash. A session is looked for in its row, as a fact of the turn, and
 * must still allow what the order takes; a row that was not read yet is asked for first.
 *
 * Spec key.revoke, member.role
 */

import type { Context, Facts, Need } from '../../../cluster/behaviour.ts'
import { hasLiveKey, type LiveKey } from '../../state/api-key.ts'
import {
  holdsLevel,
  parseProof,
  SESSION_FIELDS,
  type SessionRow,
  sessionEndMs,
  sessionFact,
  sessionOfRow,
} from '../../state/dashboard/session.ts'

/** Reads of a turn apart from states. */
export interface Turn {
  readonly facts: Facts
  readonly context: Pick<Context, 'shard' | 'nowMs'>
}

/** The proof of an order, and its account. */
export interface Proof {
  readonly accountId: string
  /** SHA-256 of an API key, hex; or `<level>.<SHA-256>` of a session. */
  readonly keyHash: string
}

/** Whether a proof is valid. Takes the active keys that may give the order. Returns the needed reads, if any. */
export function proves({ accountId, keyHash }: Proof, keys: readonly LiveKey[], turn: Turn): boolean | Need {
  if (hasLiveKey(keys, keyHash)) return true
  const proof = parseProof(keyHash)
  if (proof === null) return false
  const session = sessionIn(proof.hash, turn)
  if (session === null || 'kind' in session) return session ?? false
  return session.accountId === accountId && !session.needsFactor && holdsLevel(session.level, proof.level)
}

/** The session of a token's hash, which lives; null: none. */
export function sessionIn(hash: string, { facts, context }: Turn): SessionRow | Need | null {
  const fact = sessionFact(context.shard, hash)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const session = sessionOfRow(new Map(SESSION_FIELDS.map((field) => [field, facts.field(fact.key, field)])))
  return session !== null && sessionEndMs(session) > context.nowMs ? session : null
}
