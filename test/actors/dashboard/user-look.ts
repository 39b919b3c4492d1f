/**
 * user-look - a user's list becomes what the accounts say, unless a step is in progress. Users without an account are
 * deleted.
 */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { beginJoin, joinAccount } from '../../../src/actors/dashboard/join.ts'
import { addUser } from '../../../src/actors/dashboard/user.ts'
import {
  FORGET_USER_TIMER,
  lookAtUsers,
  prepareUserLook,
  type UserFound,
  type UserLookJob,
  userLookOutcome,
} from '../../../src/actors/dashboard/user-look.ts'
import { loginsKey, USERS_LANE, userKey, userSessionsKey } from '../../../src/state/dashboard/places.ts'
import { LOOK_AFTER_MS } from '../../../src/state/dashboard/user-list.ts'
import { type Claimed, World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const ACCOUNT = '01938a00-0000-7000-8000-000000000001'
const OTHER = '01938a00-0000-7000-8000-000000000002'

function makeUser() {
  const world = new World(NOW_MS)
  const made = world.run(addUser, { hmac: 'h', address: 'ada@a.example', name: 'Ada', password: 'old' })
  if (made.kind !== 'user') throw new Error('No user')
  const { userId } = made
  const row = () => world.hash(userKey(world.shard, userId))
  const join = (accountId: string) => {
    world.run(beginJoin, { userId, accountId })
    world.run(joinAccount, { userId, accountId, isMember: true })
  }
  const item = () => world.items.get(`${USERS_LANE} ${shortId(userId)}`)
  /** Time passes until the look is due, and it is claimed. */
  const claim = (): Claimed<UserLookJob> => {
    const due = item()
    if (due === undefined) throw new Error('No look is due')
    world.nowMs = Math.max(world.nowMs, due.atMs)
    return world.claim<UserLookJob>(prepareUserLook, due) as Claimed<UserLookJob>
  }
  const end = (claimed: Claimed<UserLookJob>, memberOf: readonly string[] | null) => {
    const { accounts, joins } = claimed.job
    const found: UserFound | null = memberOf && { accounts, joins, memberOf, hmac: 'h' }
    world.end(userLookOutcome, claimed, { found })
  }
  const accounts = () => JSON.parse(row().get('accounts') ?? 'null') as string[] | null
  const unsure = () => JSON.parse(row().get('unsure') ?? 'null') as Record<string, number> | null
  return { world, userId, row, join, item, claim, end, accounts, unsure }
}

t.test('user-look: the list keeps accounts that have the user, and loses the others [member.index]', (t) => {
  const { join, item, claim, end, accounts, unsure } = makeUser()
  join(ACCOUNT)
  join(OTHER)
  const claimed = claim()
  t.match(claimed.job, { address: 'ada@a.example', accounts: [OTHER, ACCOUNT] })
  end(claimed, [ACCOUNT])
  t.same([accounts(), unsure(), item()], [[ACCOUNT], {}, undefined], 'and there is nothing more to look at')
  t.end()
})

t.test('user-look: an account that was removed from the list but has the user is restored [member.index]', (t) => {
  const { world, userId, join, claim, end, accounts } = makeUser()
  join(ACCOUNT)
  join(OTHER)
  world.run(joinAccount, { userId, accountId: ACCOUNT, isMember: false })
  end(claim(), [ACCOUNT, OTHER])
  t.same(accounts(), [OTHER, ACCOUNT])
  t.end()
})

t.test('user-look: a user in no account is deleted, and the address is free [member.index]', (t) => {
  const { world, userId, row, join, item, claim, end } = makeUser()
  join(ACCOUNT)
  end(claim(), [])
  t.same([row().size, item(), [...world.hash(loginsKey(world.shard))]], [0, undefined, []])
  t.notOk(world.keys.has(userSessionsKey(world.shard, userId)))
  t.match(world.run(beginJoin, { userId, accountId: ACCOUNT }), { kind: 'refused', code: 'not_found' })
  t.end()
})

t.test('user-look: a user created for a link that makes no member is deleted too [member.index]', (t) => {
  const { row, claim, end } = makeUser()
  const claimed = claim()
  t.same(claimed.job.accounts, [])
  end(claimed, [])
  t.equal(row().size, 0)
  t.end()
})

t.test('user-look: an ordered check does not delete a user created a moment ago [member.index]', (t) => {
  const { world, userId, row, item, claim, end } = makeUser()
  world.nowMs += 1_000
  world.run(lookAtUsers, { userIds: [userId] })
  end(claim(), [])
  t.equal(row().get('name'), 'Ada')
  t.equal(item()?.atMs, NOW_MS + LOOK_AFTER_MS)
  end(claim(), [])
  t.equal(row().size, 0)
  t.end()
})

t.test('user-look: an address that now belongs to another user stays with that user [member.index]', (t) => {
  const { world, row, claim, end } = makeUser()
  world.apply({ key: loginsKey(world.shard), write: 'HSET', args: ['h', 'another'] })
  end(claim(), [])
  t.same([row().size, [...world.hash(loginsKey(world.shard))]], [0, [['h', 'another']]])
  t.end()
})

t.test('user-look: an account with a step in progress is skipped and checked later [member.index]', (t) => {
  const { world, userId, join, item, claim, end, accounts, unsure } = makeUser()
  join(ACCOUNT)
  world.nowMs += LOOK_AFTER_MS - 1
  const atMs = world.nowMs
  world.run(beginJoin, { userId, accountId: OTHER })
  const claimed = claim()
  t.same(claimed.job.accounts, [ACCOUNT])
  end(claimed, [])
  t.same([accounts(), unsure()], [[OTHER], { [OTHER]: atMs }])
  t.equal(item()?.atMs, atMs + LOOK_AFTER_MS)
  end(claim(), [OTHER])
  t.same([accounts(), item()], [[OTHER], undefined])
  t.end()
})

t.test('user-look: a step taken meanwhile, or an account without an answer, repeats the check [member.index]', (t) => {
  const { world, userId, row, join, item, claim, end, accounts } = makeUser()
  join(ACCOUNT)
  const silent = claim()
  end(silent, null)
  t.same([accounts(), item()?.atMs], [[ACCOUNT], world.nowMs + 60_000])
  const claimed = claim()
  world.run(beginJoin, { userId, accountId: ACCOUNT })
  end(claimed, [])
  t.same(accounts(), [ACCOUNT], 'what was said before the step counts no more')
  t.ok(item(), 'and it comes again')
  const before = row()
  end(claimed, [])
  end(silent, [])
  t.same(row(), before, 'an end that comes again or late changes nothing')
  t.end()
})

t.test(
  'user-look: it runs by order and by earlier timers, and asks nothing about a deleted user [member.index]',
  (t) => {
    const { world, userId, join, item, claim, end, accounts } = makeUser()
    join(ACCOUNT)
    end(claim(), [ACCOUNT])
    t.equal(item(), undefined)
    t.same(world.run(lookAtUsers, { userIds: [userId] }), { kind: 'ordered' })
    t.equal(item()?.atMs, world.nowMs)
    end(claim(), [ACCOUNT])
    const timer = `${FORGET_USER_TIMER}:${userId}:h`
    world.items.set(`timers ${timer}`, { lane: 'timers', item: timer, atMs: world.nowMs, claims: 0 })
    world.fireTimers()
    end(claim(), [ACCOUNT])
    t.same(accounts(), [ACCOUNT])
    world.run(lookAtUsers, { userIds: [OTHER] })
    const gone = world.items.get(`${USERS_LANE} ${shortId(OTHER)}`)
    t.equal(gone && world.claim(prepareUserLook, gone), null)
    t.end()
  },
)
