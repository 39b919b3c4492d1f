/** mx-listener - transcripts over real sockets: offers, refusals, disconnections, and recoveries. */
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { makeCertificate } from '../../src/process/certificate.ts'
import { type MxHandlers, parseEnvelopeAddress, startMxListener } from '../../src/reception/mx-listener.ts'
import { makeSenderRate } from '../../src/reception/sender-rate.ts'
import { watchStalls } from '../support/machine/stall.ts'
import { findSuite } from '../support/machine/suites.ts'
import { until } from '../support/machine/until.ts'
import { deliverMail, openDialog } from '../support/peers/smtp-dialog.ts'

const TLS = makeCertificate('mx.service.example', Date.now())
const SMUGGLING = findSuite('smtp/smuggling.json')
const HAS_OPENSSL = spawnSync('openssl', ['version']).error === undefined

/** A listener whose handlers take `ok…@`, refuse `no…@` for good and `later@` for now, throw at `throw@`. */
async function start(changes: Partial<MxHandlers<string>> = {}, rate = makeSenderRate(() => performance.now())) {
  const received: { text: string; targets: readonly string[] }[] = []
  const faults: string[] = []
  const handlers: MxHandlers<string> = {
    async recipient({ localPart, domain }) {
      if (localPart.startsWith('ok')) return { target: `${localPart}@${domain}` }
      if (localPart === 'later') return { code: 451, text: '4.3.0 Later' }
      if (localPart === 'throw') throw new Error('broken on purpose')
      return { code: 550, text: '5.1.1 No such recipient' }
    },
    async mail({ pieces, targets }) {
      const bytes = await buffer(pieces)
      received.push({ text: bytes.toString('latin1'), targets })
      if (bytes.includes('throw')) throw new Error('broken on purpose')
      return { code: 250, text: '2.0.0 Ok' }
    },
    ...changes,
  }
  const log = { error: (facts: object) => void faults.push(JSON.stringify(facts)), debug: () => undefined }
  const listener = await startMxListener({
    host: '127.0.0.1',
    port: 0,
    name: 'mx.service.example',
    certificate: { current: TLS, onRenewed: () => undefined },
    proxies: [],
    rate,
    handlers,
    log,
  })
  return { listener, port: listener.port, received, faults }
}

const DIALOG: [line: string, reply: RegExp][] = [
  ['VRFY <ok@a.example>', /^5\d\d /],
  ['HELP', /^5\d\d /],
  ['WIZ', /^5\d\d /],
  ['AUTH PLAIN AGEAYg==', /^5\d\d /],
  ['RCPT TO:<ok@a.example>', /^503 /],
  ['DATA', /^503 /],
  ['MAIL FROM:<not an address', /^501 /],
  ['MAIL FROM:<> SIZE=36700161', /^552 /],
  ['MAIL FROM:<> SIZE=36700160', /^250 /],
  ['RCPT TO:<>', /^501 /],
  ['RCPT TO:<no@a.example>', /^550 5\.1\.1 No such recipient$/],
  ['RCPT TO:<later@a.example>', /^451 4\.3\.0 Later$/],
  ['RCPT TO:<throw@a.example>', /^451 4\.3\.0 /],
  ['RCPT TO:<ok@[127.0.0.1]>', /^501 5\.1\.3 /],
  ['RCPT TO:<ok@a.example>', /^250 /],
  ['RSET', /^250 /],
  ['DATA', /^503 /],
  ['MAIL FROM:<someone@b.example>', /^250 /],
  ['rcpt to:<OK2@A.EXAMPLE>', /^550 /],
  ['RCPT TO:<ok2@A.EXAMPLE>', /^250 /],
  ['DATA', /^354 /],
]

t.test('mx-listener: a dialog [mx.commands]', async (t) => {
  const { listener, port, received, faults } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  t.match(dialog.greeting, /^220 mx\.service\.example ESMTP\s*$/)
  const offered = await dialog.say('EHLO client.example')
  t.match(offered, /^250-mx\.service\.example/)
  t.same(
    offered
      .split('\n')
      .slice(1)
      .map((line) => line.slice(4))
      .sort(),
    ['8BITMIME', 'PIPELINING', 'SIZE 36700160', 'STARTTLS'].sort(),
  )
  for (const [line, reply] of DIALOG) t.match(await dialog.say(line), reply, line)
  t.match(await dialog.say('Subject: x\r\n\r\n..dot\r\nbare\nline\r\n.'), /^250 2\.0\.0 Ok/)
  t.same(received, [{ text: 'Subject: x\r\n\r\n.dot\r\nbare\nline\r\n', targets: ['ok2@a.example'] }])
  t.match(await dialog.say('QUIT'), /^221 /)
  t.equal(faults.length, 1)
})

