/** listener - transcripts of submission over real sockets: the offers, and the reply to each line. */

import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { until } from '../../support/machine/until.ts'
import { openDialog, type SmtpDialog } from '../../support/peers/smtp-dialog.ts'
import { openSubmission, plainToken } from '../../support/peers/submission.ts'
import { RIG_KEY, startRig } from '../../support/service/submission-rig.ts'

const WAIT_MS = 10_000
/** A number, and an enhanced code of its class, once (RFC 2034 4). */
const ONE_CODE = /^(?:3\d\d(?: |$)|(?:220|250)[ -](?!\d\.)|([245])\d\d[ -]\1\.\d{1,3}\.\d{1,3} (?!\d\.\d+\.\d))/

/** Says each line and matches the reply to it. */
async function walk(t: Test, dialog: SmtpDialog, lines: readonly (readonly [line: string, reply: RegExp])[]) {
  for (const [line, reply] of lines) {
    const said = await dialog.say(line)
    t.match(said, reply, line)
    for (const one of said.split('\n')) t.match(one, ONE_CODE, `${line}: ${one}`)
  }
}

t.test('submission: the offers, before TLS and under it [submission.commands]', async (t) => {
  const { port } = await startRig(t)
  const dialog = await openDialog(port)
  t.equal(dialog.greeting, '220 smtp.service.example ESMTP')
  const offered = (text: string) =>
    text
      .split('\n')
      .map((line) => line.slice(4))
      .sort()
  const always = ['8BITMIME', 'ENHANCEDSTATUSCODES', 'PIPELINING', 'SIZE 10485760', 'smtp.service.example']
  t.same(offered(await dialog.say('EHLO x')), [...always, 'STARTTLS'].sort())
  await walk(t, dialog, [
    [`AUTH PLAIN ${plainToken(RIG_KEY)}`, /^538 5\.7\.11 /],
    ['MAIL FROM:<a@b.co>', /^530 5\.7\.0 /],
    ['STARTTLS', /^220 2\.0\.0 /],
  ])
  t.match(await dialog.upgrade(), /^TLSv1\.[23]$/)
  t.same(offered(await dialog.say('EHLO x')), [...always, 'AUTH PLAIN LOGIN'].sort())
})

t.test('submission: a session, line by line [submission.replies]', async (t) => {
  const { port, mails } = await startRig(t)
  const dialog = await openDialog(port)
  for (const line of ['EHLO x', 'STARTTLS']) await dialog.say(line)
  await dialog.upgrade()
  await walk(t, dialog, [
    ['MAIL FROM:<a@b.co>', /^503 5\.5\.1 /],
    ['EHLO x', /^250-/],
    ['MAIL FROM:<a@b.co>', /^530 5\.7\.0 unauthorized /],
    ['STARTTLS', /^503 5\.5\.1 /],
    ['AUTH CRAM-MD5', /^504 5\.5\.4 /],
    ['AUTH PLAIN', /^334$/],
    ['*', /^501 5\./],
    ['AUTH LOGIN', /^334 VXNlcm5hbWU6$/],
  ])
  await walk(t, dialog, [
    [Buffer.from('anything').toString('base64'), /^334 UGFzc3dvcmQ6$/],
    [Buffer.from(RIG_KEY).toString('base64'), /^235 2\.7\.0 /],
    [`AUTH PLAIN ${plainToken(RIG_KEY)}`, /^503 5\.5\.1 /],
    ['RCPT TO:<x@y.co>', /^503 5\.5\.1 /],
    ['DATA', /^503 5\.5\.1 /],
    ['VRFY x@y.co', /^500 5\.5\.2 /],
    ['MAILBOX_FULL', /^500 5\.5\.2 /],
    ['MAIL FROM:<not an address', /^501 5\.1\.7 /],
    ['MAIL FROM:<ä@b.co>', /^553 5\.6\.7 /],
    ['MAIL FROM:<a@b.co> SIZE=10485761', /^552 5\.3\.4 message_too_large /],
    ['MAIL FROM:<a@b.co> SIZE=x', /^501 5\.5\.4 /],
    ['MAIL FROM:<a@b.co> SMTPUTF8', /^555 5\.5\.4 /],
    ['MAIL FROM:<a@b.co> RET=HDRS', /^555 5\.5\.4 /],
    ['MAIL FROM:<a@b.co> BODY=BINARYMIME', /^501 5\.5\.4 /],
    ['MAIL FROM:<> SIZE=10485760 BODY=8BITMIME AUTH=<>', /^250 2\.1\.0 /],
    ['MAIL FROM:<a@b.co>', /^503 5\.5\.1 /],
    ['RCPT TO:<>', /^501 5\.1\.3 /],
    ['RCPT TO:<postmaster>', /^501 5\.1\.3 /],
    ['RCPT TO:<x@[192.0.2.1]>', /^501 5\.1\.3 /],
    ['RCPT TO:<ö@y.co>', /^501 5\.1\.3 /],
    ['RCPT TO:<x@ÿ.co>', /^501 5\.1\.3 /],
    ['RCPT TO:<x@localhost>', /^501 5\.1\.3 /],
    ['RCPT TO:<"a b"@y.co>', /^501 5\.1\.3 /],
    ['RCPT TO:<x@y.co> NOTIFY=NEVER', /^555 5\.5\.4 /],
    ['RSET', /^250 2\.0\.0 /],
    ['DATA', /^503 5\.5\.1 /],
    ['MAIL FROM:<a@b.co>', /^250 2\.1\.0 /],
    ['RCPT TO:<X@Y.co>', /^250 2\.1\.5 /],
    ['RCPT TO:<x@y.co>', /^250 2\.1\.5 /],
    ['RCPT TO:<x@xn--exmple-cua.co>', /^250 2\.1\.5 /],
    ['DATA', /^354 /],
  ])
  t.equal(await dialog.say('From: a@b.co\r\n\r\n..dot\r\n.'), '250 2.0.0 accepted 1')
  t.equal(mails[0]?.bytes.toString(), 'From: a@b.co\r\n\r\n.dot\r\n')
  t.same(mails[0]?.recipients, ['x@y.co', 'x@xn--exmple-cua.co'], 'each once')
  await walk(t, dialog, [
    ['NOOP', /^250 2\.0\.0 /],
    ['QUIT', /^221 2\.0\.0 /],
  ])
  await dialog.closed()
})

