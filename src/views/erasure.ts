/**
 * erasure - an erasure as the account's key reads it
 *
 * An erasure of another account, or one that was done more than 30 days ago, is not found.
 *
 * Keys: `key:<sha256>`, `erasure:<id>`
 *
 * Spec erasure.read, retention.erasure
 */

import { homeShard, msOf, shardOf } from '../../cluster/id.ts'
import type { Erasure } from '../../schemas/erasure.ts'
import { type ErasureState, erasureRef, isErasurePast } from '../state/erasure.ts'
import { formatPseudonym } from '../state/person/person.ts'
import { entityFact, parseState, type Unseen } from './entity.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { type AccountKey, keyFact, ownerOfRow, type Reader } from './key.ts'

/** The resource of an erasure. */
export function formatErasure(state: ErasureState): Erasure {
  const { erasureId, completedAtMs, pseudonym, messages, receivedMessages } = state
  return {
    erasureId,
    status: completedAtMs === null ? 'pending' : 'done',
    createdAt: formatInstant(msOf(erasureId)),
    completedAt: formatInstantOrNull(completedAtMs),
    pseudonym: pseudonym === null ? null : formatPseudonym(pseudonym),
    messages,
    receivedMessages,
  }
}

/** One erasure of the key's account; or why it is not shown. */
export async function readErasure(
  read: Reader,
  owner: AccountKey,
  { erasureId, nowMs }: { readonly erasureId: string; readonly nowMs: number },
): Promise<ErasureState | Unseen | 'not_found'> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  const id = erasureId.toLowerCase()
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    // An id of another shard belongs to another account. The account's own id is read instead, which is never the id
    // of an erasure.
    entityFact(shard, erasureRef(shardOf(id) === shard ? id : accountId)),
  ])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const state = parseState<ErasureState>(seen[1])
  return state === null || state.accountId !== accountId || isErasurePast(state, nowMs) ? 'not_found' : state
}
