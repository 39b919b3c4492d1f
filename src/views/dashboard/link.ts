/**
 * link - a link while it works, and the account that it leads into
 *
 * Keys: `link:<id>`, `user:<id>`, `settings:<account>`, `invitations:<account>`, `account:<id>`,
 * `used-links:<HMAC>`
 *
 * Spec link.once
 */

import { type AccountState, accountRef } from '../../state/account.ts'
import { isLaterThanUse, linkFact, linkOfRow, type StoredLink, usedLinksFact } from '../../state/dashboard/link.ts'
import { invitationsFact, settingsFact, settingsOfRow } from '../../state/dashboard/member.ts'
import { userFact, userOfRow } from '../../state/dashboard/user.ts'
import { bucketOfHmac } from '../../state/hash-fraction.ts'
import { isOperatorLive } from '../account.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'

export interface SeenLink {
  readonly link: StoredLink
  readonly accountName: string | null
}

/** A link by its id; null if it is not valid. */
export async function readLink(
  read: Reader,
  { linkId, shard, nowMs }: { readonly linkId: string; readonly shard: number; readonly nowMs: number },
): Promise<SeenLink | null | 'unavailable'> {
  const seen = await read(shard, [linkFact(shard, linkId)])
  if (seen === null) return 'unavailable'
  const link = linkOfRow(seen[0], nowMs)
  if (link === null) return null
  return link.purpose === 'sign-in' || link.purpose === 'reset'
    ? ofUser(read, shard, link)
    : ofAccount(read, shard, link)
}

async function ofUser(read: Reader, shard: number, link: StoredLink): Promise<SeenLink | null | 'unavailable'> {
  const seen = await read(shard, [userFact(shard, link.ownerId)])
  if (seen === null) return 'unavailable'
  const user = userOfRow(link.ownerId, seen[0])
  return user?.linkRound === link.round ? { link, accountName: null } : null
}

async function ofAccount(read: Reader, shard: number, link: StoredLink): Promise<SeenLink | null | 'unavailable'> {
  const { ownerId, invitationId, address, round } = link
  const seen = await read(shard, [
    entityFact(shard, accountRef(ownerId)),
    settingsFact(shard, ownerId),
    invitationsFact(shard, ownerId),
  ])
  if (seen === null) return 'unavailable'
  const account = parseState<AccountState>(seen[0])
  const isThere =
    invitationId === null ? address !== null || settingsOfRow(seen[1]).setups === round : seen[2].has(invitationId)
  return account !== null && isThere ? { link, accountName: account.name } : null
}

/**
 * Whether a link of the operator is still valid: none of its siblings was used, and the key that created it is live.
 * In: the HMAC of the link's address. Null when the store did not answer.
 */
export async function isVouchedStill(
  read: Reader,
  { madeAtMs, operatorHash }: Pick<StoredLink, 'madeAtMs' | 'operatorHash'>,
  hmac: string,
): Promise<boolean | null> {
  const shard = bucketOfHmac(hmac)
  const seen = await read(shard, [usedLinksFact(shard, hmac)])
  if (seen === null) return null
  if (!isLaterThanUse(seen[0], madeAtMs)) return false
  return operatorHash === null || isOperatorLive(read, { hash: operatorHash, operatorHash: null })
}
