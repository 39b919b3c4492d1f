/** compose - a corpus against nodemailer's own serializer (byte by byte) and against an independent parser. */

import type { ParsedMail } from 'mailparser'
import { simpleParser } from 'mailparser'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { Test } from 'tap'
import t from 'tap'
import type { ComposeInput } from '../../../src/mail/compose/compose.ts'
import { composeMessage, makeMailOptions } from '../../../src/mail/compose/compose.ts'

const BASE: ComposeInput = {
  messageId: '018f0000-0000-7000-8000-000000000001',
  acceptedAtMs: Date.UTC(2026, 0, 31, 12, 0, 0),
  from: { address: 'shop@acme.test', name: 'Acme Shop' },
  to: [{ address: 'ann@example.com', name: null }],
  cc: [],
  subject: 'Your receipt',
  text: 'Hello\nand thanks.\n.\nA dot line above.',
  html: null,
  headers: {},
  attachments: [],
  boundarySeed: 'seed0001',
}
const UMLAUTS = 'Grüße aus Köln '.repeat(40)
const KANJI = '請求書のお知らせ'.repeat(60)
const file = (name: string, more: object = {}) => ({
  name,
  contentType: null,
  contentId: null,
  content: Buffer.from('file bytes \0 \r \n end'),
  ...more,
})

const CORPUS: Record<string, Partial<ComposeInput>> = {
  'text only': {},
  'html only': { text: null, html: '<p>Hello</p>' },
  'text and html': { html: '<p>Hello</p>' },
  'line ends of every kind': { text: 'a\rb\nc\r\nd\n\r\n.\r\n..x\n' },
  'long lines': { text: 'x'.repeat(3000), html: `<p>${'word '.repeat(900)}</p>` },
  'trailing blanks': { text: `a \nb\t\n${'c '.repeat(60)}\nlast ` },
  'latin text': { text: UMLAUTS, html: `<p>${UMLAUTS}</p>` },
  'kanji text': { text: KANJI, html: `<p>${KANJI}</p>` },
  'emoji everywhere': {
    subject: '🎉'.repeat(300),
    text: '🎉'.repeat(500),
    from: { address: 'a@b.test', name: '🎉'.repeat(100) },
  },
  'html beyond one slice': { html: `<p>${'Grüße = ok, fine. '.repeat(9000)}</p>` },
  names: {
    from: { address: 'a@b.test', name: 'Doe, "John" <x@y> (c)' },
    to: [
      { address: 'ann@example.com', name: 'Ännchen' },
      { address: 'bob+tag@example.com', name: 'x'.repeat(200) },
      { address: "o'neil@example.com", name: ' padded ' },
    ],
    cc: [{ address: 'carl@example.com', name: null }],
  },
  'fifty recipients': {
    to: Array.from({ length: 50 }, (_, n) => ({ address: `r${n}@example.com`, name: `Réc ${n}` })),
  },
  'subject of 998 without a space': { subject: 's'.repeat(998) },
  'subject of 998 kanji': { subject: '件'.repeat(998) },
  'subject with controls': { subject: 'a\tb\rc\nBcc: x@y.test\u0085d' },
  'custom headers': {
    headers: {
      'Reply-To': 'Help <help@acme.test>',
      'List-Unsubscribe': `<https://acme.test/u/${'t'.repeat(900)}>`,
      'X-Words': 'word '.repeat(190).trim(),
      'X-Blanks': `a${' '.repeat(300)}b`,
      'X-Solid': 'v'.repeat(998),
      'X-Kanji': '値'.repeat(300),
      key: 'a field named key',
      value: 'a field named value',
      [`X-${'N'.repeat(74)}`]: 'n'.repeat(990),
    },
  },
  'feedback id of the service': { feedbackId: 'aGVsbG8_:0e7faee5:faee555a:sw0123456789' },
  'header that fits in no line': { headers: { References: `<${'r'.repeat(996)}>` } },
  attachments: {
    html: '<img src="cid:logo">',
    attachments: [
      file('logo.png', { contentId: 'logo' }),
      file('Rechnung für März.pdf'),
      file(`${'x'.repeat(250)}.txt`),
      file('請'.repeat(255)),
      file('empty', { content: Buffer.alloc(0) }),
      file('quote".txt'),
    ],
  },
  'attachment with content id but no html': { attachments: [file('logo.png', { contentId: 'logo@ü' })] },
  'one attachment without text': { text: null, html: null, attachments: [file('a.bin')] },
  'mail as attachment': {
    attachments: [
      file('mail.eml', { content: Buffer.from(`Subject: x\n\n${'y'.repeat(2000)}\xff\n`, 'latin1') }),
      file('m2', { contentType: 'message/rfc822' }),
      file('m3', { contentType: 'multipart/mixed' }),
      file('a.mht'),
    ],
  },
  'texts and mails with content ids': {
    html: '<a href="cid:terms">Terms</a><img src="cid:logo">',
    attachments: [
      file('terms.txt', { contentId: 'terms' }),
      file('page.html', { contentId: 'page' }),
      file('invite.ics', { contentId: 'invite' }),
      file('forward.eml', { contentId: 'mail', content: Buffer.from('Subject: x\r\n\r\ny\r\n') }),
      file('logo.png', { contentId: 'logo' }),
    ],
  },
  'large attachment': { attachments: [file('big.bin', { content: Buffer.alloc(300_000, 7) })] },
}

