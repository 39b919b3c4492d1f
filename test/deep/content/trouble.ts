/**
 * A service whose content store has a fault: a disk that is full or read-only, an unreachable bucket. New mail is
 * refused with a time to retry, and accepted mail is finished once the fault is over.
 */
import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../../support/machine/small-disk.ts'
import { until } from '../../support/machine/until.ts'
import { makeWay } from '../../support/machine/way.ts'
import { SWIFT_SKIP, startSwift } from '../../support/peers/swift.ts'
import { startTestService, type TestService } from '../../support/service/service.ts'

const MB = 1024 * 1024
const WAIT_MS = 30_000

const large = (to = 'person@simulator.test') => ({
  from: 'you@simulator.test',
  to: [to],
  subject: 'Large',
  text: 'It is attached.',
  attachments: [
    { name: 'a.bin', contentType: 'application/octet-stream', content: randomBytes(200_000).toString('base64') },
  ],
})
const small = { from: 'you@simulator.test', to: ['person@simulator.test'], subject: 'Small', text: 'A text.' }

async function statusOf(service: TestService, messageId: string): Promise<string> {
  const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: service.firstRun.testServer.token })
  return json.recipients[0].status
}

t.test(
  'content: a full disk refuses new mail, reports it, and finishes accepted mail',
  { skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(20 * MB)
    t.teardown(disk.unmount)
    let room = 0
    const service = await startTestService(
      { CONTENT_STORE: 'file', DATA_DIR: join(disk.dir, 'data') },
      { room: () => room },
    )
    t.teardown(() => service.stop())
    const { token } = service.firstRun.testServer
    const send = (body: object) => service.call('POST /v1/email', { token, body })
    const accepted = await send(large())
    t.equal(accepted.status, 200)
    const filler = join(disk.dir, 'filler')
    writeFileSync(filler, Buffer.alloc(18.5 * MB))
    await until(async () => (await service.operate('GET /readyz')).status === 503, WAIT_MS)
    t.match((await service.operate('GET /readyz')).text, /disk is nearly full/)
    for (const body of [large(), small]) {
      const refused = await send(body)
      t.equal(refused.status, 503)
      t.ok(Number(refused.headers.get('retry-after')) >= 1)
    }
    const health = await service.operate('GET /v1/operator/health', { token: service.firstRun.operatorToken })
    const found = health.json.findings.find(({ name }: { name: string }) => name === 'content')
    t.match(found, { status: 'failed', message: /new mail is refused/ })
    room = 64
    await until(async () => (await statusOf(service, accepted.json.messageId)) === 'delivered', WAIT_MS)
    t.pass('what was accepted is delivered from the full disk')
    rmSync(filler)
    await until(async () => (await service.operate('GET /readyz')).status === 200, WAIT_MS)
    t.equal((await send(large())).status, 200)
  },
)

t.test('content: a read-only disk refuses large mail and takes small mail', { skip: SMALL_DISK_SKIP }, async (t) => {
  const disk = mountSmallDisk(20 * MB)
  t.teardown(disk.unmount)
  const service = await startTestService({ CONTENT_STORE: 'file', DATA_DIR: join(disk.dir, 'data') })
  t.teardown(() => service.stop())
  const { token } = service.firstRun.testServer
  disk.setReadOnly(true)
  t.equal((await service.call('POST /v1/email', { token, body: large() })).status, 503)
  t.equal((await service.call('POST /v1/email', { token, body: small })).status, 200)
  const health = await service.operate('GET /v1/operator/health', { token: service.firstRun.operatorToken })
  const found = health.json.findings.find(({ name }: { name: string }) => name === 'content')
  t.match(found, { status: 'failed', message: /does not work: E[A-Z]+/, fix: /Let the service's user write/ })
  disk.setReadOnly(false)
  t.equal((await service.call('POST /v1/email', { token, body: large() })).status, 200)
})

t.test('content: in a bucket, which goes away and comes back', { skip: SWIFT_SKIP }, async (t) => {
  const swift = await startSwift()
  t.teardown(() => swift.stop())
  await swift.makeBucket('mail')
  const port = await freePort()
  const way = makeWay(port, Number(new URL(swift.endpoint).port))
  await way.open()
  t.teardown(() => way.close())
  let room = 0
  const service = await startTestService(
    {
      CONTENT_STORE: 's3://mail/of/us',
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_ACCESS_KEY_ID: swift.accessKeyId,
      S3_SECRET_ACCESS_KEY: swift.secretAccessKey,
    },
    { room: () => room },
  )
  t.teardown(() => service.stop())
  const { token } = service.firstRun.testServer
  const send = (body: object) => service.call('POST /v1/email', { token, body })
  const accepted = await send(large())
  t.equal(accepted.status, 200)
  way.close()
  const away = await send(large())
  t.equal(away.status, 503)
  t.equal((await send(small)).status, 200, 'small mail needs no bucket')
  room = 64
  await way.open()
  await until(async () => (await statusOf(service, accepted.json.messageId)) === 'delivered', WAIT_MS)
  t.equal((await send(large())).status, 200)
  const health = await service.operate('GET /v1/operator/health', { token: service.firstRun.operatorToken })
  const found = health.json.findings.find(({ name }: { name: string }) => name === 'content')
  t.match(found, { status: 'ok', message: 'Large content is in s3' })
})
