/**
 * transfer - RFC 2045 6.7 and 6.8 as tables; pieces of any length, and Node's own decoder as a judge if it reads
 * everything.
 */
import fc from 'fast-check'
import t from 'tap'
import { decodeTransfer, makeTransferDecoder, parseTransferEncoding } from '../../../src/mail/mime/transfer.ts'

/** encoded, decoded */
const QUOTED: [string, string][] = [
  ['a=3Db', 'a=b'],
  ['a=3db', 'a=b'],
  ['soft=\r\nbreak', 'softbreak'],
  ['soft= \t\r\nbreak', 'softbreak'],
  ['soft=\nbreak', 'softbreak'],
  ['kept  =\r\nblanks', 'kept  blanks'],
  ['dropped \t\r\nblanks', 'dropped\r\nblanks'],
  ['dropped at the end \t', 'dropped at the end'],
  ['kept=20\r\n', 'kept \r\n'],
  ['no octet =ZZ = x', 'no octet =ZZ = x'],
  ['=4', '=4'],
  ['cut off=', 'cut off'],
  ['a\rb', 'a\rb'],
  ['=\r', '=\r'],
  ['==41', '=A'],
  ['=4=41', '=4A'],
  ['\r\n\r\n', '\r\n\r\n'],
  ['', ''],
]

const BASE64: [string, string][] = [
  ['aGVsbG8=', 'hello'],
  ['aGVs\r\nbG8=\r\n', 'hello'],
  ['aGVs!bG8', 'hello'],
  ['YQ==YWJj', 'aabc'],
  ['YWI=YWI=', 'abab'],
  ['-_-_', '\xfb\xff\xbf'],
  ['Y', ''],
  ['', ''],
]

t.test('transfer: quoted-printable', async (t) => {
  for (const [encoded, decoded] of QUOTED)
    t.equal(
      decodeTransfer('quoted-printable', Buffer.from(encoded)).toString('latin1'),
      decoded,
      JSON.stringify(encoded),
    )
})

t.test('transfer: base64', async (t) => {
  for (const [encoded, decoded] of BASE64)
    t.equal(decodeTransfer('base64', Buffer.from(encoded)).toString('latin1'), decoded, JSON.stringify(encoded))
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const encoded = Buffer.from(bytes)
        .toString('base64')
        .replace(/.{1,76}/g, '$&\r\n')
      return decodeTransfer('base64', Buffer.from(encoded)).equals(bytes)
    }),
  )
})

t.test('transfer: the cut between pieces changes nothing', async (t) => {
  const alphabet = fc.constantFrom('=', '4', '1', 'G', ' ', '\t', '\r', '\n', 'x', '-')
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: alphabet, maxLength: 6 }), { maxLength: 12 }),
      fc.constantFrom('quoted-printable' as const, 'base64' as const, 'identity' as const),
      (pieces, encoding) => {
        const decoder = makeTransferDecoder(encoding)
        const out = Buffer.concat([...pieces.map((piece) => decoder.push(Buffer.from(piece))), decoder.end()])
        return out.equals(decodeTransfer(encoding, Buffer.from(pieces.join(''))))
      },
    ),
    { numRuns: 5000 },
  )
  t.pass()
})

t.test('transfer: names of the encodings', async (t) => {
  const cases: [string, string | null][] = [
    ['7bit', 'identity'],
    [' 8BIT ', 'identity'],
    ['binary', 'identity'],
    ['', 'identity'],
    ['Base64', 'base64'],
    ['quoted-printable (because)', 'quoted-printable'],
    ['x-uuencode', null],
    ['constructor', null],
    ['utf-8', null],
  ]
  for (const [value, encoding] of cases) t.equal(parseTransferEncoding(value), encoding, value)
})
