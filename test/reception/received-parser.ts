/** received-parser - the thread that parses received mail: results, time, memory, and the result of an abort. */
import { inflateSync } from 'node:zlib'
import t from 'tap'
import { MAIL_BYTES_MAX } from '../../schemas/limits.ts'
import type { ReceivedMail } from '../../src/mail/mime/received-mail.ts'
import type { ParsedMail } from '../../src/reception/parsed-mail.ts'
import { makeReceivedParser } from '../../src/reception/received-parser.ts'
import { makeCorpus } from '../support/peers/mime-corpus.ts'
import { mailOf } from '../support/peers/mime-mail.ts'

/** The parts that are lost with a mail's content, and the others. */
function wholeOf(mail: ParsedMail | null) {
  if (mail === null) return null
  const { packed, ...rest } = mail
  return { ...(JSON.parse(String(inflateSync(packed))) as Partial<ReceivedMail>), ...rest }
}

const FROM = 'From: ada@mail.example\nSubject: Greetings\nTo: b@mail.example\n'

t.test('received-parser: mails are parsed, one after the other', async (t) => {
  const room = makeReceivedParser()
  t.teardown(() => room.close())
  const mails = await Promise.all([0, 1, 2].map((number) => room.parse(mailOf(`${FROM}\ntext ${number}`))))
  t.same(
    mails.map((mail) => wholeOf(mail)?.text),
    ['text 0', 'text 1', 'text 2'],
  )
  t.same(
    mails.map((mail) => mail?.parseIssue),
    [null, null, null],
  )
})

t.test('received-parser: memory that threads share is parsed as any other, in every character set', async (t) => {
  const room = makeReceivedParser()
  t.teardown(() => room.close())
  for (const { raw } of makeCorpus(21, 60)) {
    const shared = Buffer.from(new SharedArrayBuffer(raw.length))
    shared.set(raw)
    t.same(await room.parse(shared), await room.parse(raw))
  }
})

t.test(
  'received-parser: a mail that takes too long keeps its fields, and the next mail is parsed [inbound.parse]',
  async (t) => {
    // 5 MB take a parser far longer than a millisecond.
    const room = makeReceivedParser(1)
    t.teardown(() => room.close())
    const raw = mailOf(`${FROM}\n${'text\n'.repeat(1_000_000)}`)
    const mail = await room.parse(raw)
    t.match(wholeOf(mail), { parseIssue: 'parse_timeout', text: null, hasText: false, attachments: [] })
    t.match(await room.parse(raw), { parseIssue: 'parse_timeout' })
  },
)

t.test('received-parser: reported fields stay [inbound.parse]', async (t) => {
  const head = `${FROM}Content-Type: multipart/mixed; boundary=b\n\n--b\n\n`
  const start = mailOf(head)
  const raw = Buffer.concat([start, Buffer.alloc(MAIL_BYTES_MAX - start.length, '--bx\n')])
  const warm = makeReceivedParser(20_000)
  t.teardown(() => warm.close())
  t.equal((await warm.parse(raw))?.parseIssue, 'truncated_multipart', 'in its time it ends')
  let mail: ParsedMail | null = null
  // How long starting takes is the machine's affair; the fields come after it, the end of the mail long after them.
  for (let ms = 150; mail?.subject !== 'Greetings' && ms < 5000; ms += 50) {
    const room = makeReceivedParser(ms)
    mail = await room.parse(raw)
    await room.close()
  }
  t.match(wholeOf(mail), {
    parseIssue: 'parse_timeout',
    subject: 'Greetings',
    from: { address: 'ada@mail.example' },
    text: null,
    named: ['ada@mail.example', 'b@mail.example'],
  })
})

t.test('received-parser: 35 MB in the memory that a thread has, the main thread runs on', async (t) => {
  const room = makeReceivedParser()
  t.teardown(() => room.close())
  const start = mailOf(`${FROM}Content-Transfer-Encoding: quoted-printable\nContent-Type: application/x-bomb\n\n`)
  const raw = Buffer.concat([start, Buffer.alloc(MAIL_BYTES_MAX - start.length, '=41=42=\r\n')])
  const mail = await room.parse(raw)
  t.equal(mail?.parseIssue, null)
  t.equal(mail?.attachmentCount, 1)
})

t.test('received-parser: closed, it parses nothing', async (t) => {
  const room = makeReceivedParser()
  const parsing = room.parse(mailOf(`${FROM}\ntext`))
  await room.close()
  t.same([await parsing, await room.parse(mailOf(FROM))], [null, null])
})
