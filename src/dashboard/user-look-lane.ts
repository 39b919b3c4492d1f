/**
 * user-look-lane - performs the checks of users, which ask each account on a user's list whether it has the user as a
 * member
 *
 * A few users at a time, because no request waits for it.
 *
 * Spec member.index
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import { homeShard } from '../../cluster/id.ts'
import {
  prepareUserLook,
  type UserLookJob,
  type UserLookOutcome,
  userLookOutcome,
} from '../actors/dashboard/user-look.ts'
import { membersKey, USERS_LANE } from '../state/dashboard/places.ts'
import type { Reader } from '../views/key.ts'

const LOOKS_MAX = 16
/** Reads of the store alone. */
const HOLD_MS = 60_000

export interface UserLookDeps {
  readonly read: Reader
  /** HMAC of an address, by which its user is found. */
  readonly loginHmac: (address: string) => string
}

/** The lane with its performer. */
export function makeUserLookLane(deps: UserLookDeps): LaneType {
  let underWay = 0
  const lane: LaneType<UserLookJob, UserLookOutcome> = {
    prefix: USERS_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prepare: prepareUserLook,
    outcome: userLookOutcome,
    room: () => LOOKS_MAX - underWay,
    async perform(job) {
      underWay += 1
      return look(deps, job).finally(() => {
        underWay -= 1
      })
    },
  }
  return lane as LaneType
}

async function look({ read, loginHmac }: UserLookDeps, job: UserLookJob): Promise<UserLookOutcome> {
  const { userId, address, joins, accounts } = job
  const answers = await Promise.all(
    accounts.map(async (accountId) => {
      const shard = homeShard(accountId)
      const seen = await read(shard, [{ read: 'fields', key: membersKey(shard, accountId), fields: [userId] }])
      return seen && { accountId, isMember: seen[0][0] != null }
    }),
  )
  const said = answers.filter((one) => one !== null)
  if (said.length < accounts.length) return { found: null }
  const memberOf = said.filter(({ isMember }) => isMember).map(({ accountId }) => accountId)
  return { found: { joins, accounts, memberOf, hmac: loginHmac(address) } }
}
