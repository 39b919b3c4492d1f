/**
 * Random sessions, before TLS, in its handshake, under it and logged in: the listener answers or disconnects, and
 * continues.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { FailedLogins } from '../../../src/reception/submission/failed-logins.ts'
import { makeIdempotency, normaliseSubmission } from '../../../src/sending/smtp-form.ts'
import { readSubmittedBody } from '../../../src/sending/submitted-body.ts'
import { readSubmittedHeader } from '../../../src/sending/submitted-header.ts'
import { openSubmission, plainToken, submitMail } from '../../support/peers/submission.ts'
import { RIG_KEY, startRig } from '../../support/service/submission-rig.ts'

/** A longer run may be requested. */
const SESSIONS = Number(process.env.FUZZ_SESSIONS ?? 400)
const AT_ONCE = 40
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
  ...['EHLO x', 'HELO x', 'MAIL FROM:<>', 'MAIL FROM:<a@b.co> SIZE=1', 'RCPT TO:<ok@a.co>', 'RCPT TO:<\xe4@[1.2.3.4]>'],
  ...['RET=FULL', 'RET=ALL', 'ENVID=a+2Bb', 'ENVID=+C3', 'ENVID'].map((word) => `MAIL FROM:<a@b.co> ${word}`),
  ...['NOTIFY=NEVER', 'NOTIFY=SUCCESS,DELAY', 'NOTIFY=,', 'ORCPT=rfc822;ok@a.co', 'ORCPT=+'].map(
    (word) => `RCPT TO:<ok@a.co> ${word}`,
  ),
  ...[
    'DATA',
    '.',
    'RSET',
    'NOOP',
    'STARTTLS',
    'AUTH',
    'AUTH PLAIN',
    'AUTH LOGIN',
    '*',
    `AUTH PLAIN ${plainToken(RIG_KEY)}`,
  ],
  ...[`AUTH PLAIN ${plainToken('wrong')}`, 'XCLIENT NAME=x', 'PROXY TCP4 1.2.3.4 1.2.3.4 1 2', 'BDAT 5 LAST', 'QUIT'],
]
const FIELDS = [
  ...['From: a@b.co', 'From: =?utf-8?B?', 'To: "a', 'To: ok@a.co, <', 'Bcc: x', 'Received: x', ' fold', 'no field', ''],
  ...['X-Sendwright-Stream: x', 'X-Sendwright-Metadata-k: v', 'X-Sendwright-Tag: t', 'X-Sendwright-Idempotency-Key: k'],
  ...[
    'Content-Type: multipart/mixed; boundary=b',
    'Content-Transfer-Encoding: base64',
    '--b',
    '--b--',
    'Date:',
    '\xe9',
  ],
]

function mail(): string {
  const lines = Array.from({ length: random(12) }, () => (random(8) === 0 ? noise(random(40)) : pick(FIELDS)))
  return `From: a@b.co\r\n${lines.join(random(20) === 0 ? '\n' : '\r\n')}\r\n.\r\n`
}

function session(): string {
  const parts = Array.from({ length: 1 + random(6) }, () => {
    const choice = random(10)
    if (choice < 4) return `${pick(WORDS)}\r\n`
    if (choice < 8) return `MAIL FROM:<a@b.co> ENVID=x\r\nRCPT TO:<ok@a.co> NOTIFY=DELAY\r\nDATA\r\n${mail()}`
    return choice === 8 ? noise(random(60)) : `${pick(WORDS)}${noise(random(20))}\r\n`
  })
  return parts.join('')
}

/** Sends the session in a few pieces, as networks do. */
function write(socket: Socket, text: string): void {
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; ) {
    const next = at + 1 + random(Math.max(1, Math.floor(bytes.length / 3)))
    socket.write(bytes.subarray(at, next))
    at = next
  }
}

t.test(`fuzz: ${SESSIONS} sessions of submission [submission.commands] (seed ${seed})`, async (t) => {
  let taken = 0
  const rig = await startRig(
    t,
    {
      async message(_login, { bytes, recipients, reports }) {
        const read = readSubmittedHeader(bytes)
        if (!read.ok) return { code: 554, text: '5.6.0 invalid_request' }
        const { header } = read
        const body = readSubmittedBody({ edited: header.edited, isKeyed: header.control.idempotencyKey !== null })
        const submission = { header, body, recipients, streamId: null, reports }
        makeIdempotency(submission, normaliseSubmission(submission))
        taken += 1
        return { code: 250, text: '2.0.0 accepted x' }
      },
    },
    // All of them are one client here, and hundreds fail.
    { failedLogins: new FailedLogins(() => performance.now() * 1e9), offersReports: true },
  )
  const odd: string[] = []
  let slow = 0
  const run = async (): Promise<void> => {
    const startedAtMs = performance.now()
    const kind = random(4)
    const raw = connect({ port: rig.port, host: '127.0.0.1' })
    raw.on('error', () => undefined)
    const closed = once(raw, 'close').catch(() => undefined)
    raw.setTimeout(IDLE_MS_MAX, () => raw.destroy())
    const heard = (socket: Socket) => Promise.race([once(socket, 'data').catch(() => undefined), closed])
    if (kind > 0) {
      await heard(raw)
      raw.write('EHLO x\r\n')
      await heard(raw)
    }
    if (kind < 2) {
      raw.resume()
      write(raw, kind === 0 ? session() : `STARTTLS\r\n${noise(random(300))}`)
      if (random(2) === 0) raw.end()
    } else if (!raw.destroyed) {
      raw.write('STARTTLS\r\n')
      await heard(raw)
      raw.removeAllListeners('data')
      const secure = connectTls({ socket: raw, rejectUnauthorized: false })
      secure.on('error', () => undefined)
      let text = ''
      secure.on('data', (piece: Buffer) => {
        text += piece.toString('latin1')
      })
      write(
        secure,
        `EHLO x\r\nAUTH PLAIN ${plainToken(RIG_KEY)}\r\n${session()}${random(2) === 0 ? '.\r\nQUIT\r\n' : ''}`,
      )
      if (random(4) === 0) raw.destroy()
      await closed
      // An interrupted session may lack its end.
      const lines = text.split('\r\n').slice(0, -1)
      odd.push(...lines.filter((line) => !/^[2345]\d\d(?:[ -][ -~]*)?$/.test(line)))
    }
    await closed
    if (performance.now() - startedAtMs > SESSION_MS_MAX) slow += 1
  }
  let left = SESSIONS
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await run()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  t.equal(slow, 0)
  t.same(rig.faults, [])
  t.same(odd, [], 'each line is a reply')
  t.ok(taken > SESSIONS / 20, `${taken} messages came through`)
  const dialog = await openSubmission(rig.port, { password: RIG_KEY })
  t.match(await submitMail(dialog, ['ok@a.co'], 'From: a@b.co\n\nlives on\n'), /^250 /)
  dialog.end()
})
