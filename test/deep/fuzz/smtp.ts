/** Random bytes, broken dialogs and broken mail into the MX listener: it answers or hangs up, and lives on. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { readArf } from '../../../src/mail/report/arf.ts'
import { readDsn } from '../../../src/mail/report/dsn.ts'
import { makeCertificate } from '../../../src/process/certificate.ts'
import { type IncomingMail, startMxListener } from '../../../src/reception/mx-listener.ts'
import { makeReturnedParser } from '../../../src/reception/returned/returned-parser.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'

/** A longer run may be requested. */
const SESSIONS = Number(process.env.FUZZ_SESSIONS ?? 1500)
const AT_ONCE = 250
const SESSION_MS_MAX = 30_000
const IDLE_MS_MAX = 2000

/** A generator of our own (mulberry32), so that a failure can be run again. */
function makeRandom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

const seed = Number(process.env.SEED ?? 1)
const random = makeRandom(seed)
const pick = <One>(all: readonly One[]): One => all[random(all.length)] as One
const noise = (length: number) => String.fromCharCode(...Array.from({ length }, () => random(256)))

const WORDS = [
  'EHLO x',
  'HELO',
  'MAIL FROM:<>',
  'MAIL FROM:<a@b.example> SIZE=1',
  'RCPT TO:<ok@a.example>',
  'RCPT TO:<\xe4@[1.2.3.4]>',
  'DATA',
  '.',
  'RSET',
  'NOOP',
  'STARTTLS',
  'AUTH',
  'XCLIENT NAME=x',
  'PROXY TCP4 1.2.3.4 1.2.3.4 1 2',
  'GET / HTTP/1.1',
  'BDAT 5 LAST',
  'QUIT',
]

const START = 'EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<ok@a.example>\r\nDATA\r\n'

function session(): string {
  const lines = Array.from({ length: 1 + random(8) }, () => {
    const choice = random(10)
    if (choice < 6) return pick(WORDS)
    return choice < 8 ? noise(random(60)) : pick(WORDS) + noise(random(20))
  })
  return lines.join(pick(['\r\n', '\n', '\r', '\0\r\n']) as string) + pick(['\r\n', '', '\r\n.\r\n'])
}

t.test(`fuzz: ${SESSIONS} sessions of random bytes [mx.commands] (seed ${seed})`, async (t) => {
  const room = makeReturnedParser()
  const faults: string[] = []
  let mails = 0
  const listener = await startMxListener({
    host: '127.0.0.1',
    port: 0,
    name: 'mx.service.example',
    certificate: { current: makeCertificate('mx.service.example', Date.now()), onRenewed: () => undefined },
    proxies: [],
    // All of them are one sender here.
    rate: { open: () => true, close: () => undefined },
    handlers: {
      async recipient() {
        return { target: 'x' }
      },
      async mail({ pieces }: IncomingMail<string>) {
        const bytes = await buffer(pieces)
        mails += 1
        const mail = await room.parse(bytes, 'a')
        if (typeof mail === 'object') [readDsn(mail, 'a@b.example'), readArf(mail)]
        return { code: 250, text: '2.0.0 Ok' }
      },
    },
    log: { error: (facts) => void faults.push(JSON.stringify(facts)), debug: () => undefined },
  })
  let slow = 0
  const run = async () => {
    const startedAtMs = performance.now()
    const socket = connect({ port: listener.port, host: '127.0.0.1' })
    socket.on('error', () => undefined).resume()
    // The listener waits for a session in a handshake, as it should. This client does not.
    socket.setTimeout(IDLE_MS_MAX, () => socket.destroy())
    // Half of them do not wait for the greeting.
    const closed = once(socket, 'close').catch(() => undefined)
    if (random(2) === 0) await Promise.race([once(socket, 'data').catch(() => undefined), closed])
    // Whatever went before, this ends a mail and then the session; the others only close their side.
    if (random(2) === 0) socket.write(Buffer.from(`${START}${session()}\r\n.\r\nQUIT\r\n`, 'latin1'))
    else socket.end(Buffer.from(session(), 'latin1'))
    await closed
    if (performance.now() - startedAtMs > SESSION_MS_MAX) slow += 1
  }
  let left = SESSIONS
  const client = async () => {
    while (left > 0) {
      left -= 1
      await run()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  t.equal(slow, 0)
  t.same(faults, [])
  t.ok(mails > 0, `${mails} mails came through`)
  t.match(await deliverMail(listener.port, 'ok@a.example', 'Subject: x\n\nlives on\n'), /^250 /)
  await listener.close()
  await room.close()
})

const PIECES = [
  'Content-Type: multipart/report; boundary=b\r\n',
  'Content-Type: message/delivery-status\r\n',
  'Content-Type: message/feedback-report\r\n',
  'Content-Transfer-Encoding: base64\r\n',
  'Content-Type: message/rfc822\r\n',
  '\r\n',
  '--b\r\n',
  '--b--\r\n',
  'Action: failed\r\n',
  'Status: 5.1.1\r\n',
  'Diagnostic-Code: smtp; 550 ',
  'Feedback-Type: abuse\r\n',
  'Return-Path: <',
  'From: MAILER-DAEMON@x\r\n',
  'could not be delivered\r\n',
  '550 5.1.1 ',
  '=?utf-8?B?',
  '?=',
]

t.test(`fuzz: mail of random pieces is read, or reported as unreadable, in bounded time (seed ${seed})`, async (t) => {
  const room = makeReturnedParser()
  for (let round = 0; round < 400; round += 1) {
    const text = Array.from({ length: 1 + random(60) }, () =>
      random(5) === 0 ? noise(random(30)) : pick(PIECES),
    ).join('')
    const startedAtMs = performance.now()
    const mail = await room.parse(Buffer.from(text, 'latin1'), 'a')
    if (typeof mail === 'object') {
      const dsn = readDsn(mail, 'ada@example.net')
      if (dsn.kind === 'bounce' && (dsn.response ?? '').length > 512) t.fail(text)
      readArf(mail)
    }
    if (performance.now() - startedAtMs > SESSION_MS_MAX) t.fail(`slow: ${text}`)
  }
  await room.close()
})
