/**
 * session - the Session resource: the signed-in user, the account and role, and the other accounts that the user can
 * switch to
 *
 * Keys: `account:<id>`, `settings:<account>`, `members:<account>`, `user:<id>`
 *
 * Spec session.read
 */

import { homeShard } from '../../../cluster/id.ts'
import type { SignedIn } from '../../../schemas/dashboard/session.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { roleOf, type Settings, settingsFact, settingsOfRow, unpackMember } from '../../state/dashboard/member.ts'
import { membersKey } from '../../state/dashboard/places.ts'
import { type SessionRow, sessionEndMs } from '../../state/dashboard/session.ts'
import { factorsOf, type User } from '../../state/dashboard/user.ts'
import { formatApplication } from '../account.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'

type Place = SignedIn['accounts'][number]

/**
 * Formats a session for an answer. Takes its row, its user, and the store's time. Null if the store did not answer.
 */
export async function formatSession(
  read: Reader,
  { row, user, nowMs }: { readonly row: SessionRow; readonly user: User; readonly nowMs: number },
): Promise<SignedIn | null> {
  const shard = homeShard(row.accountId)
  const [seen, places] = await Promise.all([
    read(shard, [entityFact(shard, accountRef(row.accountId)), settingsFact(shard, row.accountId)]),
    readPlaces(read, user),
  ])
  const account = seen === null ? null : parseState<AccountState>(seen[0])
  if (seen === null || account === null || places === null) return null
  return {
    sessionId: row.sessionId,
    user: { userId: user.userId, address: user.address, name: user.name },
    account: formatSessionAccount(account, settingsOfRow(seen[1])),
    accounts: places,
    ...roleOf(row.level),
    needsFactor: row.needsFactor,
    factors: factorsOf(user),
    confirmedUntil: row.confirmedMs > nowMs ? formatInstant(row.confirmedMs) : null,
    expiresAt: formatInstant(sessionEndMs(row)),
  }
}

function formatSessionAccount(account: AccountState, settings: Settings): SignedIn['account'] {
  const { accountId, name, status } = account
  const { requireSecondFactor, hideContent, application } = settings
  return { accountId, name, status, requireSecondFactor, hideContent, application: formatApplication(application) }
}

/** The accounts that a user is a member of, from the user's index, except those that do not list the user. */
export async function readPlaces(
  read: Reader,
  { userId, accounts }: Pick<User, 'userId' | 'accounts'>,
): Promise<Place[] | null> {
  const seen = await Promise.all(
    accounts.map(async (accountId) => {
      const shard = homeShard(accountId)
      const facts = [
        entityFact(shard, accountRef(accountId)),
        { read: 'fields', key: membersKey(shard, accountId), fields: [userId] },
      ] as const
      return { accountId, values: await read(shard, facts) }
    }),
  )
  if (seen.some(({ values }) => values === null)) return null
  return seen.flatMap(({ accountId, values }) => {
    const account = values === null ? null : parseState<AccountState>(values[0])
    const member = values?.[1][0] ?? null
    return account === null || member === null
      ? []
      : [{ accountId, name: account.name, ...roleOf(unpackMember(member).level) }]
  })
}
