/** address-list - mailboxes, groups, comments (RFC 5322 3.4, A.1, A.6.1), names in other charsets. */
import t from 'tap'
import { readAddressList } from '../../../src/mail/mime/address-list.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'

/** written, [name, address] in order */
const CASES: [string, [string | null, string][]][] = [
  ['a@mail.example', [[null, 'a@mail.example']]],
  ['A Person <a@mail.example>', [['A Person', 'a@mail.example']]],
  ['"Joe Q. Public" <john.q.public@mail.example>', [['Joe Q. Public', 'john.q.public@mail.example']]],
  ['"Giant; \\"Big\\" Box" <sysservices@mail.example>', [['Giant; "Big" Box', 'sysservices@mail.example']]],
  [
    'A Group:Ed Jones <c@a.test>,joe@where.test,John <jdoe@one.test>;',
    [
      ['Ed Jones', 'c@a.test'],
      [null, 'joe@where.test'],
      ['John', 'jdoe@one.test'],
    ],
  ],
  ['Undisclosed recipients:;', []],
  ['(Empty list)(start)Hidden recipients  :(nobody(that I know))  ;', []],
  ['a@mail.example (The A)', [['The A', 'a@mail.example']]],
  ['=?utf-8?q?J=C3=B6rg=2C_M?= <j@mail.example>', [['Jörg, M', 'j@mail.example']]],
  ['"=?utf-8?q?J=C3=B6rg?=" <j@mail.example>', [['Jörg', 'j@mail.example']]],
  ['jörg@münchen.example', [[null, 'jörg@münchen.example']]],
  ['a@xn--mnchen-3ya.example', [[null, 'a@xn--mnchen-3ya.example']]],
  ['Somebody', []],
  ['', []],
  [',,a@mail.example,,', [[null, 'a@mail.example']]],
]

t.test('address-list: mailboxes of a field', async (t) => {
  for (const [written, expected] of CASES) {
    const { addresses, count } = readAddressList([written])
    t.same(
      addresses,
      expected.map(([name, address]) => ({ address, name })),
      written,
    )
    t.equal(count, expected.length, written)
  }
})

t.test('address-list: fields are joined, and addresses over the limit are counted', async (t) => {
  const { addresses, count } = readAddressList([
    'a@mail.example',
    Array.from({ length: 1200 }, (_, at) => `p${at}@mail.example`).join(','),
  ])
  t.equal(count, 1201)
  t.equal(addresses.length, 1000)
  t.equal(addresses[999]?.address, 'p998@mail.example')
})

t.test('address-list: controls in names, addresses that are too long', async (t) => {
  t.match(readAddressList(['=?utf-8?q?a=0D=0Ab?= <a@mail.example>']), {
    hadControls: true,
    addresses: [{ name: 'ab' }],
  })
  t.match(readAddressList([`${'a'.repeat(2000)}@mail.example, b@mail.example`]), {
    isCut: true,
    count: 2,
    addresses: [{ address: 'b@mail.example' }],
  })
})

t.test('address-list: hostile lists cost what others cost', async (t) => {
  for (const piece of ['<', '(', '"', 'a@b,', 'a:', ':;', 'a <b@c>,', ' ', '@', '[', '\\'])
    t.ok((await cpuMsOf(() => readAddressList([piece.repeat(Math.floor(262_144 / piece.length))]))) < 4000, piece)
})
