/**
 * readiness - the first reason is said; a process that makes the first account is ready once it is made, others before.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { startService } from '../../src/main.ts'
import { type ReadinessDeps, whyNotReady } from '../../src/service/readiness.ts'
import { freePort } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'
import { startHost } from '../support/service/host.ts'
import { configOf } from '../support/service/service.ts'
import { startRedis } from '../support/store/redis.ts'

const WAIT_MS = 60_000
const LOCK_KEY = '{cl}:first-start'

t.test('readiness: the first reason, and none', async (t) => {
  const well: ReadinessDeps = {
    config: { roles: ['http', 'actors'] },
    store: { connected: true },
    watch: { fault: null, lack: null, share: 0.1 },
    contents: null,
    first: { isDone: true },
  }
  const full = { fault: null, lack: 'memory', share: 0.861 } as const
  const cases: [expected: RegExp | null, deps: Partial<ReadinessDeps>, isServed?: boolean][] = [
    [null, {}],
    [/^the store does not answer$/, { store: { connected: false }, first: { isDone: false } }],
    [/^It was cut$/, { watch: { ...full, fault: 'It was cut' } }],
    [/^the first account is being created$/, { first: { isDone: false }, watch: full }],
    [/^shards are without an owner/, { watch: full }, false],
    [/^the store is nearly full \(86 % of its maxmemory\): new mail is refused$/, { watch: full }],
    [/^the disk is nearly full: new mail is refused$/, { watch: { ...full, lack: 'disk' } }],
    [/^the disk is nearly full: new mail is refused$/, { contents: { hasRoom: false } }],
    [null, { contents: { hasRoom: true } }],
    [null, { watch: full, config: { roles: ['mx', 'actors'] } }],
  ]
  for (const [expected, deps, isServed = true] of cases) {
    const reason = whyNotReady({ ...well, ...deps }, { ready: () => isServed })
    if (expected === null) t.equal(reason, null)
    else t.match(reason, expected)
  }
})

t.test(
  'readiness: 503 while the first account is made, which a process that only listens does not wait for',
  async (t) => {
    const store = await startRedis()
    const redis = new Redis({ path: store.socketPath })
    const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-readiness-'))
    t.teardown(async () => {
      redis.disconnect()
      await store.stop()
      rmSync(dataDir, { recursive: true, force: true })
    })
    const settings = async (roles: string) => ({
      ROLES: roles,
      REDIS_URL: `unix://${store.socketPath}`,
      SECRET_KEY: 'a secret of the tests that is long enough',
      DATA_DIR: dataDir,
      HTTP_PORT: String(await freePort()),
      OPERATOR_PORT: String(await freePort()),
      MX_PORT: '0',
      LOG_LEVEL: 'silent',
    })
    // As if another process were about to make it.
    await redis.set(LOCK_KEY, 'another', 'PX', WAIT_MS)
    const config = configOf(await settings('actors'))
    const starting = startService(config, { print: () => undefined })
    t.teardown(async () => (await starting).stop())
    const http = await startHost(await settings('http'))
    t.teardown(() => http.kill('SIGTERM'))
    t.pass('who only listens is ready')
    t.same(await readyz(config.operatorPort), [503, 'not ready: the first account is being created\n'])
    t.equal(existsSync(join(dataDir, 'first-run.json')), false)
    await redis.del(LOCK_KEY)
    await until(async () => (await readyz(config.operatorPort))[0] === 200, WAIT_MS)
    t.equal(existsSync(join(dataDir, 'first-run.json')), true, 'it is there before anybody is told to come')
  },
)

async function readyz(port: number): Promise<[number, string]> {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } })
  return [answer.status, await answer.text()]
}
