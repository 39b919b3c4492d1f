/** test-domains - domains that test servers use without DNS: over HTTP and SMTP, and never on a live server. */

import nodemailer from 'nodemailer'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startZone } from '../support/peers/zone.ts'
import { type Called, startTestService } from '../support/service/service.ts'

const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server })
const { account, liveServer, testServer } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await zone.close()
})

const token = account.token
const add = (body: object): Promise<Called> => service.call('POST /v1/domains', { token, body })
const mail = (domain: string) => ({
  from: `hello@${domain}`,
  to: ['ada@simulator.test'],
  subject: 'Hello',
  text: 'It works.',
})
const send = (by: string, domain: string): Promise<Called> =>
  service.call('POST /v1/email', { token: by, body: mail(domain) })
const domainsOf = async (by: string): Promise<string[]> => {
  const { json } = await service.call('GET /v1/server', { token: by })
  return json.sendingDomains.map(({ domain }: { domain: string }) => domain)
}

async function broadcastFrom(domain: string, by: string): Promise<Called> {
  const stream = await service.call('POST /v1/streams', { token: by, body: { kind: 'broadcast', name: domain } })
  const { to, ...content } = mail(domain)
  const body = { ...content, streamId: stream.json.streamId, messages: [{ to: to[0] }] }
  return service.call('POST /v1/broadcasts', { token: by, body })
}

/** Logs in with a key and sends over SMTP. Returns the reply of a refusal, or an empty text. */
async function submit(by: string, mail: object): Promise<string> {
  const transport = nodemailer.createTransport({
    host: '127.0.0.1',
    port: service.config.submissionPort,
    auth: { user: 'api', pass: by },
    tls: { rejectUnauthorized: false },
  })
  return transport.sendMail({ to: 'a@simulator.test', subject: 'x', text: 'x', ...mail }).then(
    () => '',
    ({ response }) => String(response),
  )
}

t.test('domain: a test-only domain is usable at once, on test servers only [domain.test-use]', async (t) => {
  const added = await add({ domain: 'App.Acme.Example', testOnly: true })
  t.match(added, { status: 201, json: { domain: 'app.acme.example', verified: false, testOnly: true } })
  t.match((await send(testServer.token, 'app.acme.example')).status, 200)
  t.match(await send(liveServer.token, 'app.acme.example'), { status: 422, json: { error: 'domain_not_verified' } })
  t.same(await domainsOf(testServer.token), ['simulator.test', 'app.acme.example'])
  t.same(await domainsOf(liveServer.token), [])
  const servers = (await service.call('GET /v1/servers', { token })).json.servers
  for (const { mode, sendingDomains } of servers) t.equal(sendingDomains.length, mode === 'test' ? 2 : 0, mode)
  const made = await broadcastFrom('app.acme.example', testServer.token)
  t.equal(made.status, 202)
  const path = `GET /v1/broadcasts/${made.json.broadcastId}`
  await until(async () => (await service.call(path, { token: testServer.token })).json.released === 1, 20_000)
  t.match((await broadcastFrom('app.acme.example', liveServer.token)).json, { error: 'domain_not_verified' })
  t.equal(await submit(testServer.token, { from: 'a@app.acme.example', sender: 'b@app.acme.example' }), '')
  t.match(await submit(liveServer.token, { from: 'a@app.acme.example' }), /^550 5.7.1 domain_not_verified/)
  t.match((await add({ domain: 'app.acme.example', testOnly: true })).json, { error: 'domain_exists' })
  t.match((await add({ domain: 'gmail.com', testOnly: true })).json, { error: 'domain_not_allowed' })
  t.match((await add({ domain: 'acme', testOnly: true })).json, { error: 'invalid_request' })
})

