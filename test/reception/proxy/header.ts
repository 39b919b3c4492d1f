/** header - the PROXY protocol, version 2: headers as proxies send them, and everything that is not one. */
import t from 'tap'
import { announcedBytes, PROXY_HEAD_BYTES, readProxyHeader } from '../../../src/reception/proxy/header.ts'
import { makeRandom } from '../../support/store/random-ops.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'

function parse(hex: string) {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  const head = bytes.subarray(0, PROXY_HEAD_BYTES)
  const announced = announcedBytes(head)
  return announced === null
    ? null
    : readProxyHeader(head, bytes.subarray(PROXY_HEAD_BYTES, PROXY_HEAD_BYTES + announced))
}

t.test('PROXY header: TCP over IPv4 and IPv6, extensions ignored, and the proxy itself', async (t) => {
  t.same(parse(`${SIGNATURE} 21 11 000c c0000201 c6336401 ea60 024b`), { address: '192.0.2.1', port: 60_000 })
  t.same(parse(`${SIGNATURE} 21 11 0010 c0000201 c6336401 ea60 024b 04000161`), { address: '192.0.2.1', port: 60_000 })
  const six = '20010db8000000000000000000000001'
  t.same(parse(`${SIGNATURE} 21 21 0024 ${six} ${six} 0050 0019`), { address: '2001:db8::1', port: 80 })
  t.equal(parse(`${SIGNATURE} 20 00 0000`), 'local')
  t.equal(parse(`${SIGNATURE} 20 11 000c c0000201 c6336401 ea60 024b`), 'local')
})

t.test('PROXY header: texts that are none', async (t) => {
  for (const [name, hex] of [
    ['version 1', Buffer.from('PROXY TCP4 192.0.2.1 198.51.100.1 60000 587\r\n').toString('hex')],
    ['another version', `${SIGNATURE} 11 11 000c c0000201 c6336401 ea60 024b`],
    ['another command', `${SIGNATURE} 22 11 000c c0000201 c6336401 ea60 024b`],
    ['UDP', `${SIGNATURE} 21 12 000c c0000201 c6336401 ea60 024b`],
    ['a Unix socket', `${SIGNATURE} 21 31 00d8 ${'00'.repeat(216)}`],
    ['no family', `${SIGNATURE} 21 00 0000`],
    ['addresses too short', `${SIGNATURE} 21 11 000b c0000201 c6336401 ea60 02`],
    ['IPv6 with the bytes of IPv4', `${SIGNATURE} 21 21 000c c0000201 c6336401 ea60 024b`],
    ['longer than the bound', `${SIGNATURE} 21 11 0209 ${'00'.repeat(521)}`],
    ['a command of SMTP', Buffer.from('EHLO client.example\r\n').toString('hex')],
    ['nothing', ''],
  ] as const)
    t.equal(parse(hex), null, name)
  t.equal(announcedBytes(Buffer.from(`${SIGNATURE}21110208`, 'hex')), 520, 'the longest one')
})

t.test('PROXY header: bytes at random never throw', async (t) => {
  const random = makeRandom(11)
  for (let n = 0; n < 20_000; n += 1) {
    const head = Buffer.from(`${SIGNATURE}00000000`, 'hex')
    for (let at = 12; at < head.length; at += 1) head[at] = Math.floor(random() * 256)
    if (n % 3 === 0) head[12] = 0x21
    const rest = Buffer.alloc(Math.floor(random() * 40), Math.floor(random() * 256))
    announcedBytes(head)
    readProxyHeader(head, rest)
  }
  t.pass('none did')
})
