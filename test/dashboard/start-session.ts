/**
 * start-session - sessions on an unreachable shard stay on their user's list, and the caller that ends them gets an
 * error.
 */
import t from 'tap'
import { shardOf } from '../../cluster/id.ts'
import type { Ask } from '../../cluster/work.ts'
import type { DashboardDeps } from '../../src/dashboard/deps.ts'
import { endSessions } from '../../src/dashboard/start-session.ts'

const USER = '01938a00-0000-7000-8000-0000000000aa'
const HERE = '01938a00-0000-7000-8000-000000000001'
const AWAY = '01938a00-0000-7001-8000-000000000002'

t.test(
  'start-session: a session that could not be ended stays listed, the others do not [session.password]',
  async (t) => {
    const orders: string[] = []
    // A cluster that has lost one shard.
    const ask: Ask = async (shard, { name, body }) => {
      if (shard === shardOf(AWAY)) return { kind: 'unavailable' }
      orders.push(`${name} ${JSON.stringify(body)}`)
      return { kind: 'answer', reply: { kind: 'ended' } }
    }
    const deps = { ask, newCmdId: () => '1-1', nowMs: () => 0 } as unknown as DashboardDeps
    const session = (accountId: string, sessionId: string) => ({ accountId, sessionId, hash: `hash of ${sessionId}` })
    const sessions = [session(AWAY, 'one'), session(HERE, 'two'), session(HERE, 'three')]
    t.match(await endSessions(deps, USER, sessions), { status: 503 })
    t.equal(orders.filter((order) => order.startsWith('end-session')).length, 2)
    t.match(orders.at(-1), /^forget-sessions .*\["two","three"\]/)
  },
)
