/**
 * rotation - the secret of a running service is rotated: everything that is sealed is sealed again, nothing opens with
 * the former keys, and all that worked before still does.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { homeShard } from '../../../cluster/id.ts'
import { deriveRingKeys, openRing } from '../../../src/state/ring/ring.ts'
import { relayPasswordOwner, totpOwner, webhookSecretOwner } from '../../../src/state/ring/sealed-values.ts'
import { NONCE_BYTES, sealSecret } from '../../../src/state/ring/sealing.ts'
import { until } from '../../support/machine/until.ts'
import { startReceiver } from '../../support/peers/receiver.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { secretInFile } from '../../support/service/secret-folder.ts'
import { startTestService } from '../../support/service/service.ts'
import { SealedSeeker } from '../../support/store/seek-sealed.ts'
import { ringOf } from '../../support/world/rings.ts'

const SECRET = 'the first secret of an installation, long enough'
const WAIT_MS = 60_000
const receiver = await startReceiver()
const settings = secretInFile(SECRET)
const folder = settings.DATA_DIR
const zone = await startZone()
const service = await startTestService(
  {
    ...settings,
    CONTENT_STORE: 'file',
    DNS_SERVERS: zone.server,
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  },
  { settlingMs: 2_000, ...(receiver !== null && { smtp: { ca: receiver.ca } }) },
)
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await Promise.all([zone.close(), receiver?.close()])
})
const { liveServer, testServer, operatorToken } = service.firstRun
const call = async (what: string, body?: object, token = liveServer.token) => {
  const { status, json } = await service.call(what, { token, ...(body !== undefined && { body }) })
  return { ...json, status }
}
const secretShown = async () => (await service.operate('GET /v1/operator/secret', { token: operatorToken })).json
const rotate = () => service.operate('POST /v1/operator/secret/rotate', { token: operatorToken, body: {} })
const isDone = async () => (await secretShown()).rotation.phase === 'done'
const dkimOwner = async (): Promise<string[]> => {
  const rows = await redis.keys('*:dkim:*')
  const owners = rows.map(async (key) => {
    const [accountId, domain] = key.split(':').slice(2)
    return (await redis.hkeys(key)).map((selector) => `${accountId} ${domain} ${selector}`)
  })
  return (await Promise.all(owners)).flat()
}
const userId = '0197f6a5-0000-7000-8000-000000000001'
const seekerOf = async (keys: ReturnType<typeof deriveRingKeys>['sealing']) =>
  new SealedSeeker(keys, [
    ...(await dkimOwner()),
    webhookSecretOwner(liveServer.serverId),
    totpOwner(userId),
    relayPasswordOwner('by'),
  ])
const file = (bytes: number) => ({
  name: 'a.bin',
  contentType: 'application/octet-stream',
  content: randomBytes(bytes).toString('base64'),
})

t.test('rotation: all that is sealed is sealed again, and works as before [secret.rotate]', async (t) => {
  const former = deriveRingKeys(SECRET).sealing
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'live.example' })
  const hook = await call('POST /v1/webhooks', {
    url: 'https://user:word@hooks.example/x',
    format: 'postmark',
    events: ['delivered'],
  })
  t.equal(hook.status, 201, JSON.stringify(hook))
  const content = { from: 'a@live.example', subject: 'With a file', text: 'Hello', attachments: [file(80_000)] }
  const sent = await call('POST /v1/email', { ...content, to: ['b@example.com'] }, testServer.token)
  t.equal(sent.status, 200, JSON.stringify(sent))
  const stream = await call('POST /v1/streams', { kind: 'inbound', name: 'Mail' })
  const mail = 'From: Ada <ada@a.test>\nSubject: Greetings\n\nHello\n'
  t.match(await deliverMail(service.config.mxPort, `${stream.streamId}@${service.config.inboundDomain}`, mail), /^250 /)
  const totp = sealSecret(ringOf(SECRET), {
    secret: randomBytes(20),
    owner: totpOwner(userId),
    nonce: randomBytes(NONCE_BYTES),
  })
  await redis.hset(`{s${String(homeShard(userId)).padStart(3, '0')}}:user:${userId}`, {
    address: 'x@example.com',
    totp: totp.toString('base64'),
  })
  const sources = [{ name: 'by', relay: 'smtp://user@relay.test', password: 'of the relay, which is long enough' }]
  const applied = await service.operate('PUT /v1/operator/egress', {
    token: operatorToken,
    body: { sources, pools: [], rules: [] },
  })
  t.equal(applied.status, 200, applied.text)
  const before = await (await seekerOf(former)).inRedis(redis)
  const kinds = (keys: readonly string[]) => [...new Set(keys.map((key) => key.split(':')[1]))].sort()
  t.same(kinds(before), ['dkim', 'egress', 'head', 'received-head', 'user', 'webhook'])
  t.same(await secretShown(), { generations: 1, rotation: null })

  t.match(await rotate(), { status: 202, json: { phase: 'preparing', waitsFor: null } })
  t.match(await rotate(), { status: 409, json: { error: 'rotation_in_progress' } })
  await until(isDone, WAIT_MS)
  const { generations, rotation } = await secretShown()
  t.equal(generations, 1)
  t.match(rotation, { progress: 1, unreadable: 0, waitsFor: null })
  t.ok(rotation.resealed >= 5)
  const seeker = await seekerOf(former)
  t.same(await seeker.inRedis(redis), [])
  t.same(seeker.inFiles(folder), [])
  t.same(
    readdirSync(folder).filter((name) => name.startsWith('secret-key')),
    ['secret-key'],
  )
  t.not(readFileSync(join(folder, 'secret-key'), 'utf8').trim(), SECRET)
  t.equal(await redis.hget('{cl}:conf', 'version'), '2', 'releases without a ring do not open it')

  t.same((await service.operate('GET /v1/operator/egress', { token: operatorToken })).json.passwords, ['by'])
  const head = await redis.hgetall((await redis.keys('*:head:*'))[0] as string)
  t.match(Object.values(head)[0], /"1\.[\w-]{54}"/, 'a value names its generation')
})

t.test('rotation: a second one begins where the first has ended [secret.rotate]', async (t) => {
  const before = openRing(
    (await redis.hget('{cl}:conf', 'ring')) as string,
    readFileSync(join(folder, 'secret-key'), 'utf8').trim(),
  )
  t.equal((await rotate()).status, 202)
  await until(isDone, WAIT_MS)
  const seeker = await seekerOf(before?.sealing ?? [])
  t.same(await seeker.inRedis(redis), [])
  t.match((await secretShown()).rotation, { unreadable: 0 })
  await service.restart()
  t.match(await secretShown(), { generations: 1, rotation: { phase: 'done' } })
})