t.test('submission: fifty recipients, and one more [submission.envelope]', async (t) => {
  const { open, mails } = await startRig(t)
  const dialog = await open()
  await dialog.say('MAIL FROM:<a@b.co>')
  for (let n = 0; n < 50; n += 1) t.match(await dialog.say(`RCPT TO:<r${n}@y.co>`), /^250 /)
  t.match(await dialog.say('RCPT TO:<more@y.co>'), /^452 4\.5\.3 /)
  t.match(await dialog.say('RCPT TO:<R0@y.co>'), /^250 /, 'one of them again')
  await dialog.say('DATA')
  t.match(await dialog.say('From: a@b.co\r\n\r\n.'), /^250 /)
  t.equal(mails[0]?.recipients.length, 50)
})

t.test(
  'submission: the third failed login of a connection, and the tenth of a client [submission.login]',
  async (t) => {
    const { port, told } = await startRig(t)
    const tryAll = async () => {
      const dialog = await openDialog(port)
      for (const line of ['EHLO x', 'STARTTLS']) await dialog.say(line)
      await dialog.upgrade()
      await dialog.say('EHLO x')
      const replies: string[] = []
      for (let n = 0; n < 3 && replies.at(-1)?.startsWith('421') !== true; n += 1)
        replies.push(await dialog.say(`AUTH PLAIN ${plainToken('wrong')}`))
      await dialog.closed()
      return replies.map((reply) => reply.slice(0, 9))
    }
    for (let n = 0; n < 3; n += 1) t.same(await tryAll(), ['535 5.7.8', '535 5.7.8', '421 4.7.0'])
    t.same(await tryAll(), ['535 5.7.8', '421 4.7.0'], 'the tenth was the last that was looked at')
    await t.rejects(openSubmission(port, { password: RIG_KEY }), { message: /^421 4\.7\.0 / }, 'the right one neither')
    t.equal(told.filter((one) => one === 'login 535').length, 10)
    t.equal(told.filter((one) => one === 'login 421').length, 2)
  },
)

t.test('submission: keys that cannot be looked up are no failed login', async (t) => {
  const away = { code: 454, text: '4.7.0 unavailable Later' }
  const { port } = await startRig(t, { logIn: async () => away })
  for (let n = 0; n < 12; n += 1)
    await t.rejects(openSubmission(port, { password: RIG_KEY }), { message: '454 4.7.0 unavailable Later' })
})

t.test('submission: TLS from the first byte', async (t) => {
  const { port, mails } = await startRig(t, {}, { isImplicitTls: true })
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  socket.setEncoding('latin1')
  let text = ''
  socket.on('data', (piece: string) => {
    text += piece
  })
  const say = async (line: string, reply: RegExp) => {
    text = ''
    socket.write(`${line}\r\n`)
    await until(() => reply.test(text), WAIT_MS)
  }
  await until(() => text.startsWith('220 smtp.service.example'), WAIT_MS)
  await say('EHLO x', /^250-.*AUTH PLAIN LOGIN.*\n250 /s)
  await say(`AUTH PLAIN ${plainToken(RIG_KEY)}`, /^235 /)
  // All of a message at once, as RFC 2920 allows.
  await say('MAIL FROM:<a@b.co>\r\nRCPT TO:<x@y.co>\r\nDATA', /^250 .*\r\n250 .*\r\n354 /)
  await say('From: a@b.co\r\n\r\nHello\r\n.\r\nQUIT', /^250 2\.0\.0 accepted 1\r\n221 /)
  t.equal(mails.length, 1)
  socket.destroy()
  const plain = connect({ port, host: '127.0.0.1' })
  plain.on('error', () => undefined)
  plain.write('EHLO x\r\n')
  await once(plain, 'close')
})

t.test('submission: commands before TLS are discarded [submission.commands]', async (t) => {
  const { port, mails } = await startRig(t)
  const dialog = await openDialog(port)
  await dialog.say('EHLO plain')
  const smuggled = `EHLO x\r\nAUTH PLAIN ${plainToken(RIG_KEY)}\r\nMAIL FROM:<a@b.co>\r\nRCPT TO:<x@y.co>\r\n`
  dialog.write(`STARTTLS\r\n${smuggled}`)
  t.match(await dialog.say(null), /^220 /)
  await dialog.upgrade()
  await walk(t, dialog, [
    ['MAIL FROM:<a@b.co>', /^503 5\.5\.1 /],
    ['EHLO x', /^250-/],
    ['DATA', /^530 5\.7\.0 /],
  ])
  t.equal(mails.length, 0)
})
