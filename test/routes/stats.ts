/** stats - GET /v1/stats on a running service: each simulated outcome is counted as itself. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { StatsEntry } from '../../schemas/stats.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(() => service.stop())

const { token } = testServer
const stats = (query = '', as = token) => service.call(`GET /v1/stats${query}`, { token: as })
const sumOf = (rows: StatsEntry[], name: Exclude<keyof StatsEntry, 'at' | 'streamId'>) =>
  rows.reduce((sum, row) => sum + row[name], 0)

t.test('stats: each outcome counts as itself, on its stream [stats.count]', async (t) => {
  const { json: news } = await service.call('POST /v1/streams', { token, body: { name: 'News', kind: 'broadcast' } })
  const simulated = ['fine', 'bounce', 'softbounce', 'deferred', 'complaint', 'unsubscribe']
  const to = simulated.map((name) => `${name}+1@simulator.test`)
  const one = { from: 'you@simulator.test', subject: 'Hello', text: 'x' }
  t.equal((await service.call('POST /v1/email', { token, body: { ...one, to } })).status, 200)
  const body = { ...one, to: ['fine+2@simulator.test', 'softbounce+2@simulator.test'], streamId: news.streamId }
  t.equal((await service.call('POST /v1/email', { token, body })).status, 200)
  const ended = async () => {
    const rows: StatsEntry[] = (await stats()).json.stats
    return sumOf(rows, 'delivered') + sumOf(rows, 'hardBounced') + sumOf(rows, 'softBounced') === to.length + 2
  }
  await until(ended, 60_000)
  await until(async () => sumOf((await stats()).json.stats, 'complained') === 1, 60_000)
  const again = { ...one, to: ['bounce+1@simulator.test'] }
  t.equal((await service.call('POST /v1/email', { token, body: again })).status, 200)
  for (const by of ['day', 'hour']) {
    const { json, status } = await stats(`?by=${by}`)
    t.equal(status, 200)
    const of = (streamId: string) => json.stats.filter((row: StatsEntry) => row.streamId === streamId)
    const [own, other] = [of(testServer.streamId), of(news.streamId)]
    t.equal(own.length + other.length, json.stats.length)
    t.equal(sumOf(own, 'accepted'), to.length + 1)
    t.equal(sumOf(own, 'delivered'), 4)
    t.equal(sumOf(own, 'deferred'), 1, 'once, however often it was deferred')
    t.equal(sumOf(own, 'hardBounced'), 1)
    t.equal(sumOf(own, 'softBounced'), 1)
    t.equal(sumOf(own, 'complained'), 1)
    t.equal(sumOf(own, 'suppressed'), 1)
    t.equal(sumOf(other, 'accepted'), 2)
    t.equal(sumOf(other, 'delivered'), 1)
    const alone = await stats(`?by=${by}&streamId=${news.streamId.toUpperCase()}`)
    t.same(alone.json.stats, other)
  }
  for (const by of ['hour', 'total']) {
    const { groups } = (await stats(`?by=${by}&groupBy=site`)).json
    t.match(groups, [{ group: 'simulator', delivered: 5, deferred: 1, hardBounced: 1, softBounced: 2, complained: 1 }])
    const streams = (await stats(`?by=${by}&groupBy=stream`)).json.groups
    t.match(
      streams.find(({ group }: { group: string }) => group === news.streamId),
      { delivered: 1, handOver: { p50Ms: null, p95Ms: null } },
      'one delivery has no percentile',
    )
    const classes = (await stats(`?by=${by}&groupBy=class`)).json.groups
    t.equal(sumOf(classes, 'hardBounced' as never) + sumOf(classes, 'softBounced' as never), 3)
  }
  t.same((await stats('', liveServer.token)).json, { stats: [], groups: [] }, 'of no other server')
  const shown = await service.operate(`GET /v1/operator/accounts/${account.accountId}`, { token: operatorToken })
  t.match(shown.json.last24Hours, { delivered: 0, bounced: 0, complained: 0 }, 'test mail is none of the account')
})

t.test('stats: a tag has a name until the messages with it are erased [stats.groups] [erasure.messages]', async (t) => {
  const { token } = account
  const send = (to: string, tag: string) =>
    service.call('POST /v1/email', {
      token: testServer.token,
      body: { from: 'you@simulator.test', to: [to], subject: 'Hello', text: 'x', tag },
    })
  t.equal((await send('fine+ada@simulator.test', 'ada')).status, 200)
  t.equal((await send('bounce+bob@simulator.test', 'other')).status, 200)
  const groups = async (query = '') => (await stats(`?by=total&groupBy=tag${query}`)).json.groups
  await until(async () => (await groups()).length === 2, 60_000)
  const other = { group: 'other', other: false, delivered: 0, hardBounced: 1 }
  const sorted = async () => (await groups()).sort((one: { delivered: number }) => (one.delivered > 0 ? -1 : 1))
  t.match(await sorted(), [{ group: 'ada', other: false, delivered: 1 }, other])
  const body = { address: 'fine+ada@simulator.test' }
  const { json } = await service.call('POST /v1/erasures', { token, body })
  await until(
    async () => (await service.call(`GET /v1/erasures/${json.erasureId}`, { token })).json.status === 'done',
    60_000,
  )
  t.match(await sorted(), [{ group: null, other: false, delivered: 1 }, other], 'the count stays')
})

t.test('stats: the reasons for a refusal [stats.read]', async (t) => {
  t.equal((await stats('', account.token)).json.error, 'wrong_token_kind')
  t.equal((await stats(`?streamId=${randomUUID()}`)).json.error, 'stream_not_found')
  const issues = async (query: string) => (await stats(query)).json.issues?.map(({ path }: { path: string }) => path)
  t.same(await issues('?by=week'), ['by'])
  t.same(await issues('?groupBy=recipient'), ['groupBy'])
  t.same(await issues(`?groupBy=tag&streamId=${randomUUID()}`), ['streamId'])
  t.same(await issues(`?groupBy=site&streamId=${randomUUID()}`), ['streamId'], 'one question a call [stats.groups]')
  t.same(await issues('?groupBy=site&by=hour&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'), ['from'])
  t.same(await issues('?from=yesterday&until=x'), ['from', 'until'])
  t.same(await issues('?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'), ['to'])
  t.same(await issues('?by=hour&from=2026-01-01T00:00:00Z&to=2026-02-02T00:00:00Z'), ['from'])
})
