/** domains - sending domains over real DNS, and live mail from one of them over a real MX. */
import { Redis } from 'ioredis'
import t from 'tap'
import { parseReturnPath } from '../../src/mail/return-path.ts'
import { makeSecrets } from '../../src/process/secrets.ts'
import { openSecret } from '../../src/state/ring/sealing.ts'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'
import { type Called, startTestService } from '../support/service/service.ts'
import { ringOf } from '../support/world/rings.ts'

const UNKNOWN_ID = '01a1f8d8-8300-7000-8000-0e7faee555a7'

const zone = await startZone()
const mx = await startMx()
const service = await startTestService({
  DNS_SERVERS: zone.server,
  DELIVERY_PORT: String(mx.port),
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'service.example',
})
const { account, liveServer, testServer } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await mx.close()
  await zone.close()
})

const token = account.token
const add = (domain: string) => service.call('POST /v1/domains', { token, body: { domain } })
const verify = (id: string) => service.call(`POST /v1/domains/${id}/verify`, { token })

function publish({ json }: Called): void {
  zone.set(json.returnPath.host, { type: 'CNAME', domain: json.returnPath.value })
  // RFC 1035 3.3.14: a string of a TXT record holds 255 bytes.
  zone.set(json.dkim.host, { type: 'TXT', data: json.dkim.value.match(/.{1,255}/g) })
}

t.test('domain: added unverified, its records and its key made', async (t) => {
  const added = await add('Mail.Acme.Example')
  t.equal(added.status, 201)
  const { json } = added
  t.match(json, { domain: 'mail.acme.example', verified: false, lastCheckedAt: null, failingSince: null })
  const label = json.domainId.replaceAll('-', '').slice(-16)
  t.match(json.returnPath, { type: 'CNAME', host: 'sw-bounce.mail.acme.example', value: `${label}.rp.service.example` })
  t.match(json.dkim.host, /^sw\d{8}[0-9a-f]{4}\._domainkey\.mail\.acme\.example$/)
  t.match(json.dkim.value, /^v=DKIM1; k=rsa; p=MIIB[\w+/=]+$/)
  t.notOk('check' in json)
  const again = await add('mail.acme.example')
  t.equal(again.status, 409)
  t.match(again.json, { error: 'domain_exists', domainId: json.domainId })
  t.strictSame((await service.call(`GET /v1/domains/${json.domainId}`, { token })).json, json)
})

t.test('domain: private key is sealed, and opens with the secret and the domain it belongs to', async (t) => {
  const { json } = await add('sealed.example')
  const redis = new Redis({ path: service.redis.socketPath })
  const [key] = await redis.keys(`*:dkim:${account.accountId}:sealed.example`)
  const [[selector, row]] = Object.entries(await redis.hgetall(key as string)) as [[string, string]]
  redis.disconnect()
  const [, publicKey, sealedPrivateKey] = JSON.parse(row)
  t.equal(json.dkim.value, `v=DKIM1; k=rsa; p=${publicKey}`)
  t.notMatch(row, 'PRIVATE KEY')
  const ring = ringOf(service.config.secretKey as string)
  const sealed = Buffer.from(sealedPrivateKey, 'base64')
  const owner = `${account.accountId} sealed.example ${selector}`
  t.ok((openSecret(ring, { sealed, owner })?.length ?? 0) > 1000)
  t.equal(openSecret(ring, { sealed, owner: `${owner}x` }), null)
})

const REFUSED: readonly [string, number, string][] = [
  ['gmail.com', 422, 'domain_not_allowed'],
  ['Gmail.com', 422, 'domain_not_allowed'],
  ['yahoo.co.uk', 422, 'domain_not_allowed'],
  ['simulator.test', 422, 'domain_not_allowed'],
  ['service.example', 422, 'domain_not_allowed'],
  ['rp.service.example', 422, 'domain_not_allowed'],
  ['co.uk', 400, 'invalid_request'],
  ['acme', 400, 'invalid_request'],
  ['-a.example', 400, 'invalid_request'],
  ['', 400, 'invalid_request'],
]

