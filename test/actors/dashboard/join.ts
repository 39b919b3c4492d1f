/** join - a user's list follows what accounts decide; without one he is forgotten, unless he joins meanwhile. */
import t from 'tap'
import { beginJoin, joinAccount } from '../../../src/actors/dashboard/join.ts'
import { addUser, changeUser, indexSession, WITHOUT_ACCOUNT_MS } from '../../../src/actors/dashboard/user.ts'
import { loginsKey, userKey, userSessionsKey } from '../../../src/state/dashboard/places.ts'
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
  const begin = (accountId: string): number => {
    const begun = world.run(beginJoin, { userId, accountId })
    if (begun.kind !== 'begun') throw new Error(begun.code)
    return begun.joins
  }
  const join = (accountId: string) => world.run(joinAccount, { userId, accountId, isMember: true })
  const leave = (accountId: string, joins = Number(row().get('joins'))) =>
    world.run(joinAccount, { userId, accountId, isMember: false, joins, hmac })
  const accounts = () => JSON.parse(row().get('accounts') ?? 'null') as string[] | null
  const later = () => {
    world.nowMs += WITHOUT_ACCOUNT_MS
    world.fireTimers()
    return accounts()
  }
  return { world, userId, row, begin, join, leave, accounts, later }
}

t.test('join: who is out of every account keeps no second factor and no session [session.factor]', (t) => {
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

t.test('join: who has no account for an hour is forgotten, and his address is free [member.index]', (t) => {
  const { world, userId, row, join, leave, later } = makeUser()
  join(ACCOUNT)
  t.same(later(), [ACCOUNT], 'a member stays')
  leave(ACCOUNT)
  t.equal(row().get('name'), 'Ada', 'for an hour')
  t.equal(later(), null)
  t.equal(row().size, 0)
  t.same([...world.hash(loginsKey(world.shard))], [])
  t.match(world.run(beginJoin, { userId, accountId: ACCOUNT }), { kind: 'refused', code: 'not_found' })
  t.end()
})

t.test('join: who was made for a link that makes no member is forgotten too [member.index]', (t) => {
  const { later } = makeUser()
  t.equal(later(), null)
  t.end()
})

t.test('join: an address that is another user now stays his [member.index]', (t) => {
  const { world, join, leave, later } = makeUser()
  join(ACCOUNT)
  leave(ACCOUNT)
  world.apply({ key: loginsKey(world.shard), write: 'HSET', args: ['h', 'another'] })
  t.equal(later(), null)
  t.same([...world.hash(loginsKey(world.shard))], [['h', 'another']])
  t.end()
})

t.test('join: who joins while he leaves is kept, at each step of both [member.index]', (t) => {
  const { begin, join, leave, accounts, later } = makeUser()
  join(ACCOUNT)
  begin(OTHER)
  leave(ACCOUNT)
  t.same(later(), [OTHER], 'another account that is still asked holds him')
  join(OTHER)
  const joins = begin(ACCOUNT)
  begin(ACCOUNT)
  t.match(leave(ACCOUNT, joins), { kind: 'joined', isDone: false }, 'what was read is old')
  t.same(accounts(), [OTHER, ACCOUNT])
  t.match(leave(ACCOUNT), { isDone: true })
  leave(OTHER)
  t.same(accounts(), [])
  join(ACCOUNT)
  t.same(later(), [ACCOUNT], 'the account had said yes before its step was taken off')
  t.end()
})
