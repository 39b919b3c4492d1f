/** signing - live mail on arrival, checked by a foreign verifier: its signatures, and that a retry is the same. */
import { generateKeyPairSync } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'
import { verifyDomain } from '../support/service/crash-live.ts'
import { startTestService } from '../support/service/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'sendwright-signing-'))
const service2048 = generateKeyPairSync('rsa', { modulusLength: 2048 })
writeFileSync(join(folder, 'key.pem'), service2048.privateKey.export({ type: 'pkcs8', format: 'pem' }))
const zone = await startZone()
const mx = await startMx()
const service = await startTestService({
  DNS_SERVERS: zone.server,
  RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
  SERVICE_DOMAIN: 'service.example',
  SERVICE_DKIM: `own:${folder}/key.pem`,
})
const { account, liveServer, testServer } = service.firstRun
const token = account.token
t.teardown(async () => {
  await service.stop()
  await mx.close()
  await zone.close()
  rmSync(folder, { recursive: true })
})
const published = service2048.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
zone.set('own._domainkey.service.example', { type: 'TXT', data: `v=DKIM1; p=${published}`.match(/.{1,255}/g) ?? [] })

const addVerified = (domain: string) => verifyDomain(service.config.httpPort, service.firstRun, { zone, domain })

async function send(from: string, body: object = {}): Promise<string> {
  const asked = { from, to: ['ann@there.example'], subject: 'Grüße', text: 'Hello  there \n', ...body }
  const { json } = await service.call('POST /v1/email', { token: liveServer.token, body: asked })
  return json.messageId
}

/** The received copies of a message, once there are `count`. */
function arrived(messageId: string, count = 1): Promise<string[]> {
  return until(() => {
    const copies = mx.sessions.flatMap(({ messages }) => messages).filter((one) => one.includes(`<${messageId}@`))
    return copies.length >= count ? copies : null
  }, 15_000)
}

/** `domain: verdict` of each signature, asked of the zone as a receiver would. */
async function verdicts(message: string): Promise<string[]> {
  const dns = new Resolver()
  dns.setServers([zone.server])
  const resolver = (name: string, type: string) => dns.resolve(name, type) as Promise<string[] | string[][]>
  const { results } = await dkimVerify(Buffer.from(message, 'latin1'), { resolver })
  return results.map((one: { signingDomain?: string; status: { result: string } }) => {
    return `${one.signingDomain}: ${one.status.result}`
  })
}

t.test('signing: by the domain of the sender, then by the service [dkim.signed] [dkim.service]', async (t) => {
  await addVerified('acme.example')
  const attachment = { name: 'a.bin', content: Buffer.alloc(90_000, 1).toString('base64') }
  const to = ['ann@there.example', 'bob@there.example', 'eve@there.example']
  const cases = [
    {},
    { html: '<p>Hi</p>', headers: { 'Reply-To': 'x@acme.example' } },
    { to, attachments: [attachment] },
  ]
  for (const body of cases) {
    const count = 'to' in body ? 3 : 1
    const copies = await arrived(await send('Shop@ACME.example', body), count)
    t.equal(new Set(copies).size, 1, 'the same for all its recipients')
    t.same(await verdicts(copies[0] as string), ['acme.example: pass', 'service.example: pass'])
    t.match(copies[0], /^Feedback-ID: [\da-f]{8}:[\da-f]{8}:sw[\da-f]{10}\r$/m)
  }
})