t.test('domain: refused names', async (t) => {
  for (const [domain, status, error] of REFUSED) {
    const called = await add(domain)
    t.equal(called.status, status, domain)
    t.equal(called.json.error, error, domain)
  }
  t.equal((await add('notgmail.com')).status, 201)
  t.equal((await add('myservice.example')).status, 201)
})

t.test('domain: verified by the records in the DNS', async (t) => {
  const added = await add('verify.example')
  const { domainId, returnPath, dkim } = added.json
  const missing = await verify(domainId)
  t.equal(missing.status, 200)
  const nothing = { returnPath: [], dkim: [] }
  t.strictSame(missing.json.check, { returnPath: 'missing', dkim: 'missing', found: nothing })
  t.not(missing.json.lastCheckedAt, null)
  publish(added)
  zone.set(dkim.host, { type: 'TXT', data: 'v=DKIM1; k=rsa; p=AAAA' })
  const mismatch = await verify(domainId)
  const instead = { returnPath: [], dkim: ['v=DKIM1; k=rsa; p=AAAA'] }
  t.strictSame(mismatch.json.check, { returnPath: 'ok', dkim: 'mismatch', found: instead })
  t.match(mismatch.json, {
    verified: false,
    returnPath: { verified: true },
    dkim: { verified: false, verifiedAt: null },
  })
  zone.fail(dkim.host, 'servfail')
  const failed = await verify(domainId)
  t.strictSame(failed.json.check, { returnPath: 'ok', dkim: 'dns_error', found: nothing })
  t.equal(failed.json.lastCheckedAt, mismatch.json.lastCheckedAt, 'nothing is recorded')
  publish(added)
  const found = await verify(domainId)
  t.strictSame(found.json.check, { returnPath: 'ok', dkim: 'ok', found: nothing })
  t.match(found.json, { verified: true, failingSince: null })
  t.equal(found.json.returnPath.verifiedAt, mismatch.json.returnPath.verifiedAt, 'verified since it was first found')
  zone.remove(returnPath.host)
  const warned = await verify(domainId)
  t.match(warned.json, { verified: true, failingSince: warned.json.lastCheckedAt, check: { returnPath: 'missing' } })
  for (const server of [liveServer, testServer]) {
    const { json } = await service.call('GET /v1/server', { token: server.token })
    const entry = json.sendingDomains.find((one: { domain: string }) => one.domain === 'verify.example')
    t.strictSame(entry, { domain: 'verify.example', failingSince: warned.json.failingSince })
  }
})

t.test('domain: live mail goes out over MX from a verified one, and not after it was removed', async (t) => {
  const added = await add('live.example')
  const { domainId } = added.json
  const send = (body: object = {}) =>
    service.call('POST /v1/email', {
      token: liveServer.token,
      body: { from: 'Shop@live.example', to: ['person@there.example'], subject: 'Live', text: 'Mail', ...body },
    })
  t.match((await send()).json, { error: 'domain_not_verified', domain: 'live.example' })
  publish(added)
  t.equal((await verify(domainId)).json.verified, true)
  zone.set('there.example', { type: 'MX', exchange: 'mx.there.example', priority: 10 })
  zone.set('mx.there.example', { type: 'A', address: '127.0.0.1' })
  const sent = await send({ bcc: ['hidden@there.example'] })
  t.equal(sent.status, 200)
  t.equal(sent.json.test, false)
  t.equal(sent.headers.get('ratelimit-policy'), '"account";q=300;w=60')
  const message = await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token: liveServer.token })
    return json.status === 'accepted' || json.status === 'mixed' ? null : json
  }, 10_000)
  t.equal(message.status, 'delivered')
  t.match(message.recipients[0], { code: 250, response: '250 2.0.0 queued', attempts: 1 })
  const messages = mx.sessions.flatMap((session) => session.messages)
  t.equal(messages.length, 2, 'one for each recipient')
  t.match(messages[0], /^To: person@there\.example\r$/m)
  t.match(messages[0], `Message-ID: <${sent.json.messageId}@live.example>`)
  t.notMatch(messages.join(''), 'hidden@')
  const commands = mx.sessions.flatMap((session) => session.commands)
  const senders = commands.map((line) => /^MAIL FROM:<([^@>]*)@sw-bounce\.live\.example>/.exec(line)?.[1] ?? '')
  const { tokenKey } = makeSecrets(ringOf(service.config.secretKey as string))
  const named = senders.filter((local) => local !== '').map((local) => parseReturnPath(tokenKey, local))
  t.same(
    named.map((one) => one?.messageId),
    [sent.json.messageId, sent.json.messageId],
  )
  t.same(named.map((one) => one?.recipient).sort(), [0, 1])
  t.ok(commands.some((line) => line.startsWith('EHLO service.example')))
  t.equal((await service.call(`DELETE /v1/domains/${domainId}`, { token })).status, 204)
  t.equal((await send()).json.error, 'domain_not_verified')
  t.equal((await service.call(`DELETE /v1/domains/${domainId}`, { token })).status, 404)
  t.equal((await verify(domainId)).status, 404)
  t.equal((await add('live.example')).status, 201, 'and can be added again')
})

