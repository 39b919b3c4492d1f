/** Tests of cluster/mailbox-cursor.ts: the position from which a mailbox is read. */
import { test } from 'tap'
import { cursorAfter, firstKept, parseCursor } from '../../../cluster/mailbox/cursor.ts'

test('mailbox-cursor: it stands after an entry or within one; what is none makes nobody deaf', async (t) => {
  const cases: [string, string, number, string][] = [
    ['', '0-0', 0, '0-1'],
    ['5-1', '5-1', 0, '5-2'],
    ['5-1/3', '5-1', 3, '5-1'],
    ['5-1/NaN', '5-1', 0, '5-2'],
    ['5-1/', '5-1', 0, '5-2'],
    ['5-9223372036854775807', '5-9223372036854775807', 0, '5-9223372036854775808'],
    ['5-18446744073709551616', '0-0', 0, '0-1'],
    ['NaN', '0-0', 0, '0-1'],
    ['undefined/2', '0-0', 0, '0-1'],
  ]
  for (const [text, entryId, done, kept] of cases) {
    t.same(parseCursor(text), { entryId, done }, text)
    t.equal(firstKept(text), kept, text)
  }
  t.same(
    [0, 1, 2].map((place) => cursorAfter('5-1', place, 3)),
    ['5-1/1', '5-1/2', '5-1'],
  )
})
