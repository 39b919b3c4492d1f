/** file-name - names of attachments as they may be shown. */
import t from 'tap'
import { readFileName } from '../../../src/mail/mime/file-name.ts'

/** written, name, changed */
const CASES: [string | null, string | null, boolean][] = [
  [null, null, false],
  ['a.txt', 'a.txt', false],
  ['=?utf-8?q?l=C3=B6go.png?=', 'lögo.png', false],
  ['/etc/passwd', 'passwd', true],
  ['..\\..\\boot.ini', 'boot.ini', true],
  ['C:\\dir/a.txt', 'a.txt', true],
  ['.bashrc', 'bashrc', true],
  ['..', null, true],
  ['dir/', null, true],
  ['a\tb.txt', 'a b.txt', true],
  ['=?utf-8?q?a=0D=0Ab=00.txt?=', 'ab.txt', true],
  ['=?utf-8?q?..=2Fa.txt?=', 'a.txt', true],
  [`${'😀'.repeat(255)}`, '😀'.repeat(255), false],
  [`${'😀'.repeat(256)}`, '😀'.repeat(255), true],
]

t.test('file-name: last segment, no controls, no leading dots, 255 characters [inbound.parse.name]', async (t) => {
  for (const [written, name, isSanitised] of CASES) {
    const read = readFileName(written)
    t.same([read.name, read.isSanitised], [name, isSanitised], String(written).slice(0, 40))
  }
  t.equal(readFileName('=?utf-8?q?a=00?=').hadControls, true)
})