t.test('domain: a refused and a missing recipient bounce with the reply, the address restored', async (t) => {
  const added = await add('bounce.example')
  publish(added)
  await verify(added.json.domainId)
  mx.sever()
  mx.script({ rcpt: '550 5.1.1 <gone@there.example>: no such user' })
  const { json } = await service.call('POST /v1/email', {
    token: liveServer.token,
    body: {
      from: 'shop@bounce.example',
      to: ['gone@there.example', 'nobody@nowhere.example'],
      subject: 'Live',
      text: 'Mail',
    },
  })
  const message = await until(async () => {
    const called = await service.call(`GET /v1/messages/${json.messageId}`, { token: liveServer.token })
    return called.json.status === 'bounced' ? called.json : null
  }, 10_000)
  mx.script({})
  const detailsOf = (recipient: string) =>
    message.events.find((event: { recipient: string }) => event.recipient === recipient).details
  t.match(detailsOf('gone@there.example'), {
    code: 550,
    response: '550 5.1.1 <gone@there.example>: no such user',
    classification: 'InvalidRecipient',
    hard: true,
    expired: false,
  })
  t.match(detailsOf('nobody@nowhere.example'), { code: null, response: /^5\.1\.2 /, classification: 'BadDomain' })
})

t.test('domain: listed newest first, page by page', async (t) => {
  const all = (await service.call('GET /v1/domains', { token })).json
  t.equal(all.next, null)
  const names = all.domains.map((one: { domain: string }) => one.domain)
  t.strictSame(names.slice(0, 2), ['bounce.example', 'live.example'])
  t.equal(names.at(-1), 'mail.acme.example')
  const paged: string[] = []
  let after = ''
  for (let page = 0; page < 10; page++) {
    const { json } = await service.call(`GET /v1/domains?limit=2${after}`, { token })
    paged.push(...json.domains.map((one: { domain: string }) => one.domain))
    if (json.next === null) break
    t.equal(json.domains.length, 2)
    after = `&after=${json.next}`
  }
  t.strictSame(paged, names)
  const first = all.domains[0].domainId
  await service.call(`DELETE /v1/domains/${first}`, { token })
  const rest = await service.call(`GET /v1/domains?after=${first}`, { token })
  t.strictSame(
    rest.json.domains.map((one: { domain: string }) => one.domain),
    names.slice(1),
    'a page goes on below an object that is gone',
  )
  for (const query of ['limit=0', 'limit=101', 'limit=x', 'after=x', 'limit=1&limit=1', 'page=1'])
    t.equal((await service.call(`GET /v1/domains?${query}`, { token })).status, 400, query)
})

t.test('domain: invalid and unknown ids are not found', async (t) => {
  for (const id of ['x', UNKNOWN_ID, UNKNOWN_ID.replace('-7000-', '-7001-'), account.accountId]) {
    for (const what of [`GET /v1/domains/${id}`, `DELETE /v1/domains/${id}`, `POST /v1/domains/${id}/verify`]) {
      const called = await service.call(what, { token })
      t.equal(called.status, 404, what.replace(id, '<id>'))
      t.equal(called.json.error, 'not_found')
    }
  }
  const wrong = await service.call('GET /v1/domains', { token: testServer.token })
  t.match(wrong.json, { error: 'wrong_token_kind', message: /account key/ })
})
