/** flowed - RFC 3676: soft ends, quotes, stuffing, the signature. */
import t from 'tap'
import { unflow } from '../../../src/mail/mime/flowed.ts'

/** written, DelSp, read */
const CASES: [string, boolean, string][] = [
  ['one \nline\nnext', false, 'one line\nnext'],
  ['one \nline', true, 'oneline'],
  ['hard\nends\n', false, 'hard\nends\n'],
  ['> quoted \n> line\nmine', false, '> quoted line\nmine'],
  ['> quoted \nmine', false, '> quoted \nmine'],
  ['>> a \n> b', false, '>> a \n> b'],
  [' stuffed', false, 'stuffed'],
  [' >no quote', false, '>no quote'],
  [' From here', false, 'From here'],
  ['text \n-- \nname', false, 'text \n-- \nname'],
  ['', false, ''],
  ['ends soft ', false, 'ends soft '],
]

t.test('flowed: paragraphs are one line', async (t) => {
  for (const [written, isSpaceAdded, read] of CASES)
    t.equal(unflow(written, isSpaceAdded), read, JSON.stringify(written))
})