for (const [name, part] of Object.entries(CORPUS)) {
  t.test(`compose: ${name}`, async (t) => {
    const input = { ...BASE, ...part }
    const built = composeMessage(input)
    const reference = await new MailComposer(makeMailOptions(input)).compile().build()
    t.equal(built.toString('latin1'), reference.toString('latin1'), 'same bytes as the library builds')
    assertClean(t, built)
    t.same(composeMessage(input), built, 'same bytes again')
    await assertMeans(t, built, input)
  })
}

function assertClean(t: Test, built: Buffer): void {
  const text = built.toString('latin1')
  t.notMatch(text, /[^\x00-\x7f]/, 'seven bits')
  t.notMatch(text, /\0/, 'no NUL')
  t.notMatch(text.replaceAll('\r\n', ''), /[\r\n]/, 'no bare CR or LF')
  t.ok(text.endsWith('\r\n'), 'ends in CRLF')
  const longest = Math.max(...text.split('\r\n').map((line) => line.length))
  t.ok(longest <= 998, `longest line ${longest}`)
  const head = text.slice(0, text.indexOf('\r\n\r\n'))
  t.notMatch(head, /^(bcc|x-mailer):/im, 'no Bcc, no X-Mailer')
  t.ok(
    head.split('\r\n').every((line) => line.trim() !== ''),
    'no blank line in the header',
  )
}

