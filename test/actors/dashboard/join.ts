/** join - each step notes its account before that is asked; a list is never cut; without an account nothing is kept. */
import t from 'tap'
import { USER_ACCOUNTS_MAX } from '../../../schemas/limits.ts'
import { beginJoin, beginLeave, joinAccount } from '../../../src/actors/dashboard/join.ts'
import { addUser, changeUser, indexSession } from '../../../src/actors/dashboard/user.ts'
import { usedLinksKey, userKey, userSessionsKey } from '../../../src/state/dashboard/places.ts'
import { LOOK_AFTER_MS, STEP_MS } from '../../../src/state/dashboard/user-list.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const ACCOUNT = '01938a00-0000-7000-8000-000000000001'
const OTHER = '01938a00-0000-7000-8000-000000000002'

function makeUser(hmac = 'h') {
  const world = new World(NOW_MS)
  const made = world.run(addUser, { hmac, address: 'ada@a.example', name: 'Ada', password: 'old' })
  if (made.kind !== 'user') throw new Error('No user')
  const { userId } = made
  const row = () => world.hash(userKey(world.shard, userId))
  const begin = (accountId: string) => world.run(beginJoin, { userId, accountId })
  const beginToLeave = (accountId: string) => world.run(beginLeave, { userId, accountId, hmac })
  const join = (accountId: string) => world.run(joinAccount, { userId, accountId, isMember: true })
  const leave = (accountId: string, joins = Number(row().get('joins'))) =>
    world.run(joinAccount, { userId, accountId, isMember: false, joins })
  const accounts = () => JSON.parse(row().get('accounts') ?? 'null') as string[] | null
  const unsure = () => JSON.parse(row().get('unsure') ?? '{}') as Record<string, number>
  const dueMs = () => world.deliveries().map(({ lane, atMs }) => [lane, atMs - NOW_MS])
  return { world, userId, row, begin, beginToLeave, join, leave, accounts, unsure, dueMs }
}

t.test('join: a user without an account keeps no second factor and no session [session.factor]', (t) => {
  const { world, userId, row, join, leave } = makeUser()
  const list = () => world.hash(userSessionsKey(world.shard, userId))
  join(ACCOUNT)
  join(OTHER)
  const session = { userId, accountId: ACCOUNT, userAgent: 'Chrome', hash: 'one', sinceMs: null, showsFactor: false }
  world.run(indexSession, { ...session, expects: { password: 'old' } })
  world.run(changeUser, { userId, changes: { totp: 'sealed', codes: ['x'] } })
  leave(OTHER)
  t.match([row().get('codes'), list().size], ['["x"]', 1], 'one is left')
  leave(ACCOUNT)
  t.match([row().get('codes'), list().size, row().get('totp')], ['[]', 0, ''])
  t.end()
})

t.test(
  'join: each step records its account and time, and orders a check of its user after the first [member.index]',
  (t) => {
    const { world, begin, beginToLeave, join, leave, accounts, unsure, dueMs, row } = makeUser()
    t.same(dueMs(), [['users', LOOK_AFTER_MS]], 'who has none is looked at, too')
    world.nowMs += 1_000
    t.same(begin(ACCOUNT), { kind: 'begun', untilMs: NOW_MS + 1_000 + STEP_MS })
    t.same([accounts(), unsure()], [[ACCOUNT], { [ACCOUNT]: NOW_MS + 1_000 }])
    t.same(dueMs(), [['users', 1_000 + LOOK_AFTER_MS]])
    join(ACCOUNT)
    world.nowMs += 1_000
    join(OTHER)
    t.same(accounts(), [OTHER, ACCOUNT], 'the last one stands first')
    t.same(unsure(), { [ACCOUNT]: NOW_MS + 1_000, [OTHER]: NOW_MS + 2_000 })
    t.same(dueMs(), [['users', 1_000 + LOOK_AFTER_MS]], 'another step puts nothing off')
    world.nowMs += 1_000
    t.same(beginToLeave(OTHER), { kind: 'begun', untilMs: NOW_MS + 3_000 + STEP_MS })
    t.same([accounts(), unsure()[OTHER]], [[OTHER, ACCOUNT], NOW_MS + 3_000], 'the account decides')
    leave(OTHER)
    t.same([accounts(), row().get('joins')], [[ACCOUNT], '5'])
    world.nowMs += 2 * LOOK_AFTER_MS
    begin(OTHER)
    t.same(dueMs(), [['users', 3_000 + 2 * LOOK_AFTER_MS]], 'one that is late is due at once')
    t.end()
  },
)

t.test(
  'join: a user who leaves loses links of the operator, and nothing of a stranger changes [link.operator]',
  (t) => {
    const { world, row, beginToLeave, join } = makeUser()
    const used = () => world.hash(usedLinksKey(world.shard, 'h')).get('at')
    join(ACCOUNT)
    const before = row()
    t.match(beginToLeave(OTHER), { kind: 'refused', code: 'not_found' })
    t.same([row(), used()], [before, undefined])
    beginToLeave(ACCOUNT)
    t.equal(used(), String(NOW_MS))
    t.match(world.run(beginLeave, { userId: OTHER, accountId: ACCOUNT, hmac: 'x' }), { code: 'not_found' })
    t.end()
  },
)

t.test('join: a list that was read before another step changes nothing [member.index]', (t) => {
  const { begin, beginToLeave, join, leave, accounts, row } = makeUser()
  join(ACCOUNT)
  for (const step of [() => begin(ACCOUNT), () => beginToLeave(ACCOUNT), () => join(ACCOUNT)]) {
    const joins = Number(row().get('joins'))
    step()
    t.match(leave(ACCOUNT, joins), { kind: 'joined', isDone: false })
    t.same(accounts(), [ACCOUNT])
  }
  t.match(leave(ACCOUNT), { isDone: true })
  t.same(accounts(), [])
  t.end()
})

t.test(
  'join: a user in the maximum number of accounts loses none, and joining another is refused [member.accounts]',
  (t) => {
    const { begin, join, leave, accounts } = makeUser()
    const ids = Array.from({ length: USER_ACCOUNTS_MAX }, (_, n) => ACCOUNT.replace(/...$/, String(n).padStart(3, '0')))
    for (const id of ids) {
      t.equal(begin(id).kind, 'begun')
      join(id)
    }
    const one = ACCOUNT.replace(/...$/, '999')
    t.match(begin(one), { kind: 'refused', code: 'account_limit', extra: { max: USER_ACCOUNTS_MAX } })
    t.same(accounts(), ids.toReversed())
    t.match(begin(ids[0] as string), { kind: 'begun' }, 'one that he is in is none more')
    leave(ids[1] as string)
    t.equal(begin(one).kind, 'begun')
    // An account that the user joined meanwhile is not lost either.
    join(ids[1] as string)
    t.equal(accounts()?.length, USER_ACCOUNTS_MAX + 1)
    t.end()
  },
)
