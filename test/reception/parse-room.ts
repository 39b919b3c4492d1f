/**
 * parse-room - mail in the thread: results in order, a mail that takes too long, one that kills the thread, the end.
 */
import t from 'tap'
import { makeParseRoom } from '../../src/reception/parse-room.ts'

const mail = (subject: string) => Buffer.from(`Subject: ${subject}\r\n\r\nText\r\n`)
const subjectOf = (parsed: unknown) =>
  (parsed as { headers?: [string, string][] }).headers?.find(([name]) => name === 'subject')?.[1] ?? parsed

t.test('parse-room: each mail gets its own result, many at once', async (t) => {
  const room = makeParseRoom()
  t.teardown(() => room.close())
  const names = Array.from({ length: 50 }, (_, index) => `mail ${index}`)
  t.same((await Promise.all(names.map((name) => room.parse(mail(name))))).map(subjectOf), names)
})

t.test('parse-room: what takes too long is unreadable, and what waits behind it is not', async (t) => {
  const room = makeParseRoom(1)
  t.teardown(() => room.close())
  // A thread needs longer than a millisecond to start.
  t.equal(await room.parse(mail('late')), 'unreadable')
  const patient = makeParseRoom()
  t.teardown(() => patient.close())
  const parts = `--b\r\nContent-Type: message/rfc822\r\n\r\n`.repeat(50_000)
  const [huge, small] = await Promise.all([
    patient.parse(Buffer.from(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${parts}`)),
    patient.parse(mail('small')),
  ])
  t.ok(huge === 'unreadable' || typeof huge === 'object')
  t.equal(subjectOf(small), 'small')
})

t.test('parse-room: closed, it is busy for all', async (t) => {
  const room = makeParseRoom()
  const under = room.parse(mail('under way'))
  await room.close()
  t.equal(await under, 'busy')
  t.equal(await room.parse(mail('after')), 'busy')
})

t.test('parse-room: what waits is bounded', async (t) => {
  const room = makeParseRoom()
  const all = Array.from({ length: 520 }, (_, index) => room.parse(mail(String(index))))
  t.equal(await all[519], 'busy')
  await room.close()
  await Promise.all(all)
})
