/** user-walk - whoever's list is not what accounts say is met at a start and each night: who was left behind before. */
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard, shortId } from '../../../cluster/id.ts'
import { walkUsers } from '../../../src/service/user-walk.ts'
import { membersKey, USERS_LANE, userKey } from '../../../src/state/dashboard/places.ts'
import { makeReadKeys } from '../../../src/store/read-keys.ts'
import { Browser } from '../../support/clients/browser.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const WAIT_MS = 30_000
const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { account, operatorToken } = service.firstRun
const { accountId } = account

/** Makes a member. Out: his id. */
async function come(address: string, client: string): Promise<string> {
  const path = `POST /v1/operator/accounts/${accountId}/link`
  const made = await service.operate(path, { token: operatorToken, body: { address, role: 'member' } })
  const body = { token: Browser.tokenOf(made.json.url), name: 'Ben', password: PASSWORD }
  const came = await new Browser(origin, client).call('POST /links/consume', body)
  if (came.status !== 200) throw new Error(came.text)
  return came.json.user.userId
}

const rowOf = (userId: string) => userKey(homeShard(userId), userId)
const members = membersKey(homeShard(accountId), accountId)

/** Of a user, what a version before left: made long ago, no word of steps, and no look that is due. */
async function asBefore(userId: string): Promise<void> {
  await redis.hset(rowOf(userId), 'created', '1')
  await redis.hdel(rowOf(userId), 'unsure')
  await redis.zrem(rowOf(userId).replace(/user:.*/, `due:${USERS_LANE}`), shortId(userId))
}

t.test('user-walk: who was out of every account before is forgotten, a member stays [member.index]', async (t) => {
  const out = await come('out@a.example', '192.0.2.1')
  const half = await come('half@a.example', '192.0.2.2')
  const member = await come('member@a.example', '192.0.2.3')
  await service.service.stop()
  for (const userId of [out, half]) await redis.hdel(members, userId)
  await redis.hset(rowOf(out), 'accounts', '[]')
  for (const userId of [out, half, member]) await asBefore(userId)
  await service.restart()
  await until(async () => (await redis.exists(rowOf(out), rowOf(half))) === 0, WAIT_MS)
  t.equal(await redis.hget(rowOf(member), 'accounts'), JSON.stringify([accountId]))
  t.equal(await redis.hget(rowOf(member), 'unsure'), null, 'there was nothing to look at')
  const signIn = (address: string) => new Browser(origin).call('POST /session', { address, password: PASSWORD })
  t.equal((await signIn('half@a.example')).status, 401)
  t.equal((await signIn('member@a.example')).status, 200)
})

t.test('user-walk: it meets many users page by page; what does not answer is for the next one', async (t) => {
  const readKeys = makeReadKeys({ nodeOf: () => redis } as never)
  const shard = 200
  const ids = Array.from({ length: 1_000 }, (_, n) => `01938a00-0000-70c8-8000-${String(n).padStart(12, '0')}`)
  const logins = `{s${shard}}:logins`
  await redis.hset(logins, ...ids.flatMap((id) => [`hmac of ${id}`, id]))
  const asked: string[] = []
  const deps = {
    readKeys,
    shards: () => [shard],
    ask: async (_shard: number, { body }: { readonly body: unknown }) => {
      const { userIds } = body as { readonly userIds: readonly string[] }
      asked.push(...userIds)
      return { kind: 'answer', reply: { kind: 'ordered' } } as const
    },
    newCmdId: () => 'c',
    nowMs: () => 0,
  }
  t.equal(await walkUsers(deps), 1_000)
  t.same([...new Set(asked)].sort(), ids)
  t.equal(await walkUsers({ ...deps, ask: async () => ({ kind: 'unavailable' }) }), 0)
  t.equal(await walkUsers({ ...deps, readKeys: async () => null }), 0)
  await redis.del(logins)
})
