/**
 * sender - whether it is worth writing large content for a key before its message is decided on
 *
 * Only a look: the decision checks all of it again. It keeps a revoked key, a paused or a closed account from filling
 * the store with content that no message will claim.
 *
 * Keys: `key:<sha256>`, `account:<id>`
 */

import { shardOf } from '../../cluster/id.ts'
import type { AccountState } from '../state/account.ts'
import { entityFact, stateOf } from './entity.ts'
import { type KeyOwner, keyFact, ownerOfRow, type Reader } from './key.ts'

/** True when the key is live and its account may send; null when the store did not answer. */
export async function maySend(read: Reader, owner: KeyOwner): Promise<boolean | null> {
  const accountId = owner.accountId as string
  const shard = shardOf(accountId) as number
  const seen = await read(shard, [keyFact(shard, owner.hash), entityFact(shard, { kind: 'account', id: accountId })])
  if (seen === null) return null
  const account = stateOf<AccountState>(seen[1])
  if (ownerOfRow(owner.hash, seen[0]) === null || account === null) return false
  return account.status === 'active' || (account.status === 'pending' && owner.mode === 'test')
}
