/**
 * trouble - submission among clients that are too many, too slow, too large, broken or hostile; and a stop among them.
 */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { HeldBytes } from '../../../src/process/held-bytes.ts'
import { findSuite } from '../../support/machine/suites.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { submitMail } from '../../support/peers/submission.ts'
import { startRig } from '../../support/service/submission-rig.ts'

const SMUGGLING = findSuite('smtp/smuggling.json')
const WAIT_MS = 10_000
const MAIL = 'From: a@b.co\nSubject: Hi\n\nHello\n'

t.test('submission: a client that speaks before the greeting, HTTP, or too many words, is disconnected', async (t) => {
  const { port } = await startRig(t)
  for (const [said, reply] of [
    ['EHLO x\r\n', /^421 4\.7\.0 /],
    ['GET / HTTP/1.1\r\n', /^421 4\.7\.0 /],
  ] as const) {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.setEncoding('latin1')
    let text = ''
    socket.on('data', (piece: string) => {
      text += piece
    })
    socket.write(said)
    await once(socket, 'close')
    t.match(text, reply)
  }
  const unrecognised = await openDialog(port)
  const unauthenticated = await openDialog(port)
  let last = ''
  for (let n = 0; n < 10; n += 1) last = await unrecognised.say(`WHAT${n}`)
  t.match(last, /^421 4\.7\.0 /)
  await unauthenticated.say('EHLO x')
  for (let n = 0; n < 9; n += 1) last = await unauthenticated.say('NOOP')
  t.match(last, /^421 4\.7\.0 /)
  const long = await openDialog(port)
  t.match(await long.say('x'.repeat(5000)), /^421 4\.7\.0 /)
})

t.test('submission: the connection beyond the limit [submission.connections]', async (t) => {
  const { port } = await startRig(t)
  const open = await Promise.all(Array.from({ length: 200 }, () => openDialog(port)))
  t.equal(open.filter(({ greeting }) => greeting.startsWith('220 ')).length, 200)
  t.match((await openDialog(port)).greeting, /^421 4\.7\.0 Too many connections/)
  t.match(await open[0]?.say('QUIT'), /^221 /)
  await until(async () => (await openDialog(port)).greeting.startsWith('220 '), WAIT_MS)
  for (const one of open) one.end()
})

const OTHER = '127.0.66.1'

t.test('submission: a client holds all places until another one comes [submission.connections]', async (t) => {
  const { port, open } = await startRig(t, {}, { limits: { connections: 6, crowdedFrom: 4 } })
  const logged = await open()
  const flood = await Promise.all(Array.from({ length: 5 }, () => openDialog(port)))
  t.ok(
    flood.every(({ greeting }) => greeting.startsWith('220 ')),
    "all six are one client's",
  )
  t.match((await openDialog(port)).greeting, /^421 4\.7\.0 Too many connections/)
  const others = []
  for (let n = 0; n < 2; n += 1) others.push(await openDialog(port, '127.0.0.1', OTHER))
  t.ok(
    others.every(({ greeting }) => greeting.startsWith('220 ')),
    'others are served',
  )
  for (const one of flood.slice(0, 2)) t.match(await one.say(null), /^421 4\.7\.0 Too many connections without login/)
  t.match(await logged.say('NOOP'), /^250 /, 'who has logged in stays')
  t.match(await flood[4]?.say('NOOP'), /^250 /)
})

t.test(
  'submission: TLS that never begins has its time, and its place goes to another client [submission.time]',
  async (t) => {
    const rig = { isImplicitTls: true, limits: { connections: 4, crowdedFrom: 3, handshakeMs: 500 } }
    const { port } = await startRig(t, {}, rig)
    const closedMs = (socket: Socket) => once(socket.resume(), 'close').then(() => performance.now())
    const fromMs = performance.now()
    const silent = Array.from({ length: 3 }, () => connect({ port, host: '127.0.0.1' }))
    const closed = silent.map(closedMs)
    await Promise.all(silent.map((socket) => once(socket, 'connect')))
    const below = connect({ port, host: '127.0.0.1', localAddress: OTHER })
    const other = connectTls({ socket: below, rejectUnauthorized: false })
    t.match(String((await once(other, 'data'))[0]), /^220 /)
    const [first = 0, ...rest] = await Promise.all(closed)
    t.ok(first - fromMs < 450, 'the oldest is displaced at once')
    for (const atMs of rest) t.ok(atMs - fromMs >= 450, 'the others have their time')
    other.destroy()
  },
)

