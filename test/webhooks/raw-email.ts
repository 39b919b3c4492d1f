/** raw-email - which webhooks get the source of a received mail, and the bound of what is held for them. */
import fc from 'fast-check'
import t from 'tap'
import { RAW_EMAIL_BYTES_MAX } from '../../schemas/limits.ts'
import { DAY_MS } from '../../src/state/calendar.ts'
import { postmarkBody } from '../../src/views/format/postmark.ts'
import { type OpenRaw, RawEmails } from '../../src/webhooks/raw-email.ts'
import { until } from '../support/machine/until.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail } from '../support/world/inbound.ts'
import { makeTenant } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'
import { readerOf } from '../support/world/world-reader.ts'

const WAIT_MS = 30_000
const SOURCE = { from: { email: '', name: null }, subject: null, stream: 'Mail' }

/** A received mail of the world, opened as `open` has it. */
function setUp(open: () => Awaited<ReturnType<OpenRaw>>) {
  const world = new World(Date.UTC(2026, 10, 20, 12))
  const tenant = makeTenant(world)
  const [messageId = ''] = receiveMail(world, tenant, { streamId: makeInboundStream(world, tenant) })
  parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
  const done: string[] = []
  const deps = { read: readerOf(world).read, openRaw: async () => open(), nowMs: () => world.nowMs }
  const rawEmails = new RawEmails({ ...deps, done: (result) => void done.push(result) })
  const reference = { kind: 'inbound', event: 'inbound', segment: '202611-0-1', messageId } as const
  const place = (inboundContent: 'raw' | 'full' | 'reference') => {
    const webhook = { serverId: tenant.live.serverId, inboundContent }
    return { webhook, reference }
  }
  return { world, rawEmails, done, place }
}

/** A mail in the content store. */
function mailOf(bytes: Buffer, pieces = 1) {
  const size = Math.max(1, Math.ceil(bytes.length / pieces))
  async function* each() {
    for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
  }
  return { kind: 'there', size: bytes.length, pieces: each() } as const
}

/** A mail of so many zeros, which are not there until they are read. */
function largeMail(size: number) {
  async function* none(): AsyncGenerator<Buffer> {}
  return { size, pieces: none() }
}

t.test('a webhook that asks for it posts the source, and no other [webhook.raw]', async (t) => {
  const { world, rawEmails, done, place } = setUp(() => mailOf(Buffer.from('Subject: Grüße\r\n\r\nHello\r\n'), 3))
  const echo = async (raw: string | null) => raw
  t.equal(await rawEmails.post(place('raw'), echo), 'Subject: Grüße\r\n\r\nHello\r\n')
  t.equal(await rawEmails.post(place('full'), echo), null)
  t.equal(await rawEmails.post(place('reference'), echo), null)
  t.same(done, ['included'])
  world.nowMs += 40 * DAY_MS
  t.equal(await rawEmails.post(place('raw'), echo), null, 'its content has expired')
  t.same(done, ['included', 'omitted'])
})

t.test('a mail that is too large, damaged or unreachable [webhook.raw]', async (t) => {
  const echo = async (raw: string | null) => raw
  const large = setUp(() => largeMail(RAW_EMAIL_BYTES_MAX + 1))
  t.equal(await large.rawEmails.post(large.place('raw'), echo), null)
  t.same(large.done, ['omitted'])
  const damaged = setUp(() => 'damaged')
  t.equal(await damaged.rawEmails.post(damaged.place('raw'), echo), null)
  const away = setUp(() => 'away')
  t.equal(await away.rawEmails.post(away.place('raw'), echo), 'away')
  async function* broken(): AsyncGenerator<Buffer> {
    yield Buffer.from('a')
    throw new Error('It was removed')
  }
  const removed = setUp(() => ({ size: 2, pieces: broken() }))
  t.equal(await removed.rawEmails.post(removed.place('raw'), echo), 'away')
})

t.test('posts that hang hold so many bytes; others get no room, and later do [webhook.raw]', async (t) => {
  const { rawEmails, done, place } = setUp(() => largeMail(RAW_EMAIL_BYTES_MAX))
  const ends: (() => void)[] = []
  const hang = () => new Promise<string>((resolve) => ends.push(() => resolve('posted')))
  const hanging = Array.from({ length: 6 }, () => rawEmails.post(place('raw'), hang))
  await until(() => ends.length === 6, WAIT_MS)
  t.equal(await rawEmails.post(place('raw'), hang), 'no_room')
  t.equal(done.at(-1), 'no_room')
  const waiting = rawEmails.post(place('raw'), async () => 'posted')
  for (const end of ends) end()
  t.equal(await waiting, 'posted')
  t.same(await Promise.all(hanging), Array(6).fill('posted'))
})

t.test('any bytes give a body of JSON with the text of the mail [webhook.raw]', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2_000 }), fc.integer({ min: 1, max: 9 }), async (bytes, pieces) => {
      const mail = Buffer.from(bytes)
      const { rawEmails, place } = setUp(() => mailOf(mail, pieces))
      const body = await rawEmails.post(place('raw'), async (raw) =>
        JSON.stringify(postmarkBody({ event: 'inbound' } as never, { ...SOURCE, raw: raw ?? '' })),
      )
      t.strictSame(JSON.parse(body).RawEmail, mail.toString('utf8'))
    }),
    { numRuns: 200 },
  )
})
