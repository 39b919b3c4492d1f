/** packet - the bytes of a question, and which replies count: tables of whole packets. */
import t from 'tap'
import type { RecordType } from '../../src/dns/answer.ts'
import { encodeQuestion, readReply } from '../../src/dns/packet.ts'
import { encodeAnswer, type ZoneRecord } from '../support/peers/dns-answer.ts'

const ID = 0xabcd
const NAME = "prvs=1+a'b.c.test"
const CODES = { A: 1, NS: 2, CNAME: 5, PTR: 12, MX: 15, TXT: 16, AAAA: 28, TLSA: 52 }
const ask = (type: RecordType, name = NAME): Buffer => encodeQuestion({ id: ID, type, name }) as Buffer

interface Reply {
  readonly id?: number
  readonly name?: string
  readonly code?: number
  readonly isTruncated?: boolean
  readonly answers?: readonly { readonly name: string; readonly record: ZoneRecord }[]
}

const reply = (type: RecordType, { id = ID, name = NAME, code = 0, isTruncated = false, answers = [] }: Reply = {}) =>
  encodeAnswer({ id, code, isTruncated, answers, question: { name, type: CODES[type] } })
const own = (...records: ZoneRecord[]) => ({ answers: records.map((record) => ({ name: NAME, record })) })

t.test('packet: a question', async (t) => {
  t.equal(
    encodeQuestion({ id: 1, type: 'A', name: "a+b'.Test." })?.toString('latin1'),
    "\0\x01\x01\0\0\x01\0\0\0\0\0\0\x04a+b'\x04Test\0\0\x01\0\x01",
  )
  t.equal(encodeQuestion({ id: 1, type: 'A', name: 'é.test' })?.toString('latin1').slice(12, 15), '\x02\xc3\xa9')
  const long = `${'x'.repeat(63)}.`.repeat(3)
  t.ok(encodeQuestion({ id: 1, type: 'A', name: long + 'y'.repeat(61) }), '255 octets')
  for (const name of ['', '.', 'a..b', '.a', `${'x'.repeat(64)}.test`, 'é'.repeat(32), long + 'y'.repeat(62)])
    t.equal(encodeQuestion({ id: 1, type: 'A', name }), null, JSON.stringify(name))
})

const RECORDS: [type: RecordType, records: ZoneRecord[], read: unknown[]][] = [
  ['A', [{ type: 'A', address: '192.0.2.1' }], ['192.0.2.1']],
  ['AAAA', [{ type: 'AAAA', address: '2001:db8::1' }], ['2001:db8::1']],
  ['TXT', [{ type: 'TXT', data: ['v=spf1 ', '-all'] }], [['v=spf1 ', '-all']]],
  ['TXT', [{ type: 'TXT', data: '' }], [['']]],
  ['MX', [{ type: 'MX', exchange: 'mx.test', priority: 300 }], [{ exchange: 'mx.test', priority: 300 }]],
  ['MX', [{ type: 'MX', exchange: '', priority: 0 }], [{ exchange: '', priority: 0 }]],
  ['PTR', [{ type: 'PTR', domain: 'host.test' }], ['host.test']],
  ['NS', [{ type: 'NS', ns: 'ns.test' }], ['ns.test']],
  ['TLSA', [{ type: 'TLSA', tlsa: '3 1 1 00AB' }], [{ usage: 3, selector: 1, matching: 1, data: '00ab' }]],
  [
    'TLSA',
    [
      { type: 'TLSA', tlsa: '3 1 1' },
      { type: 'TLSA', tlsa: '2 0 1 ff' },
    ],
    [
      { usage: 255, selector: 255, matching: 255, data: '' },
      { usage: 2, selector: 0, matching: 1, data: 'ff' },
    ],
  ],
  ['CNAME', [{ type: 'CNAME', domain: 'other.test' }], ['other.test']],
]
for (const [type, records, read] of RECORDS)
  t.test(`packet: ${type} as node:dns gives it`, async (t) => {
    t.same(readReply(reply(type, own(...records)), ask(type), type), { status: 'ok', records: read })
  })