t.test('submission: silence, no login and a message that trickles have their time [submission.time]', async (t) => {
  const idle = await startRig(t, {}, { limits: { idleMs: 300 } })
  const silent = await openDialog(idle.port)
  t.match(await silent.say(null), /^421 4\.4\.2 /)
  const slow = await startRig(t, {}, { limits: { loginMs: 400 } })
  const dialog = await openDialog(slow.port)
  const noops = setInterval(() => dialog.write('N'), 50)
  t.match(await dialog.say(null), /^421 4\.4\.2 /)
  clearInterval(noops)
  const late = await startRig(t, {}, { limits: { loginMs: 2000, dataMs: 400 } })
  const logged = await late.open()
  for (const line of ['MAIL FROM:<a@b.co>', 'RCPT TO:<x@y.co>', 'DATA']) await logged.say(line)
  const drip = setInterval(() => logged.write('x'), 50)
  t.match(await logged.say(null), /^421 4\.4\.2 /)
  clearInterval(drip)
  t.equal(late.mails.length, 0)
  await until(() => late.told.includes('message cut'), WAIT_MS)
})

t.test('submission: lines that do not end in CRLF are refused with all that follows [submission.lines]', async (t) => {
  const { open, mails } = await startRig(t)
  const dialog = await open()
  const bad = ['a\nb', 'a\rb', '\0', 'a\n.\nMAIL FROM:<evil@b.co>', '\r\n\0.', 'x\r']
  for (const body of bad) {
    for (const line of ['MAIL FROM:<a@b.co>', 'RCPT TO:<x@y.co>', 'DATA']) await dialog.say(line)
    t.match(await dialog.say(`From: a@b.co\r\n\r\n${body}\r\n.`), /^554 5\.6\.0 invalid_request /, JSON.stringify(body))
  }
  t.equal(mails.length, 0)
  t.match(await submitMail(dialog, ['x@y.co'], MAIL), /^250 /, 'the session goes on')
})

t.test(
  'submission: smuggled ends are no ends [submission.lines]',
  { skip: SMUGGLING === null && 'SUITES_DIR is not there' },
  async (t) => {
    const { open, mails } = await startRig(t)
    const suite = JSON.parse(readFileSync(SMUGGLING as string, 'utf8')) as { inbound_eod: readonly string[] }
    t.ok(suite.inbound_eod.length > 5)
    const smuggled = 'MAIL FROM:<x@a.co>\r\nRCPT TO:<evil@b.co>\r\nDATA\r\nFrom: a@b.co\r\n\r\nsmuggled'
    for (const end of suite.inbound_eod) {
      const dialog = await open()
      for (const line of ['MAIL FROM:<a@b.co>', 'RCPT TO:<x@y.co>', 'DATA']) await dialog.say(line)
      t.match(await dialog.say(`From: a@b.co\r\n\r\none${end}${smuggled}\r\n.`), /^554 5\.6\.0 /, JSON.stringify(end))
      t.match(await dialog.say('QUIT'), /^221 /)
    }
    t.equal(mails.length, 0)
  },
)

t.test('submission: ten megabytes pass, one byte more does not [send.size]', async (t) => {
  const { open, mails } = await startRig(t)
  const dialog = await open()
  const head = 'From: a@b.co\r\n\r\n'
  const line = `${'x'.repeat(1022)}\r\n`
  const fill = (bytes: number) => {
    const body = line.repeat(Math.ceil(bytes / line.length)).slice(0, bytes - head.length - 2)
    return `${head}${body.endsWith('\r') ? `${body.slice(0, -1)}y` : body}\r\n`
  }
  for (const [bytes, reply] of [
    [10_485_760, /^250 /],
    [10_485_761, /^552 5\.3\.4 message_too_large /],
    [12_000_000, /^552 5\.3\.4 message_too_large /],
  ] as const) {
    for (const said of ['MAIL FROM:<a@b.co>', 'RCPT TO:<x@y.co>', 'DATA']) await dialog.say(said)
    dialog.write(Buffer.from(`${fill(bytes)}.\r\n`, 'latin1'))
    t.match(await dialog.say(null), reply, `${bytes} bytes`)
  }
  t.same(
    mails.map(({ bytes }) => bytes.length),
    [10_485_760],
  )
})

