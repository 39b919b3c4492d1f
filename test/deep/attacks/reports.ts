/**
 * Mail to the addresses that take reports from anybody, made so that parsing it takes long: blanks, headers, parts and
 * boundaries without end. Other clients' reports are taken meanwhile.
 */
import t from 'tap'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'

const ATTACKS = {
  blanks: `X-A: a${' '.repeat(150_000)}b\n\ntext`,
  folds: `X-A: a${'\t\n '.repeat(50_000)}b\n\ntext`,
  words: `Subject: ${'=?utf-8?q?a?= '.repeat(10_000)}\n\ntext`,
  parts: `Content-Type: multipart/mixed; boundary=b\n\n${'--b\nContent-Type: message/rfc822\n\n'.repeat(6_000)}`,
  boundaries: `Content-Type: multipart/mixed; boundary=b\n\n${'--bx\n'.repeat(40_000)}`,
  tags: `Content-Type: text/html\n\n${'<a '.repeat(60_000)}`,
  codes: `From: <>\nSubject: Undelivered\n\n${'550 5.1.1 '.repeat(15_000)}`,
  fields: `Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n${'Action: failed\n\n'.repeat(10_000)}`,
}
const FLOOD = ['fbl', 'abuse', 'postmaster']

const service = await startAttacked(t, { SERVICE_DOMAIN: 'service.example' })
const send = (role: string, mail: string) => deliverMail(service.mxPort, `${role}@rp.service.example`, mail)
// A thread that starts is not measured.
await Promise.all(FLOOD.map((role) => send(role, 'Subject: A report\n\nOf a person.')))

t.test('reports: those that take long to parse hold up no other client [bounce.unread]', async (t) => {
  const harm = await service.during(async () => {
    const flood = Object.values(ATTACKS).flatMap((mail) => FLOOD.map((role) => send(role, mail)))
    for (const reply of await Promise.all(flood)) t.match(reply, /^250/)
  }, ['http', 'report'])
  isHarmless(t, harm, { grownMb: 200 })
})
