/** user - a session ends before it leaves its user's list, and begins only with the current password. */
import t from 'tap'
import { beginSession } from '../../../src/actors/dashboard/session.ts'
import { addUser, changeUser, forgetSessions, indexSession } from '../../../src/actors/dashboard/user.ts'
import { packMember } from '../../../src/state/dashboard/member.ts'
import { membersKey, userKey, userSessionsKey } from '../../../src/state/dashboard/places.ts'
import { unpackSessionPlace } from '../../../src/state/dashboard/user.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const ACCOUNT = '01938a00-0000-7000-8000-000000000001'

function makeUser(world: World) {
  const body = { hmac: 'h', address: 'ada@a.example', name: 'Ada', password: 'old' }
  const made = world.run(addUser, body)
  if (made.kind !== 'user') throw new Error('No user')
  const { userId } = made
  const named = { userId, accountId: ACCOUNT, userAgent: 'Chrome' }
  const list = () => world.hash(userSessionsKey(world.shard, userId))
  const index = (hash: string, password: string, sinceMs: number | null = null, showsFactor = false) =>
    world.run(indexSession, { ...named, hash, sinceMs, expects: { password }, showsFactor })
  return { userId, list, index }
}

t.test('user: a session stays on the list until its row has ended [session.password]', (t) => {
  const world = new World(NOW_MS)
  const { userId, list, index } = makeUser(world)
  index('one', 'old')
  const kept = index('two', 'old')
  if (kept.kind !== 'indexed') throw new Error(kept.code)
  const changed = world.run(changeUser, { userId, changes: { password: 'new' }, endsAllBut: kept.sessionId })
  if (changed.kind !== 'changed') throw new Error(changed.code)
  t.same(
    changed.ended.map(({ hash }) => hash),
    ['one'],
  )
  t.equal(list().size, 2)
  world.run(forgetSessions, { userId, sessionIds: changed.ended.map(({ sessionId }) => sessionId) })
  t.same([...list().keys()], [kept.sessionId])
  t.end()
})

t.test('user: a sign-in that waited while the password changed opens nothing [session.password]', (t) => {
  const world = new World(NOW_MS)
  const { userId, list, index } = makeUser(world)
  world.run(changeUser, { userId, changes: { password: 'new' }, endsAllBut: null })
  t.match(index('late', 'old'), { kind: 'refused', code: 'sign_in_failed' })
  t.equal(list().size, 0)
  t.equal(index('new', 'new').kind, 'indexed')
  t.end()
})

t.test('user: a sign-in that waited while a second factor was added opens nothing without it [session.factor]', (t) => {
  const world = new World(NOW_MS)
  const { userId, list, index } = makeUser(world)
  world.run(changeUser, { userId, changes: { totp: 'sealed' } })
  t.match(index('late', 'old'), { kind: 'refused', code: 'sign_in_failed' })
  t.equal(list().size, 0)
  t.equal(index('shown', 'old', null, true).kind, 'indexed')
  t.end()
})

t.test('user: a session of another account keeps the begin of the first one [session.life]', (t) => {
  const world = new World(NOW_MS)
  const { userId, list, index } = makeUser(world)
  const sinceMs = NOW_MS - 1_000_000
  const named = index('one', 'old', sinceMs)
  if (named.kind !== 'indexed') throw new Error(named.code)
  t.equal(unpackSessionPlace(list().get(named.sessionId) ?? '').createdAtMs, sinceMs)
  const member = packMember({ level: 'w', sinceMs: NOW_MS })
  world.apply({ key: membersKey(world.shard, ACCOUNT), write: 'HSET', args: [userId, member] })
  const body = {
    accountId: ACCOUNT,
    userId,
    sessionId: named.sessionId,
    hash: 'one',
    isConfirmed: false,
    sinceMs,
    factorMs: 0,
  }
  t.match(world.run(beginSession, body), { kind: 'session', session: { sinceMs, seenMs: NOW_MS } })
  t.end()
})

t.test('user: ten devices at most, the last first; a change of password ends them all [session.limits]', (t) => {
  const world = new World(NOW_MS)
  const { userId } = makeUser(world)
  const signIn = (deviceId: string) =>
    world.run(indexSession, {
      ...{ userId, accountId: ACCOUNT, userAgent: 'Chrome', hash: deviceId, sinceMs: null, showsFactor: false },
      expects: { password: 'old' },
      deviceId,
    })
  const devices = () => JSON.parse(world.hash(userKey(world.shard, userId)).get('devices') ?? '[]') as string[]
  for (const deviceId of 'abcdefghijka') signIn(deviceId)
  t.equal(devices().join(''), 'akjihgfedc')
  world.run(changeUser, { userId, changes: { name: 'Ada L.' } })
  t.equal(devices().length, 10)
  world.run(changeUser, { userId, changes: { password: 'new' } })
  t.same(devices(), [])
  t.end()
})