t.test('domain: an added one becomes usable in tests, and a removed one does not [domain.test-use]', async (t) => {
  const { domainId } = (await add({ domain: 'later.example' })).json
  t.equal((await send(testServer.token, 'later.example')).status, 422)
  for (let time = 0; time < 2; time += 1) {
    const used = await service.call(`POST /v1/domains/${domainId}/test-use`, { token })
    t.match(used, { status: 200, json: { testOnly: true, verified: false } })
  }
  t.match((await service.call(`GET /v1/domains/${domainId}`, { token })).json, { testOnly: true })
  t.equal((await send(testServer.token, 'later.example')).status, 200)
  t.match((await send(liveServer.token, 'later.example')).json, { error: 'domain_not_verified' })
  t.equal((await service.call(`DELETE /v1/domains/${domainId}`, { token })).status, 204)
  t.equal((await send(testServer.token, 'later.example')).status, 422)
  const gone = await service.call(`POST /v1/domains/${domainId}/test-use`, { token })
  t.equal(gone.status, 404)
  const wrong = await service.call(`POST /v1/domains/${domainId}/test-use`, { token: testServer.token })
  t.equal(wrong.status, 403)
})

t.test('domain: once its records are found it is an ordinary one [domain.test-use]', async (t) => {
  const { json } = await add({ domain: 'grown.example', testOnly: true })
  zone.set(json.returnPath.host, { type: 'CNAME', domain: json.returnPath.value })
  zone.set(json.dkim.host, { type: 'TXT', data: json.dkim.value.match(/.{1,255}/g) })
  const path = `POST /v1/domains/${json.domainId}`
  t.match((await service.call(`${path}/verify`, { token })).json, { verified: true, testOnly: false })
  t.match((await service.call(`GET /v1/domains/${json.domainId}`, { token })).json, { verified: true, testOnly: false })
  t.ok((await domainsOf(liveServer.token)).includes('grown.example'))
  const listed = await domainsOf(testServer.token)
  t.equal(listed.filter((one) => one === 'grown.example').length, 1)
  t.match((await service.call(`${path}/test-use`, { token })).json, { verified: true, testOnly: false })
})

t.test('domain: a refusal names the next step for its kind of server [domain.test-use]', async (t) => {
  const [test, live, simulator] = await Promise.all([
    send(testServer.token, 'no.example'),
    send(liveServer.token, 'no.example'),
    send(liveServer.token, 'simulator.test'),
  ])
  t.match(test.json.message, /domain add no\.example --test-only.*domain test-use no\.example/)
  t.match(live.json.message, /domain verify no\.example.*simulator\.test is for test servers/)
  t.match(simulator.json.message, /use the key of a test server/)
  t.match(await submit(testServer.token, { from: 'a@no.example' }), /--test-only/)
  const messages = [mail('no.example'), mail('simulator.test')]
  const body = { messages, partial: true }
  const partial = await service.call('POST /v1/email/batch', { token: testServer.token, body })
  t.match(partial.json.messages, [{ message: /--test-only/ }, { status: 'accepted' }])
})

t.test('key: a 401 says whether the key is missing, malformed or unknown [key.unknown]', async (t) => {
  const at = (headers: Record<string, string>) => service.call('GET /v1/server', { headers })
  const unknown = `${testServer.token.slice(0, 16)}`
  const { token: revoked, tokenId } = (
    await service.call('POST /v1/tokens', { token: testServer.token, body: { name: 'Two' } })
  ).json
  t.equal((await service.call(`POST /v1/tokens/${tokenId}/revoke`, { token: testServer.token })).status, 200)
  const cases: [Record<string, string>, RegExp][] = [
    [{}, /^API key missing/],
    [{ authorization: `Bearer ${unknown}` }, /^API key malformed/],
    [{ authorization: `Basic ${testServer.token}` }, /^API key malformed/],
    [{ authorization: testServer.token }, /^API key malformed/],
    [{ authorization: `Bearer ${revoked}` }, /^API key unknown or revoked/],
    [{ authorization: `Bearer ${service.firstRun.operatorToken}` }, /^API key unknown or revoked/],
  ]
  for (const [headers, message] of cases)
    t.match(await at(headers), { status: 401, json: { error: 'unauthorized', message } }, JSON.stringify(headers))
  t.match(await submit('sk_test_1', { from: 'a@simulator.test' }), /^535 5.7.8 unauthorized API key malformed/)
  t.match(await submit(revoked, { from: 'a@simulator.test' }), /^535 5.7.8 unauthorized API key unknown or revoked/)
})