t.test('mx-listener: a handler that throws is 451, and the session continues [mx.commands]', async (t) => {
  const { listener, port, received } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  for (const [text, reply] of [
    ['throw', /^451 4\.3\.0 /],
    ['fine', /^250 /],
  ] as const) {
    await dialog.say('MAIL FROM:<>')
    await dialog.say('RCPT TO:<ok@a.example>')
    await dialog.say('DATA')
    t.match(await dialog.say(`${text}\r\n.`), reply)
  }
  t.equal(received.length, 2)
  dialog.end()
})

t.test('mx-listener: a mail without a sender is distinguished from one with a sender', async (t) => {
  const told: boolean[] = []
  const { listener, port } = await start({
    async mail({ sender }) {
      told.push(sender === null)
      return { code: 250, text: '2.0.0 Ok' }
    },
  })
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  for (const sender of ['', 'someone@b.example']) {
    await dialog.say(`MAIL FROM:<${sender}>`)
    await dialog.say('RCPT TO:<ok@a.example>')
    await dialog.say('DATA')
    t.match(await dialog.say('x\r\n.'), /^250 /)
  }
  t.same(told, [true, false])
  dialog.end()
})

t.test('mx-listener: the tenth refused recipient ends the session [mx.refused]', async (t) => {
  const { listener, port } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  await dialog.say('MAIL FROM:<>')
  for (let refused = 1; refused < 10; refused += 1)
    t.match(await dialog.say(`RCPT TO:<no${refused}@a.example>`), /^550 /)
  t.match(await dialog.say('RCPT TO:<later@a.example>'), /^451 /, 'those put off do not count, and do not end it')
  t.match(await dialog.say('RCPT TO:<no@a.example>'), /^421 4\.7\.0 /)
  await dialog.closed()
})

t.test('mx-listener: 50 recipients, and one more is put off [mx.size]', async (t) => {
  const { listener, port, received } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  await dialog.say('MAIL FROM:<>')
  for (let index = 0; index < 50; index += 1) t.match(await dialog.say(`RCPT TO:<ok${index}@a.example>`), /^250 /)
  t.match(await dialog.say('RCPT TO:<ok50@a.example>'), /^452 /)
  await dialog.say('DATA')
  t.match(await dialog.say('x\r\n.'), /^250 /)
  t.equal(received[0]?.targets.length, 50)
  dialog.end()
})

t.test('mx-listener: a mail that has passed 50 servers is accepted, one more loops [mx.loop]', async (t) => {
  const { listener, port, received } = await start()
  t.teardown(() => listener.close())
  const hops = (count: number) => 'Received: from a by b;\n\tnow\n'.repeat(count)
  const body = `Subject: x\n\n${hops(60)}`
  t.match(await deliverMail(port, 'ok@a.example', hops(50) + body), /^250 /)
  t.match(await deliverMail(port, 'ok@a.example', hops(51) + body), /^554 5\.4\.6 /)
  t.equal(received.length, 1)
})

t.test('mx-listener: a big mail arrives complete; one too big is 552 [mx.size]', async (t) => {
  const { listener, port, received } = await start()
  t.teardown(() => listener.close())
  const line = `${'x'.repeat(98)}\r\n`
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  for (const [bytes, reply] of [
    [3_000_000, /^250 /],
    [36_700_200, /^552 /],
  ] as const) {
    await dialog.say('MAIL FROM:<>')
    await dialog.say('RCPT TO:<ok@a.example>')
    await dialog.say('DATA')
    dialog.write(line.repeat(bytes / line.length))
    t.match(await dialog.say('.'), reply)
  }
  t.equal(received[0]?.text.length, 3_000_000)
  t.equal(received.length, 1)
  dialog.end()
})

