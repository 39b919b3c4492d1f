/** parameter - RFC 2045 5.1 and the examples of RFC 2231, and forms of real mail. */
import t from 'tap'
import { parseParameterised } from '../../../src/mail/mime/parameter.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

/** written, value, parameters */
const CASES: [string, string, Record<string, string>][] = [
  ['text/plain', 'text/plain', {}],
  ['', '', {}],
  ['text/plain; charset=us-ascii (Plain text)', 'text/plain', { charset: 'us-ascii' }],
  ['text/plain (a comment); charset="us-ascii"', 'text/plain', { charset: 'us-ascii' }],
  ['a; B = c ;; d', 'a', { b: 'c' }],
  ['a; b="x;y=z"; c=d', 'a', { b: 'x;y=z', c: 'd' }],
  ['a; b="say \\"hi\\""', 'a', { b: 'say "hi"' }],
  ['a; b="C:\\dir\\a.txt"', 'a', { b: 'C:\\dir\\a.txt' }],
  ['a; b="C:\\\\a.txt"', 'a', { b: 'C:\\a.txt' }],
  ['a; b="never closed; c=d', 'a', { b: 'never closed; c=d' }],
  ['a; filename=my report (1).pdf', 'a', { filename: 'my report (1).pdf' }],
  ['a; b=first; b=second', 'a', { b: 'first' }],
  // RFC 2231 3, 4, 4.1
  [
    'message/external-body; access-type=URL; URL*0="ftp://"; URL*1="cs.utk.edu/pub/moore/bulk-mailer/bulk-mailer.tar"',
    'message/external-body',
    { 'access-type': 'URL', url: 'ftp://cs.utk.edu/pub/moore/bulk-mailer/bulk-mailer.tar' },
  ],
  [
    "application/x-stuff; title*=us-ascii'en-us'This%20is%20%2A%2A%2Afun%2A%2A%2A",
    'application/x-stuff',
    { title: 'This is ***fun***' },
  ],
  [
    "application/x-stuff; title*0*=us-ascii'en'This%20is%20even%20more%20; title*1*=%2A%2A%2Afun%2A%2A%2A%20; title*2=\"isn't it!\"",
    'application/x-stuff',
    { title: "This is even more ***fun*** isn't it!" },
  ],
  ['a; n*1=b; n*0=a; n*2=c', 'a', { n: 'abc' }],
  ["a; n=plain; n*=utf-8''%C3%A4", 'a', { n: 'ä' }],
  ["a; n*0*=utf-8''%C3; n*1*=%A4", 'a', { n: 'ä' }],
  ["a; n*=iso-8859-1''%E4", 'a', { n: 'ä' }],
  ['a; n*=%E4', 'a', { n: 'ä' }],
  ["a; n*=utf-8''100%", 'a', { n: '100%' }],
]

t.test('parameter: values and their parameters', async (t) => {
  for (const [written, value, parameters] of CASES) {
    const parsed = parseParameterised(written)
    t.same([parsed.value, Object.fromEntries(parsed.parameters)], [value, parameters], written)
  }
})

t.test('parameter: hostile values cost what others cost', async (t) => {
  for (const piece of [';', '"', 'a="', 'a; ', ' (', '(', ' ', 'a*1=b;', '\\', "; a*0*=x''%"])
    t.ok(
      (await cpuMsOf(() => parseParameterised(`a; b=${piece.repeat(Math.floor(262_144 / piece.length))}`))) < 2000,
      piece,
    )
})
