/**
 * returned-parser - mail in the threads: a result for each, a mail that takes too long, fair service of clients,
 * the end.
 */
import t from 'tap'
import { makeReturnedParser } from '../../../src/reception/returned/returned-parser.ts'

const mail = (subject: string) => Buffer.from(`Subject: ${subject}\r\n\r\nText\r\n`)
const subjectOf = (parsed: unknown) =>
  (parsed as { headers?: [string, string][] }).headers?.find(([name]) => name === 'subject')?.[1] ?? parsed
/** A mail that takes more than the millisecond that some of the rooms give it. */
const slow = Buffer.from(
  `Content-Type: multipart/mixed; boundary=b\r\n\r\n${'--b\r\nX: =?utf-8?q?a?=\r\n\r\n'.repeat(499)}${'--\n'.repeat(70_000)}`,
)

t.test('returned-parser: each mail gets its own result, many at once', async (t) => {
  const room = makeReturnedParser()
  t.teardown(() => room.close())
  const names = Array.from({ length: 50 }, (_, index) => `mail ${index}`)
  t.same((await Promise.all(names.map((name, at) => room.parse(mail(name), `c${at % 3}`)))).map(subjectOf), names)
})

t.test(
  'returned-parser: a mail that takes too long is unreadable, and another one is not [bounce.unread]',
  async (t) => {
    const room = makeReturnedParser(1)
    t.teardown(() => room.close())
    const [late, again] = await Promise.all([room.parse(slow, 'a'), room.parse(slow, 'a')])
    t.same([late, again], ['unreadable', 'unreadable'], 'the thread that was ended has a successor')
    const patient = makeReturnedParser()
    t.teardown(() => patient.close())
    const [huge, small] = await Promise.all([patient.parse(slow, 'a'), patient.parse(mail('small'), 'b')])
    t.type(huge, 'object')
    t.equal(subjectOf(small), 'small')
  },
)

t.test('returned-parser: closed, it is busy for all', async (t) => {
  const room = makeReturnedParser()
  const under = room.parse(mail('under way'), 'a')
  await room.close()
  t.equal(await under, 'busy')
  t.equal(await room.parse(mail('after'), 'a'), 'busy')
})

t.test('returned-parser: waiting mail is bounded', async (t) => {
  const room = makeReturnedParser()
  const all = Array.from({ length: 520 }, (_, index) => room.parse(mail(String(index)), 'a'))
  t.equal(await all[519], 'busy')
  await room.close()
  await Promise.all(all)
})

t.test('returned-parser: a flooding client delays no other [bounce.unread]', async (t) => {
  const room = makeReturnedParser()
  t.teardown(() => room.close())
  // The threads run already, so their start is not measured.
  await Promise.all([room.parse(mail('a'), 'a'), room.parse(mail('b'), 'b')])
  const order: string[] = []
  const parse = (bytes: Buffer, client: string) => room.parse(bytes, client).then(() => order.push(client))
  const flood = Array.from({ length: 60 }, () => parse(slow, 'flood'))
  await parse(mail('one'), 'other')
  t.ok(order.length < 5, `${order.length - 1} mails of the flood came first`)
  await Promise.all(flood)
})
