/** account-routes - where an id is searched, and which checks of a domain are in the log of the account. */
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../cluster/id.ts'
import { Browser } from '../support/clients/browser.ts'
import { until } from '../support/machine/until.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

/** Accounts are put on two shards by turns. */
const ACCOUNTS_MAX = 4
const WAIT_MS = 30_000
const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await zone.close()
})
const { account, testServer, operatorToken: token, dashboardUrl } = service.firstRun
const ada = new Browser(`http://127.0.0.1:${service.config.httpPort}`)
const body = { token: Browser.tokenOf(dashboardUrl), address: 'ada@a.example', name: 'Ada' }
await ada.call('POST /links/consume', { ...body, password: 'correct horse battery' })
const operate = (what: string, of: object) =>
  service.operate(what.replace(' ', ' /v1/operator/accounts'), { token, body: of })

/** A server of another account on the same shard. */
async function neighbour(): Promise<string> {
  for (let made = 0; made < ACCOUNTS_MAX; made += 1) {
    const { accountId } = (await operate('POST ', { name: `Other ${made}`, administrators: [] })).json
    if (shardOf(accountId) !== shardOf(account.accountId)) continue
    return (await operate(`POST /${accountId}/servers`, { name: 'Theirs', mode: 'test' })).json.serverId
  }
  throw new Error('No account on the shard')
}

/** The reads of Redis meanwhile, by any caller. */
async function heard(act: () => Promise<unknown>): Promise<string> {
  // A client takes what comes with the answer to MONITOR for answers.
  const monitor = connect(service.redis.socketPath)
  let said = ''
  monitor.on('data', (piece) => (said += piece))
  monitor.write('MONITOR\r\n')
  await until(() => said.startsWith('+OK'), WAIT_MS)
  await act()
  await redis.echo('the end')
  await until(() => said.includes('the end'), WAIT_MS)
  monitor.destroy()
  return said
}

t.test('account-routes: an id is searched on the servers of its account only [member.find]', async (t) => {
  const theirs = await neighbour()
  const message = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'Hello' }
  const { messageId } = (await service.call('POST /v1/email', { token: testServer.token, body: message })).json
  const asked = await heard(async () => {
    const found = await ada.call('POST /find', { text: ` ${messageId.toUpperCase()} ` })
    t.same(found.json, { kind: 'message', id: messageId, serverId: testServer.serverId })
  })
  t.match(asked, `segments:${testServer.serverId}`)
  t.notMatch(asked, theirs, 'nobody else is asked')
  t.same((await ada.call('POST /find', { text: theirs })).json, { kind: null, id: null, serverId: null })
})

t.test('account-routes: a check is logged if it changed something, a press always [member.audit]', async (t) => {
  const { json } = await ada.call('POST /domains', { domain: 'mail.northwind.example' })
  const path = `/domains/${json.domainId}`
  const newest = async () => (await ada.call('GET /audit?limit=1')).json.acts[0]
  const added = await newest()
  t.equal(added.act, 'addDomain')
  for (let look = 0; look < 3; look += 1) t.equal((await ada.call(`POST ${path}/look`)).status, 200)
  t.same(await newest(), added, 'nothing was changed')
  t.match((await ada.call(`POST ${path}/verify`)).json, { verified: false, check: { dkim: 'missing' } })
  const pressed = await newest()
  t.match(pressed, { act: 'verifyDomain', targets: { id: json.domainId } })
  zone.set(json.returnPath.host, { type: 'CNAME', domain: json.returnPath.value })
  zone.set(json.dkim.host, { type: 'TXT', data: json.dkim.value.match(/.{1,255}/g) })
  const looked = await ada.call(`POST ${path}/look`)
  t.match(looked.json, { verified: true, check: { dkim: 'ok', returnPath: 'ok' } })
  const changed = await newest()
  t.match(changed, { act: 'verifyDomain', userName: 'Ada' })
  t.not(changed.auditId, pressed.auditId)
  await ada.call(`POST ${path}/look`)
  t.equal((await newest()).auditId, changed.auditId)
})
