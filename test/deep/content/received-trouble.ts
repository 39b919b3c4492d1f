/**
 * Received mail while its content store or Redis has a fault: a disk that is full or read-only, an unreachable bucket,
 * a store that does not answer. The sender gets a temporary refusal, no object is left incomplete, and accepted mail
 * is parsed once the fault is over.
 */
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../../support/machine/small-disk.ts'
import { until } from '../../support/machine/until.ts'
import { makeWay } from '../../support/machine/way.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { SWIFT_SKIP, startSwift } from '../../support/peers/swift.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startTestService } from '../../support/service/service.ts'

const MB = 1024 * 1024
const WAIT_MS = 40_000
const zone = await startZone()
t.teardown(() => zone.close())

async function setUp(
  t: Test,
  settings: Readonly<Record<string, string>>,
  options: Parameters<typeof startTestService>[1] = {},
) {
  const service = await startTestService({ DNS_SERVERS: zone.server, CONTENT_STORE: 'file', ...settings }, options)
  t.teardown(() => service.stop())
  const { token } = service.firstRun.liveServer
  const { json } = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })
  const address: string = json.inboundAddress
  const begin = async (to = address) => {
    const dialog = await openDialog(service.config.mxPort)
    for (const line of ['EHLO x', 'MAIL FROM:<a@b.example>']) await dialog.say(line)
    return { dialog, reply: await dialog.say(`RCPT TO:<${to}>`) }
  }
  const deliver = async (text: string) => {
    const { dialog, reply } = await begin()
    if (!reply.startsWith('250')) return reply
    await dialog.say('DATA')
    const said = await dialog.say(`Subject: ${text}\r\n\r\n${'x'.repeat(5_000)}\r\n.`)
    dialog.end()
    return said
  }
  const subjects = async (): Promise<string[]> => {
    const answer = await service.call('POST /v1/inbound/search', { token, body: {} })
    return answer.json.messages.map(({ subject }: { subject: string | null }) => subject ?? '').sort()
  }
  const read = (path: string) => service.call(`GET /v1/inbound/${path}`, { token })
  const unfinished = () => {
    const tmp = join(service.dataDir, 'content', 'tmp')
    return existsSync(tmp) ? readdirSync(tmp) : []
  }
  return { service, begin, deliver, subjects, read, unfinished }
}

const idOf = (reply: string): string => /accepted (\S+)/.exec(reply)?.[1] ?? ''

t.test(
  'received: a full disk defers mail, even in the middle of one, and leaves nothing incomplete [inbound.recipient]',
  { skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(60 * MB)
    t.teardown(disk.unmount)
    let room = 0
    const parseLater = { room: (lane: string) => (lane.startsWith('parse/') ? room : 8) }
    const settings = { DATA_DIR: join(disk.dir, 'data') }
    const { service, begin, deliver, subjects, unfinished } = await setUp(t, settings, parseLater)
    t.match(await deliver('before'), /^250 /)
    const { dialog } = await begin()
    await dialog.say('DATA')
    dialog.write(`Subject: in the midst\r\n\r\n${'y'.repeat(300_000)}\r\n`)
    await until(() => unfinished().length > 0, WAIT_MS)
    const filler = join(disk.dir, 'filler')
    // Nothing at all is left.
    try {
      for (let at = 0; at < 60; at += 1) writeFileSync(filler, Buffer.alloc(MB), { flag: 'a' })
    } catch {}
    for (let at = 0; at < 20; at += 1) dialog.write(`${'z'.repeat(100_000)}\r\n`)
    t.match(await dialog.say('.'), /^452 4\.3\.1 /)
    t.same(unfinished(), [])
    await until(async () => (await service.operate('GET /readyz')).status === 503, WAIT_MS)
    t.match((await begin()).reply, /^452 4\.3\.1 /)
    rmSync(filler)
    await until(async () => (await service.operate('GET /readyz')).status === 200, WAIT_MS)
    t.match(await deliver('after'), /^250 /)
    room = 8
    await until(async () => (await subjects()).join() === 'after,before', WAIT_MS)
    dialog.end()
  },
)

t.test(
  'received: a read-only disk defers mail, and does not lose earlier mail [inbound.receive]',
  { skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(60 * MB)
    t.teardown(disk.unmount)
    let room = 0
    const { deliver, subjects, read } = await setUp(
      t,
      { DATA_DIR: join(disk.dir, 'data') },
      { room: (lane) => (lane.startsWith('parse/') ? room : 8) },
    )
    const first = await deliver('before')
    t.match(first, /^250 /)
    disk.setReadOnly(true)
    t.match(await deliver('refused'), /^451 4\.3\.0 /)
    room = 8
    t.match(
      (await read(`${idOf(first)}`)).json,
      { subject: null, parseIssue: null, authentication: { checkedAt: null } },
      'its result cannot be written: it waits',
    )
    disk.setReadOnly(false)
    t.match(await deliver('after'), /^250 /)
    await until(async () => (await subjects()).includes('after'), WAIT_MS)
  },
)

t.test('received: a frozen store defers mail, and nothing of it appears later [inbound.recipient]', async (t) => {
  const { service, begin, deliver, subjects } = await setUp(t, {})
  t.match(await deliver('before'), /^250 /)
  const { dialog } = await begin()
  await service.redis.kill('SIGSTOP')
  t.match((await begin()).reply, /^451 4\.3\.0 /)
  await dialog.say('DATA')
  const late = dialog.say(`Subject: late\r\n\r\nx\r\n.`)
  const said = await late
  t.match(said, /^451 4\.3\.0 |^$/)
  await service.redis.kill('SIGCONT')
  await until(async () => (await deliver('after')).startsWith('250'), WAIT_MS)
  await until(async () => (await subjects()).includes('after'), WAIT_MS)
  t.notOk((await subjects()).includes('late'), 'what was put off is not there')
  dialog.end()
})

t.test('received: in a bucket that becomes unreachable and returns [inbound.raw]', { skip: SWIFT_SKIP }, async (t) => {
  const swift = await startSwift()
  t.teardown(() => swift.stop())
  await swift.makeBucket('mail')
  const port = await freePort()
  const way = makeWay(port, Number(new URL(swift.endpoint).port))
  await way.open()
  t.teardown(() => way.close())
  let room = 0
  const { deliver, subjects, read } = await setUp(
    t,
    {
      CONTENT_STORE: 's3://mail/of/us',
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_ACCESS_KEY_ID: swift.accessKeyId,
      S3_SECRET_ACCESS_KEY: swift.secretAccessKey,
    },
    { room: (lane) => (lane.startsWith('parse/') ? room : 8) },
  )
  const first = await deliver('before')
  t.match(first, /^250 /)
  way.close()
  t.match(await deliver('away'), /^451 4\.3\.0 /)
  t.equal((await read(`${idOf(first)}/raw`)).status, 503)
  await way.open()
  room = 8
  await until(async () => (await subjects()).join() === 'before', WAIT_MS)
  t.equal((await read(`${idOf(first)}/raw`)).text.length, 'Subject: before\r\n\r\n'.length + 5_002)
  t.match(await deliver('after'), /^250 /)
  way.close()
  t.equal((await read(idOf(first))).status, 503, 'what it says is away, not gone')
})
