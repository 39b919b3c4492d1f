/** first-start - the first account of an empty store, over a real Redis: files, modes, and a crash at each step. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { parseKey } from '../../src/http/key.ts'
import { type FirstAccount, type FirstStartDeps, firstStart, formatWelcome } from '../../src/service/first-start.ts'
import { accountsKey, apiKeyKey } from '../../src/state/keys.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { startRedis } from '../support/store/redis.ts'

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
const folders: string[] = []
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
t.beforeEach(() => redis.flushall())

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-first-'))
  folders.push(folder)
  return folder
}

/** Writes what the account's actor writes of it, as far as a first start looks at it. */
async function commit(shard: number, account: FirstAccount): Promise<boolean> {
  const row = (hash: string, fields: object) => redis.hset(apiKeyKey(shard, hash), { accountId: 'account', ...fields })
  await row(account.accountKey.hash, { kind: 'account' })
  await row(account.liveKey.hash, { kind: 'server', serverId: 'live', streamId: 'live-stream' })
  await row(account.testKey.hash, { kind: 'server', serverId: 'test', streamId: 'test-stream' })
  await redis.zadd(accountsKey(shard), 1, 'account')
  return true
}

function depsOf(dataDir: string, createAccount: FirstStartDeps['createAccount'] = commit): FirstStartDeps {
  return {
    nodes: oneNode(() => redis),
    dataDir,
    findUrls: async () => ({ baseUrl: 'http://api.test', operatorUrl: 'http://operator.test' }),
    linkUrl: (baseUrl, linkId) => `${baseUrl}/dashboard/link#${linkId}.mac`,
    createAccount,
  }
}

const dies = async (): Promise<never> => {
  throw new Error('killed')
}

t.test('empty store: file with every key, for its owner only, nothing left pending', async (t) => {
  const dataDir = makeFolder()
  const made = await firstStart(depsOf(dataDir))
  const path = join(dataDir, 'first-run.json')
  t.equal(made?.path, path)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.strictSame(readdirSync(dataDir), ['first-run.json'])
  const firstRun = JSON.parse(readFileSync(path, 'utf8'))
  t.strictSame(firstRun, made?.firstRun)
  t.match(firstRun, {
    baseUrl: 'http://api.test',
    operatorUrl: 'http://operator.test',
    dashboardUrl: /^http:\/\/api\.test\/dashboard\/link#[0-9a-f]{34}\.mac$/,
    operatorToken: /^ok_/,
    account: { accountId: 'account', token: /^ak_/ },
    liveServer: { serverId: 'live', token: /^sk_(?!test_)/, streamId: 'live-stream' },
    testServer: { serverId: 'test', token: /^sk_test_/, streamId: 'test-stream' },
  })
  for (const token of [firstRun.operatorToken, firstRun.account.token, firstRun.liveServer.token])
    t.equal(parseKey(token)?.shard, 0)
})

t.test('store with an account: nothing is made', async (t) => {
  await firstStart(depsOf(makeFolder()))
  const other = makeFolder()
  t.equal(await firstStart(depsOf(other, dies)), null)
  t.strictSame(readdirSync(other), [])
})

t.test('keys are on disk before the store hears of them', async (t) => {
  const dataDir = makeFolder()
  const pending = join(dataDir, 'first-run.json.pending')
  await firstStart(
    depsOf(dataDir, async (shard, account) => {
      const { testToken } = JSON.parse(readFileSync(pending, 'utf8'))
      t.equal(parseKey(testToken)?.hash, account.testKey.hash)
      t.equal(statSync(pending).mode & 0o777, 0o600)
      return commit(shard, account)
    }),
  )
  t.equal(existsSync(pending), false)
})

t.test('a shard that is on its way is asked again, for the same keys', async (t) => {
  const asked: FirstAccount[] = []
  const made = await firstStart(
    depsOf(makeFolder(), async (shard, account) => {
      asked.push(account)
      return asked.length < 3 ? false : commit(shard, account)
    }),
  )
  t.equal(made?.firstRun.account.accountId, 'account')
  t.equal(asked.length, 3)
  t.strictSame(asked[0], asked[2])
})

