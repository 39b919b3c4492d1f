/** session-client - a client of the dashboard's API, with a session in a cookie and the origin of our page */

import type { Agent } from 'node:http'
import { Redis } from 'ioredis'
import { makeIds } from '../../cluster/id.ts'
import { makeKey, parseKey } from '../../src/http/key.ts'
import { sessionOps } from '../../src/state/dashboard/session.ts'
import { apiKeyKey } from '../../src/state/keys.ts'
import { type Client, postTo } from './batches.ts'
import type { Target } from './message.ts'

/** A client with a session of the account of the target's first key, and the server of that key. */
export interface SessionClient {
  readonly client: Client
  readonly serverId: string
}

/** Makes one. Takes the socket of the store, into which the session is written as by signing in. */
export async function openSessionClient(
  socketPath: string,
  { port, keys }: Pick<Target, 'port' | 'keys'>,
  agent: Agent,
): Promise<SessionClient> {
  const key = parseKey(keys[0] ?? '')
  if (key === null) throw new Error('The target has no key')
  const { shard } = key
  const redis = new Redis(socketPath)
  const [accountId, serverId] = await redis.hmget(apiKeyKey(shard, key.hash), 'accountId', 'serverId')
  if (accountId == null || serverId == null) throw new Error('The key is of no server')
  const nowMs = Date.now()
  const ids = makeIds({ shard, last: '', random: Math.random })
  const { token, hash } = makeKey('ss', shard)
  const times = { sinceMs: nowMs, seenMs: nowMs, confirmedMs: 0, factorMs: 0, needsFactor: false }
  const row = { accountId, sessionId: ids.next(nowMs), userId: ids.next(nowMs), level: 'a', ...times } as const
  for (const op of sessionOps(shard, hash, row)) await redis.call(op.write, op.key, ...(op.args as string[]))
  redis.disconnect()
  const headers = { cookie: `sendwright=${token}`, origin: `http://localhost:${port}` }
  const post = postTo({ port, agent, headersOf: () => headers })
  return { client: (path, body) => post(`/dashboard/api${path}`, body), serverId }
}
