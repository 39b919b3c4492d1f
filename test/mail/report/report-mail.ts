/** report-mail - fields of the parts of a report, folded, repeated and broken. */
import t from 'tap'
import { findHeader, findPart, parseFieldBlocks } from '../../../src/mail/report/report-mail.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

const CASES: [name: string, text: string, blocks: Record<string, string>[]][] = [
  ['nothing', '', []],
  ['one field', 'Action: failed', [{ action: 'failed' }]],
  [
    'two blocks, any line end',
    'A: 1\r\nB: 2\r\n\r\n\r\nA: 3\nC: 4\r',
    [
      { a: '1', b: '2' },
      { a: '3', c: '4' },
    ],
  ],
  [
    'a folded value',
    'Diagnostic-Code: smtp;\r\n 550 5.1.1\r\n\tunknown\r\n',
    [{ 'diagnostic-code': 'smtp; 550 5.1.1 unknown' }],
  ],
  ['the first of a name counts', 'A: 1\nA: 2\n 3\nB: 4', [{ a: '1', b: '4' }]],
  ['lines that are no fields', 'what is this\n: and this\n folded\nA: 1', [{ a: '1' }]],
]
for (const [name, text, blocks] of CASES)
  t.test(`report-mail: ${name}`, async (t) =>
    t.same(
      parseFieldBlocks(text).map((block) => Object.fromEntries(block)),
      blocks,
    ),
  )

t.test('report-mail: a megabyte of fields is read in bounded time, and bounded', async (t) => {
  const long = `A: ${'x'.repeat(1 << 20)}\n${' y\n'.repeat(100_000)}`
  t.ok((await cpuMsOf(() => parseFieldBlocks(long))) < 1000)
  const [block] = parseFieldBlocks(long)
  t.ok((block?.get('a') ?? '').length <= 4096)
})

t.test('report-mail: the first header and part of a name', async (t) => {
  const mail = {
    headers: [
      ['subject', 'one'],
      ['subject', 'two'],
    ] as const,
    text: '',
    parts: [
      { contentType: 'message/rfc822', text: 'original' },
      { contentType: 'message/delivery-status', text: 'status' },
    ],
  }
  t.equal(findHeader(mail, 'subject'), 'one')
  t.equal(findHeader(mail, 'from'), '')
  t.equal(findPart(mail, 'message/delivery-status', 'message/rfc822'), 'original')
  t.equal(findPart(mail, 'text/calendar'), null)
})
