/** charset - labels as mail uses them. */
import t from 'tap'
import { decodeCharset } from '../../../src/mail/mime/charset.ts'

/** label, bytes, text */
const CASES: [string | null, string, string][] = [
  [null, 'c3a4', 'ä'],
  [null, 'e4', 'ä'],
  ['', 'c3a4', 'ä'],
  ['US-ASCII', 'c3a4', 'ä'],
  ['us-ascii', '9361 94', '“a”'],
  ['utf-8', 'efbbbfc3a4', 'ä'],
  ['UTF8', 'c3', '\ufffd'],
  ['iso-8859-1', '936194', '“a”'],
  ['windows-1252', '80', '€'],
  ['iso-8859-15', 'a4', '€'],
  ['koi8-r', 'f0f2', 'ПР'],
  ['shift_jis', '93fa967b', '日本'],
  ['iso-2022-jp', '1b2442467c4b5c1b2842', '日本'],
  ['iso-2022-jp', '1b2442467c1b28421b24424b5c1b28421b2842', '日本'],
  ['iso-2022-jp', '1b24421b2442467c1b284a1b284261', '日a'],
  ['gb2312', 'd6d0', '中'],
  ['gb18030', '81308130', '\u0080'],
  ['big5', 'a4a4', '中'],
  ['euc-kr', 'c7d1', '한'],
  ['ks_c_5601-1987', 'c7d1', '한'],
  ['cp850', '84', 'ä'],
  ['utf-7', '2b414f512d', 'ä'],
  ['utf-16', 'feff00e4', 'ä'],
  ['utf-16', 'fffee400', 'ä'],
  ['utf-16be', '00e4', 'ä'],
  ['utf-16le', 'e400', 'ä'],
  ['utf-16le', '00d8', '\ufffd'],
  ['no-such-charset', 'e4', 'ä'],
  ['x'.repeat(100_000), 'e4', 'ä'],
  ['iso-2022-kr', '61', 'a'],
  ['iso-2022-kr', '1b2429430e475131393e6e0f200e3d4347680f0a0e3d43', '한국어 시험\n시'],
  ['iso-2022-kr', '1b2429430e475131390a6162', '한국\nab'],
  ['hz-gb-2312', '7e7b56504e4432624a547e7d7e7e61', '中文测试~a'],
  ['HZ-GB-2312', '617e7b56507e0a4e447e7d7e', 'a中文~'],
  ['johab', 'd0658a82b4e1612e', '한국어a.'],
  ['johab', 'd065d061ff41', '한하\ufffdA'],
  ['__proto__', '61', 'a'],
]

t.test('charset: bytes of a label', async (t) => {
  for (const [label, bytes, text] of CASES)
    t.equal(
      decodeCharset(Buffer.from(bytes.replaceAll(' ', ''), 'hex'), label),
      text,
      `${label?.slice(0, 30)} ${bytes}`,
    )
})

t.test('charset: more labels than the cache holds', async (t) => {
  for (let at = 0; at < 300; at += 1) t.equal(decodeCharset(Buffer.from('a'), `x-${at}`), 'a')
  t.equal(decodeCharset(Buffer.from([0xa4]), 'iso-8859-15'), '€')
})