t.test('killed before the commit: the same keys are asked for again', async (t) => {
  const dataDir = makeFolder()
  await t.rejects(firstStart(depsOf(dataDir, dies)), /killed/)
  const { testToken } = JSON.parse(readFileSync(join(dataDir, 'first-run.json.pending'), 'utf8'))
  const made = await firstStart(depsOf(dataDir))
  t.equal(made?.firstRun.testServer.token, testToken)
})

t.test('killed after the commit: finished without a second account', async (t) => {
  const dataDir = makeFolder()
  const killed = firstStart(
    depsOf(dataDir, async (shard, account) => {
      await commit(shard, account)
      return dies()
    }),
  )
  await t.rejects(killed, /killed/)
  const made = await firstStart(depsOf(dataDir, dies))
  t.equal(made?.firstRun.testServer.serverId, 'test')
  t.strictSame(readdirSync(dataDir), ['first-run.json'])
})

t.test('killed before the rename: the pending file becomes the file', async (t) => {
  const dataDir = makeFolder()
  const made = await firstStart(depsOf(dataDir))
  const path = join(dataDir, 'first-run.json')
  writeFileSync(`${path}.pending`, readFileSync(path))
  rmSync(path)
  const again = await firstStart(depsOf(dataDir, dies))
  t.strictSame(again?.firstRun, made?.firstRun)
  t.strictSame(readdirSync(dataDir), ['first-run.json'])
})

t.test('pending keys that the store never heard of mean nothing once it has an account', async (t) => {
  const late = makeFolder()
  await t.rejects(firstStart(depsOf(late, dies)), /killed/)
  await firstStart(depsOf(makeFolder()))
  t.equal(await firstStart(depsOf(late, dies)), null)
  t.strictSame(readdirSync(late), [])
})

t.test('many at once: one makes the account', async (t) => {
  let commits = 0
  const counted = async (shard: number, account: FirstAccount) => {
    commits += 1
    return commit(shard, account)
  }
  const made = await Promise.all(Array.from({ length: 5 }, () => firstStart(depsOf(makeFolder(), counted))))
  t.equal(commits, 1)
  t.equal(made.filter((one) => one !== null).length, 1)
  t.equal(await redis.exists('{cl}:first-start'), 0, 'the lock is given back')
})

t.test('several on one directory: one makes the account and its file', async (t) => {
  const dataDir = makeFolder()
  const made = await Promise.all(Array.from({ length: 5 }, () => firstStart(depsOf(dataDir))))
  t.equal(made.filter((one) => one !== null).length, 1)
  t.strictSame(readdirSync(dataDir), ['first-run.json'])
})

t.test('welcome names the file and shows the test key only', async (t) => {
  const made = await firstStart(depsOf(makeFolder()))
  const firstRun = made?.firstRun
  if (firstRun === undefined) throw new Error('Nothing was made')
  const text = formatWelcome('/data/first-run.json', firstRun, true)
  t.match(text, `Dashboard: ${firstRun.dashboardUrl}`)
  const printed = formatWelcome('/data/first-run.json', firstRun, false)
  t.notMatch(printed, firstRun.dashboardUrl, 'a journal is no terminal')
  t.notMatch(printed, firstRun.testServer.token, 'nor is the key in one')
  t.match(printed, `-H "Authorization: Bearer $(node -p 'require("/data/first-run.json").testServer.token')"`)
  t.match(text, '/data/first-run.json')
  t.match(text, `curl http://api.test/v1/email -H 'Authorization: Bearer ${firstRun.testServer.token}'`)
  t.match(text, 'you@simulator.test')
  for (const token of [firstRun.operatorToken, firstRun.account.token, firstRun.liveServer.token])
    t.notMatch(text, token)
})
