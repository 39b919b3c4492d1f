/** read-command - a printed redis-cli command reads the same as the view did, from a real Redis. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { ViewFact } from '../../cluster/behaviour.ts'
import { readCommand } from '../../src/views/read-command.ts'
import { startRedis } from '../support/store/redis.ts'

t.test('read-command: each kind of read is a command that Redis takes and answers', async (t) => {
  const server = await startRedis()
  const redis = new Redis({ path: server.socketPath })
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  await redis.hset('{s000}:h', 'a', '1', 'b', '2')
  for (const id of ['1-1', '2-2']) await redis.xadd('{s000}:x', id, 'f', id)
  for (const score of [5, 7]) await redis.zadd('{s000}:z', score, `m${score}`)
  await redis.set('{s000}:v', 'said')
  const key = (name: string) => `{s000}:${name}`
  const cases: readonly (readonly [ViewFact, unknown])[] = [
    [{ read: 'fields', key: key('h'), fields: ['b', 'none', 'b'] }, ['2', null]],
    [{ read: 'hash', key: key('h') }, ['a', '1', 'b', '2']],
    [{ read: 'range', key: key('x'), from: '1-1', to: '1-1', count: 1 }, [['1-1', ['f', '1-1']]]],
    [{ read: 'newest', key: key('x'), from: '-', to: '+', count: 1 }, [['2-2', ['f', '2-2']]]],
    [{ read: 'last', key: key('x') }, [['2-2', ['f', '2-2']]]],
    [{ read: 'sorted', key: key('z'), min: 0, max: 9, count: 1 }, ['m5', '5']],
    [{ read: 'sorted', key: key('z'), min: 0, max: 9, count: 1, newest: true }, ['m7', '7']],
    [{ read: 'score', key: key('z'), member: 'm5' }, '5'],
    [{ read: 'value', key: key('v') }, 'said'],
  ]
  for (const [fact, expected] of cases) {
    const [command = '', ...args] = readCommand(fact).split(' ')
    t.same(await redis.call(command, ...args), expected, readCommand(fact))
  }
})
