/** checks - POST /v1/messages/{id}/checks over HTTP: findings, links on a test server alone, content that has ended. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import t from 'tap'
import { Sendwright } from '../../../src/client/sendwright.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const delivery = await startDelivery()
const { service } = delivery
const { liveServer, testServer } = service.firstRun
const redis = new Redis({ path: service.redis.socketPath })
const requests: string[] = []
const web = createServer((request, response) => {
  requests.push(request.url ?? '')
  response.end()
})
await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve))
const { port } = web.address() as AddressInfo
t.teardown(async () => {
  web.close()
  redis.disconnect()
  await delivery.stop()
})

const HTML = `<video></video>\n<img src="a.png">\n<a href="http://127.0.0.1:${port}/">Go</a><a href="http://10.0.0.1/">In</a>`
const send = async (token: string, body: object = {}) => {
  const from = 'shop@acme.example'
  const base = { from, to: ['a@simulator.test'], subject: 'Checks', html: HTML, ...body }
  return (await service.call('POST /v1/email', { token, body: base })).json.messageId as string
}
const check = (id: string, body: object, token = testServer.token) =>
  service.call(`POST /v1/messages/${id}/checks`, { token, body })

t.test('checks: findings with their lines, and links only if they are asked for [message.checks]', async (t) => {
  const id = await send(testServer.token)
  const { status, json } = await check(id, {})
  t.equal(status, 200)
  const names = json.findings.map(({ check, line }: { check: string; line: number | null }) => `${check} ${line}`)
  t.same(names, ['missing_text null', 'client_support 1', 'image_alt 2'])
  t.match(json.links, [{ line: 3, result: 'not_checked', reason: 'not_requested' }, {}])
  t.same(requests, [])
  const asked = await check(id, { links: true })
  const reasons = asked.json.links.map(({ reason }: { reason: string }) => reason)
  t.same(reasons, ['port_not_allowed', 'private_address'])
  t.same(requests, [], 'ports 80 and 443 alone')
  const client = new Sendwright({ key: testServer.token, url: `http://127.0.0.1:${service.config.httpPort}` })
  t.same(await client.messages.check(id, { links: true }), asked.json)
})

t.test('checks: on a live server no link is requested [message.checks]', async (t) => {
  await delivery.destination('ok.test')
  const id = await send(liveServer.token, { to: ['a@ok.test'] })
  const refused = await check(id, { links: true }, liveServer.token)
  t.match([refused.status, refused.json.issues], [400, [{ path: 'links' }]])
  t.equal((await check(id, {}, liveServer.token)).json.findings.length, 3)
  t.equal((await check(id, {})).status, 404, 'of another server')
  t.equal((await check(id, {}, service.firstRun.account.token)).json.error, 'wrong_token_kind')
})

t.test('checks: of content that has ended there are none [message.checks]', async (t) => {
  const id = await send(testServer.token)
  await redis.unlink(await redis.keys('*:bodies:*'))
  t.equal((await check(id, {})).json.error, 'content_expired')
})
