/**
 * login-rate-limit - the limits of sign-ins, exact with fifty at once on two processes, the same for every address.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { Browser, type Page } from '../../support/clients/browser.ts'
import { freePort } from '../../support/machine/port.ts'
import { startHost } from '../../support/service/host.ts'
import { startTestService } from '../../support/service/service.ts'

const PASSWORD = 'correct horse battery'
const KNOWN = 'ada@a.example'
const AT_ONCE = 50
const service = await startTestService({ SECRET_KEY: 'a secret of two processes that is long enough' })
const { config } = service
const httpPort = await freePort()
const second = await startHost({
  REDIS_URL: `unix://${service.redis.socketPath}`,
  SECRET_KEY: 'a secret of two processes that is long enough',
  DATA_DIR: service.dataDir,
  ROLES: 'http',
  HTTP_PORT: String(httpPort),
  OPERATOR_PORT: String(await freePort()),
  EDGE_RATE: '0',
  LOG_LEVEL: 'silent',
})
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await second.kill('SIGTERM')
  await service.stop()
})
const origins = [`http://127.0.0.1:${config.httpPort}`, `http://127.0.0.1:${httpPort}`]
const ada = new Browser(origins[0] as string, '198.51.100.1')
const token = Browser.tokenOf(service.firstRun.dashboardUrl)
await ada.call('POST /links/consume', { token, address: KNOWN, name: 'Ada', password: PASSWORD })

/** Fifty at once, half of them to each process. */
function fifty(make: (n: number) => { readonly client: string; readonly what: string; readonly body: object }) {
  return Promise.all(
    Array.from({ length: AT_ONCE }, (_, n) => {
      const { client, what, body } = make(n)
      const browser = new Browser(origins[n % 2] as string, client)
      browser.cookie = ada.cookie
      return browser.call(what, body)
    }),
  )
}

const passed = (pages: readonly Page[]) => pages.filter(({ status }) => status !== 429).length
/** Clients in separate networks. */
const clientOf = (n: number, net: number) => `2001:db8:${net}:${n.toString(16)}::1`
const signIn = (address: string) => ({ what: 'POST /session', body: { address, password: 'not the right one' } })
const link = (address: string) => ({ what: 'POST /links', body: { address, purpose: 'reset' } })
const invite = (address: string) => ({ what: 'POST /invitations', body: { address, role: 'member' } })

t.test('login-rate-limit: 10 for an address, 30 for a client, whoever has the address [session.limits]', async (t) => {
  const known = await fifty((n) => ({ client: clientOf(n, 1), ...signIn(n % 2 ? KNOWN : KNOWN.toUpperCase()) }))
  t.equal(passed(known), 10)
  const refused = known.find(({ status }) => status === 429)
  t.match(refused?.json, { error: 'too_many_tries', resetsAt: /Z$/ })
  const waitS = Number(refused?.headers.get('retry-after'))
  t.ok(waitS > 0 && waitS <= 900, `${waitS}`)
  const unknown = await fifty((n) => ({ client: '203.0.113.30', ...signIn(`user${n}@b.example`) }))
  t.equal(passed(unknown), 30)
  const [one, other] = [known, unknown].map((pages) => pages.find(({ status }) => status !== 429))
  t.same([one?.status, one?.text], [401, other?.text], 'the same words for an address that nobody has')
  // A try counts for its address only if its client's limit let it pass.
  t.equal((await redis.keys('*:tries:sign-in.a.*')).length, 1 + 30)
  const again = await new Browser(origins[1] as string, '203.0.113.30').call('POST /session', signIn(KNOWN).body)
  t.match(again.json, { error: 'too_many_tries' })
  t.equal((await redis.keys('*:tries:sign-in.a.*')).length, 1 + 30)
})

t.test('login-rate-limit: 3 mailed links of an address, 10 of a client [session.limits]', async (t) => {
  t.equal(passed(await fifty((n) => ({ client: clientOf(n, 3), ...link('nobody@c.example') }))), 3)
  t.equal(passed(await fifty((n) => ({ client: '203.0.113.40', ...link(`user${n}@c.example`) }))), 10)
})

t.test('login-rate-limit: 3 invitations of an address, 20 of a client [session.limits]', async (t) => {
  const ofAddress = await fifty((n) => ({ client: clientOf(n, 4), ...invite('bob@d.example') }))
  t.equal(passed(ofAddress), 3)
  t.ok(ofAddress.every(({ status }) => status === 429 || status === 201))
  t.equal(passed(await fifty((n) => ({ client: '203.0.113.50', ...invite(`user${n}@d.example`) }))), 20)
})

t.test('login-rate-limit: one /64 is one client [session.limits] [request.client]', async (t) => {
  const pages = await fifty((n) => ({ client: `2001:db8:ffff:1::${n.toString(16)}`, ...link(`user${n}@e.example`) }))
  t.equal(passed(pages), 10)
})
