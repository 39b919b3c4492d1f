/**
 * backup-rewrites - backups that are made while segments of the log are sealed and written again by erasures: from each
 * one every message of every segment opens, and every body.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { unpackSealed } from '../../../src/state/message/sealed.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { sendwright } from '../../support/service/command-line.ts'
import { startTestService } from '../../support/service/service.ts'

const BACKUPS = Number(process.env.BACKUPS ?? 4)
/** Days of mail, each a segment, and messages of each. */
const DAYS = 4
const EACH = 200
const HOT_DAYS = 4
const WAIT_MS = 120_000

t.test(
  'backup: every message opens from a backup made while segments are rewritten',
  {
    skip: MOVED_CLOCK_SKIP,
  },
  async (t) => {
    const clock = makeMovedClock()
    const service = await clock.around(() => startTestService({ CONTENT_STORE: 'file', HOT_DAYS: String(HOT_DAYS) }))
    const redis = new Redis({ path: service.redis.socketPath })
    const folder = mkdtempSync(join(tmpdir(), 'sendwright-rewrites-'))
    t.teardown(async () => {
      redis.disconnect()
      await service.stop()
      rmSync(folder, { recursive: true, force: true })
    })
    const { testServer, account } = service.firstRun
    const settings = { SECRET_KEY: service.config.secretKey as string, CONTENT_STORE: 'file' }
    const installation = { ...settings, REDIS_URL: `unix://${service.redis.socketPath}`, DATA_DIR: service.dataDir }
    const rows = async () =>
      Object.values(await redis.hgetall(`{s000}:sealed:${testServer.serverId}`)).map(unpackSealed)
    const mail = (n: number) => {
      const to = [`delivered+p${n % BACKUPS}@simulator.test`]
      return { from: 'shop@simulator.test', to, subject: `Order ${n}`, text: `Order ${n}.` }
    }
    for (let day = 0; day <= DAYS; day += 1) {
      clock.moveTo(day)
      for (let from = 0; from < (day === DAYS ? 1 : EACH); from += 100) {
        const messages = Array.from({ length: day === DAYS ? 1 : 100 }, (_, n) => mail(from + n))
        const sent = () => service.call('POST /v1/email/batch', { token: testServer.token, body: { messages } })
        await until(async () => (await sent().catch(() => null))?.status === 200, WAIT_MS)
      }
      await until(async () => (await redis.zcard('{s000}:due:simulate')) === 0, WAIT_MS)
    }
    clock.moveTo(DAYS + HOT_DAYS)
    await until(async () => (await rows()).some((row) => (row?.generation ?? 0) > 0), WAIT_MS)
    let generations = 0
    for (let n = 0; n < BACKUPS; n += 1) {
      const body = { address: `delivered+p${n}@simulator.test` }
      const ordered = await service.call('POST /v1/erasures', { token: account.token, body })
      const target = join(folder, `backup-${n}`)
      const made = await sendwright(['backup', target, '--json'], installation)
      t.equal(made.code, 0, made.err)
      const found = await sendwright(['doctor', '--deep', '--json'], { ...settings, DATA_DIR: target })
      t.equal(found.code, 0, found.err)
      const { objects } = JSON.parse(found.out)
      t.ok(objects.segments > 0)
      // A segment that is being sealed, and an object that its row had not named yet, are no damage.
      t.same(
        objects.faults.filter(({ kind }: { kind: string }) => kind !== 'unnamed'),
        [],
      )
      rmSync(target, { recursive: true, force: true })
      await until(async () => {
        const { json } = await service.call(`GET /v1/erasures/${ordered.json.erasureId}`, { token: account.token })
        return json.status === 'done'
      }, WAIT_MS)
      generations = (await rows()).reduce((sum, row) => sum + (row?.generation ?? 0), 0)
    }
    t.ok(generations > DAYS, `${generations} objects were written`)
  },
)
