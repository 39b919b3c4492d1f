/** envelope - what of an address can go out as plain SMTP. */

import t from 'tap'
import { parseEnvelope } from '../../src/mail/envelope.ts'

const ROWS: [address: string, parsed: object | null][] = [
  ['ann@a.test', { local: 'ann', domain: 'a.test' }],
  ['Ann.B+c@A.Test', { local: 'Ann.B+c', domain: 'a.test' }],
  ['ann@bücher.test', { local: 'ann', domain: 'xn--bcher-kva.test' }],
  ['jürgen@a.test', null],
  ['a b@a.test', null],
  ['a>@a.test', null],
  ['@a.test', null],
  ['nobody', null],
  ['x\r\n@a.test', null],
]
for (const [address, parsed] of ROWS)
  t.test(`envelope: ${JSON.stringify(address)}`, async (t) => t.same(parseEnvelope(address), parsed))