t.test(
  'mx-listener: a false end does not end a mail: one mail, and nothing smuggled behind it [mx.commands]',
  { skip: SMUGGLING === null && 'SUITES_DIR is not there' },
  async (t) => {
    const { listener, port, received } = await start()
    t.teardown(() => listener.close())
    const suite = JSON.parse(readFileSync(SMUGGLING as string, 'utf8')) as { inbound_eod: readonly string[] }
    t.ok(suite.inbound_eod.length > 5)
    const smuggled = 'MAIL FROM:<x@a.example>\r\nRCPT TO:<ok@b.example>\r\nDATA\r\nSubject: smuggled\r\n\r\nx'
    for (const end of suite.inbound_eod) {
      received.length = 0
      const dialog = await openDialog(port)
      for (const line of ['EHLO x', 'MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await dialog.say(line)
      t.match(await dialog.say(`Subject: one\r\n\r\none${end}${smuggled}\r\n.`), /^250 /)
      t.match(await dialog.say('QUIT'), /^221 /)
      t.equal(received.length, 1, JSON.stringify(end))
      t.match(received[0], { targets: ['ok@a.example'] })
      t.ok(received[0]?.text.includes('Subject: smuggled'))
    }
  },
)

t.test('mx-listener: a client that goes away in the middle leaves nothing behind', async (t) => {
  const { listener, port, received, faults } = await start()
  const rcpt = await openDialog(port)
  for (const line of ['EHLO x', 'MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await rcpt.say(line)
  rcpt.write('half a mail')
  rcpt.end()
  t.match(await deliverMail(port, 'ok@a.example', 'whole'), /^250 /)
  t.equal(received.length, 1)
  t.same(faults, [])
  const stalls = watchStalls(t)
  const startedAtMs = performance.now()
  await listener.close()
  t.ok(performance.now() - startedAtMs - stalls.during(startedAtMs) < 7500, 'nobody is waited for')
})

t.test('mx-listener: too many connections of one sender are refused [mx.rate]', async (t) => {
  const { listener, port } = await start()
  t.teardown(() => listener.close())
  const open = await Promise.all(Array.from({ length: 30 }, () => openDialog(port)))
  t.ok(open.every(({ greeting }) => greeting.startsWith('220')))
  const more = await openDialog(port)
  t.match(more.greeting, /^421 4\.7\.0 Too many connections/)
  for (const dialog of [...open, more]) dialog.end()
  const next = await until(async () => {
    const dialog = await openDialog(port)
    dialog.end()
    return dialog.greeting.startsWith('220') ? dialog : null
  }, 5000)
  t.ok(next)
})

t.test('mx-listener: STARTTLS, and earlier commands do not count after it [mx.commands]', async (t) => {
  const { listener, port, received } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  await dialog.say('MAIL FROM:<>')
  t.match(await dialog.say('STARTTLS'), /^220 /)
  t.equal(await dialog.upgrade(), 'TLSv1.3')
  t.match(await dialog.say('RCPT TO:<ok@a.example>'), /^503 /)
  const offered = await dialog.say('EHLO client.example')
  t.notMatch(offered, /STARTTLS/)
  for (const line of ['MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await dialog.say(line)
  t.match(await dialog.say('over TLS\r\n.'), /^250 /)
  t.equal(received.length, 1)
  dialog.end()
})

t.test(
  'mx-listener: openssl connects with TLS 1.2 and 1.3, and nothing older [mx.commands]',
  { skip: !HAS_OPENSSL && 'openssl is not installed' },
  async (t) => {
    const { listener, port } = await start()
    t.teardown(() => listener.close())
    const openssl = (version: string) =>
      new Promise<string>((resolve) => {
        const options = ['s_client', '-starttls', 'smtp', '-connect', `127.0.0.1:${port}`, '-brief', version]
        const child = execFile('openssl', options, { timeout: 60_000 }, (_error, out, err) => resolve(out + err))
        child.stdin?.end('QUIT\r\n')
      })
    t.match(await openssl('-tls1_3'), /Protocol version: TLSv1\.3/)
    t.match(await openssl('-tls1_2'), /Protocol version: TLSv1\.2/)
    t.notMatch(await openssl('-tls1_1'), /Protocol version/)
  },
)

t.test('mx-listener: a stop notifies idle sessions, and lets a mail in progress finish [listener.close]', async (t) => {
  let release: () => void = () => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let isHeld = false
  const { listener, port } = await start({
    async mail() {
      isHeld = true
      await released
      return { code: 250, text: '2.0.0 Ok' }
    },
  })
  const idle = await openDialog(port)
  await idle.say('EHLO client.example')
  const busy = await openDialog(port)
  for (const line of ['EHLO x', 'MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await busy.say(line)
  const answer = busy.say('in hand\r\n.')
  await until(async () => isHeld || null, 5000)
  const closed = listener.close()
  t.match(await idle.say(null), /^421 4\.3\.2 /)
  release()
  t.match(await answer, /^250 /)
  await closed
  await t.rejects(openDialog(port), { code: 'ECONNREFUSED' })
})

t.test('mx-listener: a port in use stops the start [listener.port]', async (t) => {
  const { listener, port } = await start()
  t.teardown(() => listener.close())
  const { handlers, rate, log } = { handlers: {} as MxHandlers<string>, rate: makeSenderRate(() => 0), log: console }
  const again = startMxListener({
    host: '127.0.0.1',
    port,
    name: 'x.example',
    certificate: { current: TLS, onRenewed: () => undefined },
    proxies: [],
    rate,
    handlers,
    log,
  })
  await t.rejects(again, { message: /^MX_PORT: cannot listen on 127\.0\.0\.1:\d+/ })
})

const ADDRESSES: [address: string, expected: object | null][] = [
  ['a@b.example', { localPart: 'a', domain: 'b.example' }],
  ['A@B.Example', { localPart: 'A', domain: 'b.example' }],
  ['postmaster', { localPart: 'postmaster', domain: '' }],
  ['a@ä.example', { localPart: 'a', domain: 'xn--4ca.example' }],
  ['someone', null],
  ['a@[127.0.0.1]', null],
  ['ä@b.example', null],
  [`${'a'.repeat(292)}@b.example`, { localPart: 'a'.repeat(292), domain: 'b.example' }],
  [`${'a'.repeat(293)}@b.example`, null],
  ['a b@c.example', null],
  ['a@', null],
  ['@b.example', null],
]
for (const [address, expected] of ADDRESSES)
  t.test(`mx-listener: ${address}`, async (t) => t.same(parseEnvelopeAddress(address), expected))

t.test(
  'mx: a dot behind a bare LF is text, a stuffed one is removed, however the bytes are cut [mx.dots]',
  async (t) => {
    const { listener, port, received } = await start()
    t.teardown(() => listener.close())
    const sent = 'Subject: a\r\n\r\na\n.b\n..c\r\n..d\r\n.e\r\n...\r\n.\rf\n.\ng\r\n..\r\n'
    const kept = 'Subject: a\r\n\r\na\n.b\n..c\r\n.d\r\ne\r\n..\r\n\rf\n.\ng\r\n.\r\n'
    for (const step of [1, 2, 3, 1000]) {
      const dialog = await openDialog(port)
      for (const line of ['EHLO a.example', 'MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await dialog.say(line)
      for (let at = 0; at < sent.length; at += step) {
        dialog.write(sent.slice(at, at + step))
        await new Promise((resolve) => setImmediate(resolve))
      }
      t.match(await dialog.say('.'), /^250 /)
      t.match(await dialog.say('NOOP'), /^250 /, 'what follows is a command')
      t.equal(received.at(-1)?.text, kept, `${step} at a time`)
      dialog.end()
    }
  },
)

t.test('mx: commands without a mail have an end, those between mails begin again [mx.idle]', async (t) => {
  const { listener, port } = await start()
  t.teardown(() => listener.close())
  const dialog = await openDialog(port)
  await dialog.say('EHLO a.example')
  for (let mails = 0; mails < 3; mails += 1) {
    for (let n = 0; n < 90; n += 1) await dialog.say(n % 2 ? 'NOOP' : 'RSET')
    for (const line of ['MAIL FROM:<>', 'RCPT TO:<ok@a.example>', 'DATA']) await dialog.say(line)
    t.match(await dialog.say('Subject: a\r\n\r\ntext\r\n.'), /^250 /)
  }
  let last = ''
  let said = 0
  for (; !last.startsWith('421') && said < 300; said += 1) last = await dialog.say('NOOP')
  t.match(last, /^421 4\.7\.0 Too many commands/)
  t.equal(said, 201)
})

t.test('mx: a /56 has twice the connections of a /64, at once and in a minute [mx.rate]', async (t) => {
  const rate = makeSenderRate(() => 0)
  const opened = (count: number, addressOf: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => rate.open(addressOf(n))).filter(Boolean).length
  t.equal(
    opened(40, () => '2001:db8:0:1::1'),
    30,
  )
  t.equal(
    opened(60, (n) => `2001:db8:0:${(n + 2).toString(16)}::1`),
    20,
    'those that were refused count too',
  )
  t.equal(
    opened(60, (n) => `2001:db8:1:${n.toString(16)}00::1`),
    60,
    'each of another /56',
  )
})