async function assertMeans(t: Test, built: Buffer, input: ComposeInput): Promise<void> {
  const options = { skipHtmlToText: true, skipTextToHtml: true, skipTextLinks: true, skipImageLinks: true }
  const parsed: ParsedMail = await simpleParser(built, options)
  const lines = (text: string | null) => (text ?? '').replace(/\r\n|\r/g, '\n').trimEnd()
  t.equal(parsed.messageId, `<${input.messageId}@${input.from.address.split('@')[1]}>`)
  t.equal(parsed.date?.getTime(), input.acceptedAtMs)
  t.equal(parsed.headers.get('x-sendwright-id'), input.messageId)
  t.equal(parsed.subject, input.subject.replace(/[\u0001-\u001f\u007f-\u009f]/g, ' '))
  t.equal(lines(parsed.text ?? ''), lines(input.text))
  t.equal(lines(parsed.html || ''), lines(input.html))
  const people = [parsed.to ?? []].flat().flatMap((one) => one.value)
  t.same(
    people.map((one) => one.address),
    input.to.map((one) => one.address),
  )
  t.same(
    people.map((one) => one.name.trim()),
    input.to.map((one) => (one.name ?? '').trim()),
  )
  t.same(parsed.attachments.map((one) => one.filename).sort(), input.attachments.map((one) => one.name).sort())
  for (const sent of input.attachments) {
    const got = parsed.attachments.find((one) => one.filename === sent.name)!
    t.ok(got.content.equals(sent.content), `bytes of attachment ${sent.name.slice(0, 20)}`)
    const isImage = got.contentType.startsWith('image/')
    t.equal(got.contentDisposition, sent.contentId !== null && isImage ? 'inline' : 'attachment')
    t.notMatch(got.contentType, /^multipart\//)
    t.equal(got.related ?? false, sent.contentId !== null && input.html !== null)
  }
  for (const [name, value] of Object.entries(input.headers)) {
    if (/reply-to|references|list-/i.test(name)) continue
    t.equal(
      decodeWords(String(parsed.headers.get(name.toLowerCase()))).replace(/\s+/g, ' '),
      value.replace(/\s+/g, ' '),
      name.slice(0, 20),
    )
  }
}

/** Encoded words of RFC 2047; the parser decodes them in the fields that it knows only. */
function decodeWords(value: string): string {
  const joined = value.replace(/\?=\s+=\?/g, '?==?')
  const bytes = joined.replace(/=\?utf-8\?([qb])\?([^?]*)\?=/gi, (_, encoding: string, text: string) =>
    encoding.toLowerCase() === 'b'
      ? Buffer.from(text, 'base64').toString('latin1')
      : text
          .replaceAll('_', ' ')
          .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
  )
  return Buffer.from(bytes, 'latin1').toString()
}

const MAIL = 'From: a@b.test\r\nSubject: x\r\n\r\n.\r\nFrom here on\r\n'
const CARRIED: [name: string, content: Buffer, isBare: boolean, sent?: string][] = [
  ['ASCII in short lines', Buffer.from(MAIL), true],
  ['with other line ends', Buffer.from(MAIL.replaceAll('\r', '')), true, MAIL],
  ['without a last line end', Buffer.from('Subject: x\r\n\r\ny'), true],
  ['of 998 octets a line', Buffer.from(`Subject: ${'x'.repeat(989)}\r\n\r\n`), true],
  ['of 999 octets a line', Buffer.from(`Subject: ${'x'.repeat(990)}\r\n\r\n`), false],
  ['with a byte of eight bits', Buffer.from('Subject: x\r\n\r\n\xe9\r\n', 'latin1'), false],
  ['with NUL', Buffer.from('Subject: x\r\n\r\n\0\r\n'), false],
  ['with a lone CR', Buffer.from('Subject: x\r\r\ny'), false],
  ['of line ends alone', Buffer.from('\n'.repeat(100)), false],
  ['empty', Buffer.alloc(0), false],
]
for (const [name, content, isBare, sent] of CARRIED)
  t.test(`compose: an attached mail ${name}`, async (t) => {
    for (const contentType of ['message/rfc822', 'message/delivery-status', null]) {
      const attachments = [{ name: 'mail.eml', contentType, contentId: null, content }]
      const built = composeMessage({ ...BASE, attachments }).toString('latin1')
      const part = built.slice(built.lastIndexOf('Content-Type: '))
      const type = isBare ? (contentType ?? 'message/rfc822') : 'application/octet-stream'
      t.ok(part.startsWith(`Content-Type: ${type};`), part.slice(0, 60))
      t.match(part, isBare ? 'Content-Transfer-Encoding: 7bit\r\n' : 'Content-Transfer-Encoding: base64\r\n')
      // RFC 2046 5.2.1: no encoding except 7bit, 8bit and binary.
      t.notMatch(built, /Content-Type: message\/.*?Content-Transfer-Encoding: (base64|quoted)/s)
      if (isBare) t.ok(part.includes(`\r\n\r\n${sent ?? content.toString()}\r\n--`))
    }
  })

t.test('compose: a text with a content id is no piece of the body', async (t) => {
  for (const html of [null, '<p>Hello</p>']) {
    const attachments = [file('terms.txt', { contentId: 'terms', content: Buffer.from('Small print') })]
    const parsed = await simpleParser(composeMessage({ ...BASE, html, attachments }))
    t.notMatch(parsed.text, /Small print/)
    t.match(parsed.attachments, [{ filename: 'terms.txt', contentId: '<terms>' }])
  }
})

t.test('compose: NUL and lone surrogates are refused, and the failure names the field only', async (t) => {
  const bad: Partial<ComposeInput>[] = [
    { text: 'a\r\n\0.\r\nb' },
    { html: '<p>\ud800</p>' },
    { subject: 'a\0b' },
    { from: { address: 'a@b.test', name: 'x\0' } },
    { to: [{ address: 'a@b.test', name: '\udc00' }] },
    { headers: { 'X-A': 'secret\0' } },
    { attachments: [file('a\0b')] },
  ]
  for (const part of bad) {
    t.throws(() => composeMessage({ ...BASE, ...part }), {
      name: 'ComposeFailure',
      message: /^Cannot compose the message: NUL or a lone surrogate in (text|html|subject|name|headers|attachments)$/,
    })
  }
})

t.test('compose: field names keep the case they were given', async (t) => {
  const built = composeMessage({ ...BASE, headers: { 'X-MyThing-Id': '1', 'x-lower': '2' } }).toString()
  t.match(built, /^X-Sendwright-Id: 018f/m)
  t.match(built, /^X-MyThing-Id: 1\r$/m)
  t.match(built, /^x-lower: 2\r$/m)
})

t.test('compose: a long Reply-To keeps its meaning', async (t) => {
  const built = composeMessage({ ...BASE, headers: { 'Reply-To': 'Help Desk <help@acme.test>' } })
  const parsed = await simpleParser(built)
  t.equal(parsed.replyTo?.value[0]?.address, 'help@acme.test')
})
