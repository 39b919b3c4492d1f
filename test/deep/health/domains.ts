/** domains - verified domains of which look-ups decide nothing: on their resource, in `doctor` and as a metric. */
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard } from '../../../cluster/id.ts'
import type { Health } from '../../../schemas/operator/health.ts'
import { undecidedKey } from '../../../src/state/keys.ts'
import { until } from '../../support/machine/until.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { startTestService } from '../../support/service/service.ts'

const DAY_MS = 86_400_000
const WAIT_MS = 20_000

const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await zone.close()
})
const { account, operatorToken } = service.firstRun

const findingOf = async () => {
  const { findings } = (await service.operate('GET /v1/operator/health', { token: operatorToken })).json as Health
  return findings.find(({ name }) => name === 'domains')
}
const metricOf = async () =>
  /^sendwright_domains_undecided (\d+)$/m.exec((await service.operate('GET /metrics')).text)?.[1]

t.test(
  'health: a domain that look-ups have not decided for a day is named [operator.health] [domain.states]',
  async (t) => {
    const { token } = account
    const domainId = await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
    t.match(await findingOf(), { status: 'ok', fix: null })
    const { json } = await service.call(`GET /v1/domains/${domainId}`, { token })
    const look = async () => (await service.call(`POST /v1/domains/${domainId}/verify`, { token })).json
    zone.set(json.returnPath.host)
    zone.fail(json.dkim.host, 'servfail')
    const undecided = await look()
    t.match(undecided, { verified: true, failingSince: null, lastCheckedAt: json.lastCheckedAt })
    t.match(undecided.undecidedSince, /^20/)
    t.match(await findingOf(), { status: 'ok' }, 'a failure of an hour is no finding')
    const key = undecidedKey(homeShard(account.accountId))
    const sinceMs = Date.parse(undecided.undecidedSince)
    t.equal(await redis.zscore(key, domainId), String(sinceMs))
    await redis.zadd(key, sinceMs - DAY_MS, domainId)
    const found = await findingOf()
    t.match(found, { status: 'warning', message: /missing or wrong.*: acme\.example \(since 20/, fix: /name servers/ })
    await until(async () => (await metricOf()) === '1' || null, WAIT_MS)
    zone.set(json.dkim.host, { type: 'TXT', data: json.dkim.value.match(/.{1,255}/g) })
    const decided = await look()
    t.match(decided, { verified: true, failingSince: decided.lastCheckedAt, check: { dkim: 'ok' } })
    t.notOk('undecidedSince' in decided)
    t.match(await findingOf(), { status: 'ok' })
    await until(async () => (await metricOf()) === '0' || null, WAIT_MS)
  },
)
