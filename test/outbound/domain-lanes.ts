/**
 * domain-lanes - a domain over two days of a moved clock: checked by itself, its administrators notified over real
 * SMTP.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import type { DomainNoticeJob } from '../../src/actors/domain/notice.ts'
import { makeDomainLanes } from '../../src/outbound/domain-lanes.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../support/machine/moved-clock.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService, type TestService } from '../support/service/service.ts'

const LOOKED_MS_MAX = 30_000
const HOUR = 1 / 24

t.test(
  'domain-lanes: checked by schedule, administrators are notified [domain.schedule]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    const clock = makeMovedClock()
    const mx = await startMx()
    const zone = await startZone()
    const service = await clock.around(() =>
      startTestService({
        RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
        DNS_SERVERS: zone.server,
        SERVICE_DOMAIN: 'service.example',
      }),
    )
    const redis = new Redis({ path: service.redis.socketPath })
    t.teardown(async () => {
      redis.disconnect()
      await service.stop()
      await zone.close()
      await mx.close()
    })
    const { token, serverToken } = await makeAccount(service, ['ada@there.example', 'bob@there.example'])
    const { json } = await service.call('POST /v1/domains', { token, body: { domain: 'acme.example' } })
    const read = async () => (await service.call(`GET /v1/domains/${json.domainId}`, { token })).json
    const mails = () => mx.sessions.flatMap(({ messages }) => messages)
    const told = (subject: RegExp) => mails().filter((mail) => subject.test(mail))

    zone.set(json.returnPath.host, { type: 'CNAME', domain: json.returnPath.value })
    zone.set(json.dkim.host, { type: 'TXT', data: json.dkim.value.match(/.{1,255}/g) })
    clock.moveTo(HOUR / 60)
    await until(async () => (await read()).verified, LOOKED_MS_MAX)

    zone.remove(json.dkim.host)
    clock.moveTo(1 + HOUR)
    const warned = await until(async () => {
      const domain = await read()
      return domain.failingSince === null ? null : domain
    }, LOOKED_MS_MAX)
    t.match(warned, { verified: true, returnPath: { verified: true }, dkim: { verified: false } })
    await until(() => told(/^Subject: DNS records of acme\.example are missing\r$/m).length === 2, LOOKED_MS_MAX)
    const server = (await service.call('GET /v1/server', { token: serverToken })).json
    t.same(server.sendingDomains, [{ domain: 'acme.example', failingSince: warned.failingSince }])

    clock.moveTo(2 + 2 * HOUR)
    await until(async () => !(await read()).verified, LOOKED_MS_MAX)
    await until(() => told(/^Subject: acme\.example can no longer send mail\r$/m).length === 2, LOOKED_MS_MAX)
    t.same((await service.call('GET /v1/server', { token: serverToken })).json.sendingDomains, [])

    const recipients = mx.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('RCPT TO:')))
    t.same(
      recipients.sort(),
      // Each gets the invitation, the warning and the notice of the end.
      ['ada', 'ada', 'ada', 'bob', 'bob', 'bob'].map((name) => `RCPT TO:<${name}@there.example>`),
    )
    const senders = mx.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('MAIL FROM:')))
    t.ok(senders.every((line) => line.startsWith('MAIL FROM:<postmaster@rp.service.example>')))
    t.ok(mails().every((mail) => /^From: Sendwright <postmaster@service\.example>\r$/m.test(mail)))
    const used = server.limits.map(({ used }: { used: number }) => used)
    t.same(
      used,
      used.map(() => 0),
      'notices count on no limit',
    )
    t.same(await redis.keys('*:log:*'), [], 'and are in no log')
    // The server has the mail a moment before its outcome is committed.
    await until(async () => (await redis.keys('*:due:notice')).length === 0, LOOKED_MS_MAX)
    const streams = await Promise.all(['journal', 'domain:*', 'account:*'].map((name) => redis.keys(`*:${name}`)))
    for (const key of streams.flat())
      t.notMatch(JSON.stringify(await redis.xrange(key, '-', '+')), 'there.example', 'no address in a stream')
  },
)

t.test('domain-lanes: an account without administrators is in the operator’s log [domain.notice]', async (t) => {
  const lines: object[] = []
  const lanes = makeDomainLanes({
    check: async () => ({ returnPath: 'ok', dkim: 'ok', instead: { returnPath: [], dkim: [] } }),
    dispatch: { send: () => Promise.reject(new Error('Nobody is to be mailed')), room: () => 0 },
    serviceDomain: 'service.example',
    serviceKey: null,
    linkUrl: (linkId) => linkId,
    log: { warn: (line: object) => void lines.push(line) },
  })
  const notice = lanes.find(({ prefix }) => prefix === 'notice')!
  const domain = { domainId: 'd1', accountId: 'a1', domain: 'acme.example' } as DomainNoticeJob['domain']
  const job: DomainNoticeJob = { kind: 'warning', domain, atMs: 0, address: null }
  t.equal(notice.room('notice'), 8)
  const claim = {
    item: 'x',
    lane: 'notice',
    attempt: 1,
    signal: new AbortController().signal,
    pass: { shard: 0, generation: 0 },
  }
  t.match(await notice.perform(job, claim), { result: 'delivered' })
  t.same(lines, [{ kind: 'warning', domain: 'acme.example', domainId: 'd1', accountId: 'a1' }])
})

/** An account with administrators and a live server, created as an operator does it. Returns keys of both. */
async function makeAccount(service: TestService, administrators: readonly string[]) {
  const post = async (path: string, body: object) => {
    const { json } = await service.operate(`POST /v1/operator${path}`, { token: service.firstRun.operatorToken, body })
    return json
  }
  const { accountId } = await post('/accounts', { name: 'Told', administrators })
  const { token } = await post(`/accounts/${accountId}/tokens`, { name: 'account' })
  const { serverId } = await post(`/accounts/${accountId}/servers`, { name: 'Live', mode: 'live' })
  const { token: serverToken } = await post(`/servers/${serverId}/tokens`, { name: 'server' })
  return { token, serverToken }
}