t.test('submission: too much at once is 452, and held bytes are released [submission.held]', async (t) => {
  const { open, mails } = await startRig(t, {}, { held: new HeldBytes(2000) })
  const dialog = await open()
  const large = `From: a@b.co\n\n${`${'x'.repeat(70)}\n`.repeat(40)}`
  t.match(await submitMail(dialog, ['x@y.co'], large), /^452 4\.3\.1 /)
  for (let n = 0; n < 50; n += 1) t.match(await submitMail(dialog, ['x@y.co'], MAIL), /^250 /)
  t.equal(mails.length, 50)
})

t.test('submission: a fault is 451, and an unknown outcome gets no reply [submission.durable]', async (t) => {
  const { open, told, faults } = await startRig(t, {
    async begin() {
      if (told.length === 1) throw new Error('broken at MAIL')
      return null
    },
    async message(_login, { bytes }) {
      if (bytes.includes('throw')) throw new Error('broken on purpose')
      return bytes.includes('doubt') ? 'cut' : { code: 250, text: '2.0.0 accepted x' }
    },
  })
  const dialog = await open()
  t.match(await submitMail(dialog, ['x@y.co'], MAIL), /^451 4\.3\.0 /)
  told.push('')
  t.match(await submitMail(dialog, ['x@y.co'], `${MAIL}throw\n`), /^451 4\.3\.0 /)
  t.equal(faults.length, 2)
  t.match(await submitMail(dialog, ['x@y.co'], MAIL), /^250 /, 'the session goes on')
  t.equal(await submitMail(dialog, ['x@y.co'], `${MAIL}doubt\n`), '')
  await dialog.closed()
  t.equal(told.at(-1), 'message cut')
  t.match(await submitMail(await open(), ['x@y.co'], MAIL), /^250 /, 'others are not harmed')
})

t.test('submission: a client that goes away in the middle leaves nothing behind', async (t) => {
  const held = new HeldBytes(5000)
  const { open, mails, told, faults } = await startRig(t, {}, { held })
  for (let n = 0; n < 5; n += 1) {
    const dialog = await open()
    for (const line of ['MAIL FROM:<a@b.co>', 'RCPT TO:<x@y.co>', 'DATA']) await dialog.say(line)
    dialog.write(`From: a@b.co\r\n\r\n${'x'.repeat(3000)}`)
    dialog.end()
    await until(() => told.filter((one) => one === 'message cut').length === n + 1, WAIT_MS)
  }
  t.equal(mails.length, 0)
  t.same(faults, [])
  t.equal(held.take(5000), true, 'all of it is given back')
})

t.test(
  'submission: a stop lets a message in progress have its answer, and notifies idle clients [listener.close]',
  async (t) => {
    let answer: () => void = () => undefined
    const { open, close, port } = await startRig(t, {
      message: () =>
        new Promise((resolve) => {
          answer = () => resolve({ code: 250, text: '2.0.0 accepted x' })
        }),
    })
    const [idle, busy] = [await open(), await open()]
    const submitted = submitMail(busy, ['x@y.co'], MAIL)
    await until(() => String(answer) !== '() => undefined', WAIT_MS)
    const closing = close()
    t.match(await idle.say(null), /^421 4\.3\.2 /)
    answer()
    t.match(await submitted, /^250 /)
    t.match(await busy.say(null), /^421 4\.3\.2 /)
    await closing
    await t.rejects(openDialog(port), { code: 'ECONNREFUSED' })
  },
)

t.test('submission: a stop at the moment of a connection does no harm', async (t) => {
  for (const isImplicitTls of [true, false]) {
    const { port, close } = await startRig(t, {}, { isImplicitTls })
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => undefined)
    socket.resume()
    const closed = once(socket, 'close')
    await once(socket, 'connect')
    // The listener gets the connection in the same turn of the loop, or in the next.
    await close()
    await closed
  }
  t.pass('the process lives')
})

t.test('submission: a port in use names its setting [listener.port]', async (t) => {
  const { port } = await startRig(t)
  await t.rejects(startRig(t, {}, { port, setting: 'SUBMISSION_TLS_PORT' }), {
    message: /^SUBMISSION_TLS_PORT: cannot listen on 127\.0\.0\.1:\d+/,
  })
})
