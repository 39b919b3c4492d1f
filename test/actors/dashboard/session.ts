/** session - a session that waits for a second factor continues once it is shown, or if its account requires none. */
import t from 'tap'
import { makeIds } from '../../../cluster/id.ts'
import { beginSession, markSession } from '../../../src/actors/dashboard/session.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { fieldsOfSettings, packMember } from '../../../src/state/dashboard/member.ts'
import { memberSessionsKey, membersKey, settingsKey } from '../../../src/state/dashboard/places.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const accountId = '01938a00-0000-7000-8000-000000000001'
const userId = '01938a00-0000-7000-8000-000000000002'
const hash = 'a'.repeat(64)

function open(factorMs: number) {
  const world = new World(NOW_MS)
  const key = settingsKey(world.shard, accountId)
  const set = (requireSecondFactor: boolean) =>
    world.apply({ key, write: 'HSET', args: fieldsOfSettings({ requireSecondFactor }) })
  const member = packMember({ level: 'w', sinceMs: NOW_MS })
  world.apply({ key: membersKey(world.shard, accountId), write: 'HSET', args: [userId, member] })
  set(true)
  const body = { accountId, userId, sessionId: 's', hash, isConfirmed: true, sinceMs: NOW_MS, factorMs }
  const begun = world.run(beginSession, body)
  const mark = (showsFactor: boolean) => world.run(markSession, { hash, isConfirmed: false, showsFactor })
  return { set, begun, mark }
}

t.test(
  'session: a session in which no factor was shown has none, whatever the factors of its user [session.factor]',
  (t) => {
    t.match(open(NOW_MS).begun, { session: { needsFactor: false, factorMs: NOW_MS } })
    const { begun, mark, set } = open(0)
    t.match(begun, { session: { needsFactor: true } })
    t.match(mark(false), { session: { needsFactor: true } }, 'it was only used')
    t.match(mark(true), { session: { needsFactor: false } })
    set(true)
    t.match(mark(false), { session: { needsFactor: false } }, 'it was shown')
    const other = open(0)
    other.set(false)
    t.match(other.mark(false), { session: { needsFactor: false } }, 'none is taken any more')
    t.end()
  },
)

t.test('session: expired sessions leave the list of their member, and an empty list is removed [session.life]', (t) => {
  const world = new World(NOW_MS)
  const member = packMember({ level: 'w', sinceMs: NOW_MS })
  world.apply({ key: membersKey(world.shard, accountId), write: 'HSET', args: [userId, member] })
  const list = () => world.hash(memberSessionsKey(world.shard, accountId, userId)).size
  const begin = (n: number) => {
    const sessionId = makeIds({ shard: world.shard, last: '', random: () => n / 100 }).next(world.nowMs)
    const named = { accountId, userId, sessionId, hash: String(n).padStart(64, '0') }
    world.run(beginSession, { ...named, isConfirmed: true, sinceMs: world.nowMs, factorMs: 0 })
  }
  begin(1)
  world.nowMs += 29 * DAY_MS
  begin(2)
  t.equal(list(), 2)
  world.nowMs += 2 * DAY_MS
  begin(3)
  t.equal(list(), 2, 'the first is 31 days old')
  world.nowMs += 31 * DAY_MS
  world.expire()
  t.equal(list(), 0)
  t.end()
})
