/** member - another role is written into the sessions that live, and into no other. */
import { createHash } from 'node:crypto'
import t from 'tap'
import { SESSION_IDLE_DAYS } from '../../../schemas/limits.ts'
import { changeMember } from '../../../src/actors/dashboard/member.ts'
import { beginSession } from '../../../src/actors/dashboard/session.ts'
import { packMember } from '../../../src/state/dashboard/member.ts'
import { memberSessionsKey, membersKey } from '../../../src/state/dashboard/places.ts'
import { proofOf, sessionEndMs } from '../../../src/state/dashboard/session.ts'
import { apiKeyKey } from '../../../src/state/keys.ts'
import { makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 23)
const DAY_MS = 86_400_000

t.test('member: another role brings no session back that has ended by itself [member.role]', (t) => {
  const world = new World(NOW_MS)
  const { shard } = world
  const { accountId } = makeTenant(world)
  const begin = (userId: string, level: 'w' | 'a', name: string): string => {
    const hash = createHash('sha256').update(name).digest('hex')
    const args = [userId, packMember({ level, sinceMs: NOW_MS })]
    world.apply({ key: membersKey(shard, accountId), write: 'HSET', args })
    const more = { isConfirmed: true, sinceMs: world.nowMs, factorMs: 0 }
    world.run(beginSession, { accountId, userId, sessionId: name, hash, ...more })
    return hash
  }
  const past = begin('ben', 'w', 'past')
  world.nowMs += (SESSION_IDLE_DAYS + 1) * DAY_MS
  const lives = begin('ben', 'w', 'lives')
  const keyHash = proofOf('a', begin('ada', 'a', 'hers'))
  t.equal(world.run(changeMember, { accountId, keyHash, userId: 'ben', level: 'r' }).kind, 'member')
  t.notOk(world.keys.has(apiKeyKey(shard, past)))
  t.equal(world.hash(apiKeyKey(shard, lives)).get('level'), 'r')
  t.same([...world.hash(memberSessionsKey(shard, accountId, 'ben')).keys()], ['lives'])
  const endMs = sessionEndMs({ sinceMs: world.nowMs, seenMs: world.nowMs })
  t.ok(world.ops.some(({ key, args }) => key === apiKeyKey(shard, lives) && args[0] === String(endMs)))
  t.end()
})