t.test(
  'signing: a repeated attempt sends the same bytes, even if the domain was removed [domain.remove]',
  async (t) => {
    const domainId = await addVerified('gone.example')
    mx.script({ dot: '451 4.3.0 later' })
    mx.sever()
    const attachments = [{ name: 'a.bin', content: Buffer.alloc(70_000, 2).toString('base64') }]
    const messageId = await send('shop@gone.example', { attachments, html: '<p>ü</p>' })
    await arrived(messageId)
    await until(async () => {
      const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: liveServer.token })
      return json.status === 'deferred'
    }, 10_000)
    t.equal((await service.call(`DELETE /v1/domains/${domainId}`, { token })).status, 204)
    await addVerified('gone.example')
    mx.script({})
    await makeDue()
    const [first, second] = await arrived(messageId, 2)
    t.equal(second, first)
    t.same(await verdicts(second as string), ['gone.example: pass', 'service.example: pass'])
    const other = await arrived(await send('shop@gone.example'))
    t.same(await verdicts(other[0] as string), ['gone.example: pass', 'service.example: pass'])
    const selectorOf = (message = '') =>
      /DKIM-Signature:[^;]*;[^;]*;[^;]*; d=gone\.example;\s+s=(\w+)/.exec(message)?.[1]
    t.not(selectorOf(other[0]), selectorOf(first), 'mail of the domain that was added again has its key')
  },
)

t.test('signing: a rotated key signs once its record is found [domain.rotate]', async (t) => {
  const domainId = await addVerified('turn.example')
  const rotate = () => service.call(`POST /v1/domains/${domainId}/rotate-dkim`, { token })
  const rotating = await rotate()
  t.equal(rotating.status, 200)
  const { dkim, pendingDkim } = rotating.json
  t.match(pendingDkim, { type: 'TXT', verified: false, verifiedAt: null })
  t.not(pendingDkim.host, dkim.host)
  t.strictSame((await rotate()).json.pendingDkim, pendingDkim, 'ordered again it is the same')
  const selectorOf = (message = '') => /d=turn\.example;\s+s=(\w+)/.exec(message)?.[1]
  const [before] = await arrived(await send('shop@turn.example'))
  t.equal(selectorOf(before), dkim.host.split('.')[0])
  const verify = async () => (await service.call(`POST /v1/domains/${domainId}/verify`, { token })).json
  const found = { returnPath: [], dkim: [], pendingDkim: [] }
  t.strictSame((await verify()).check, { returnPath: 'ok', dkim: 'ok', pendingDkim: 'missing', found })
  zone.set(pendingDkim.host, { type: 'TXT', data: pendingDkim.value.match(/.{1,255}/g) })
  const turned = await verify()
  t.strictSame(turned.check, { returnPath: 'ok', dkim: 'ok', pendingDkim: 'ok', found })
  t.match(turned.dkim, { host: pendingDkim.host, value: pendingDkim.value, verified: true })
  t.notOk('pendingDkim' in turned)
  const [after] = await arrived(await send('shop@turn.example'))
  t.equal(selectorOf(after), pendingDkim.host.split('.')[0])
  t.same(await verdicts(after as string), ['turn.example: pass', 'service.example: pass'])
})

t.test('signing: a test server needs no signature, and its sizes are those of a live one', async (t) => {
  const sizeOf = async (server: { token: string }) => {
    const body = { from: 'a@acme.example', to: ['a@b.example'], subject: 'Size', text: 'x' }
    const { json } = await service.call('POST /v1/email', { token: server.token, body })
    return until(async () => {
      const message = (await service.call(`GET /v1/messages/${json.messageId}`, { token: server.token })).json
      return message.status === 'delivered' ? message.sizeBytes : null
    }, 10_000)
  }
  t.equal(await sizeOf(testServer), await sizeOf(liveServer))
})

/** Makes the next attempt due, over a restart, because only the owner may write what it holds in memory. */
async function makeDue(): Promise<void> {
  const redis = new Redis({ path: service.redis.socketPath })
  const lanes = await redis.keys('*:due:relay')
  await service.service.stop()
  for (const lane of lanes) {
    for (const item of await redis.zrange(lane, 0, -1)) await redis.zadd(lane, 1, item)
    await redis.zadd(lane.replace(/:relay$/, ''), 1, 'relay')
  }
  redis.disconnect()
  await service.restart()
}