const address = { type: 'A', address: '192.0.2.1' } as const
const alias = (domain: string): ZoneRecord => ({ type: 'CNAME', domain })
const REPLIES: [what: string, reply: Reply, read: unknown][] = [
  ['no records', {}, { status: 'nodata' }],
  ['no such name', { code: 3 }, { status: 'nxdomain' }],
  ['SERVFAIL', { code: 2 }, { status: 'failure', code: 'ESERVFAIL' }],
  ['REFUSED', { code: 5 }, { status: 'failure', code: 'EREFUSED' }],
  ['a code without a name', { code: 9 }, { status: 'failure', code: 'EBADRESP' }],
  ['cut off', { isTruncated: true }, 'truncated'],
  ['another id', { id: 1 }, null],
  ['another name', { name: 'other.test' }, null],
  ['the name in other letters', { name: NAME.toUpperCase() }, { status: 'nodata' }],
  ['of another name', { answers: [{ name: 'x.test', record: address }] }, { status: 'nodata' }],
  [
    'behind two aliases',
    {
      answers: [
        { name: NAME, record: alias('b.test') },
        { name: 'b.test', record: alias('C.test') },
        { name: 'c.test', record: address },
      ],
    },
    { status: 'ok', records: ['192.0.2.1'] },
  ],
  ['an alias to nowhere', own(alias('b.test')), { status: 'nodata' }],
]
for (const [what, given, read] of REPLIES)
  t.test(`packet: ${what}`, async (t) => t.same(readReply(reply('A', given), ask('A'), 'A'), read))

t.test('packet: another type, a question, several questions: no reply to it', async (t) => {
  t.equal(readReply(reply('AAAA'), ask('A'), 'A'), null)
  t.equal(readReply(ask('A'), ask('A'), 'A'), null)
  const two = reply('A')
  two.writeUInt16BE(2, 4)
  t.equal(readReply(two, ask('A'), 'A'), null)
})

t.test('packet: compressed names, and pointers that lead forwards, to themselves or past the end', async (t) => {
  const head = ask('PTR', 'a.test')
  const answered = (data: Buffer): Buffer => {
    const fixed = Buffer.from([0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff])
    const packet = Buffer.concat([head, fixed, data])
    packet.writeUInt16BE(0x8180, 2)
    packet.writeUInt16BE(1, 6)
    return packet
  }
  const read = (...bytes: number[]) => readReply(answered(Buffer.from(bytes)), head, 'PTR')
  const bad = { status: 'failure', code: 'EBADRESP' }
  t.same(read(1, 0x62, 0xc0, 12), { status: 'ok', records: ['b.a.test'] })
  t.same(read(3, 0x61, 0x2e, 0x00, 0), { status: 'ok', records: ['a\\.\\000'] }, 'a dot and a byte that is no letter')
  const start = head.length + 12
  t.same(read(0xc0, start), bad, 'to itself')
  t.same(read(1, 0x62, 0xc0, start), bad, 'a loop')
  t.same(read(0xff, 0xff), bad, 'past the end')
  t.same(read(0xc0), bad, 'half a pointer')
  t.same(read(0x41, 0x62, 0), bad, 'a label of another kind')
  t.same(read(5, 0x62), bad, 'a label past the end')
  t.same(read(0, 0), bad, 'more than the name')
})

t.test('packet: too many answers, or fewer than its header counts', async (t) => {
  const many = reply('A', own(...Array.from({ length: 513 }, () => address)))
  t.same(readReply(many, ask('A'), 'A'), { status: 'failure', code: 'EBADRESP' })
  many.writeUInt16BE(512, 6)
  t.match(readReply(many, ask('A'), 'A'), { status: 'ok', records: { length: 512 } })
  const few = reply('A', own(address))
  few.writeUInt16BE(2, 6)
  t.same(readReply(few, ask('A'), 'A'), { status: 'failure', code: 'EBADRESP' })
})
