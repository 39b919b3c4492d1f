/** return-path - valid tokens, invalid ones, and the addresses that contain them. */
import { createHmac, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import {
  formatReturnPath,
  formatReturnToken,
  isReturnPath,
  parseReturnPath,
  parseToken,
  returnPathHost,
  serviceReturnPathHost,
} from '../../src/mail/return-path.ts'

const KEY = Buffer.from(hkdfSync('sha256', 'a secret of the tests', '', 'token', 32))
const OF = { messageId: '0199aa11-2233-7abc-8def-0123456789ab', recipient: 7 }

/** The contents of a token of a type, without its MAC. */
function ofType(first: number): Buffer {
  return Buffer.concat([Buffer.from([first]), Buffer.from(OF.messageId.replaceAll('-', ''), 'hex'), Buffer.from([7])])
}

/** A token of another type, signed as it should be. */
function otherType(): string {
  const told = ofType(0x20)
  return base32(Buffer.concat([told, createHmac('sha256', KEY).update(told).digest().subarray(0, 7)]))
}

/** Base32 of RFC 4648 as its own words have it: bits in, five at a time. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{5}/g) ?? [])
    .map((five) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(five, 2)])
    .join('')
}

t.test('return-path: a token is type and key, uuid, recipient and seven bytes of HMAC [bounce.token]', async (t) => {
  const told = ofType(0x10)
  const mac = createHmac('sha256', KEY).update(told).digest().subarray(0, 7)
  const token = formatReturnToken(KEY, OF)
  t.equal(token, base32(Buffer.concat([told, mac])))
  t.match(token, /^[a-z2-7]{40}$/)
  t.same(parseToken(KEY, token), OF)
})

t.test('return-path: a formatted token is read again, in any case [bounce.token]', async (t) => {
  for (let round = 0; round < 200; round += 1) {
    const of = { messageId: randomUUID(), recipient: round % 256 }
    const address = formatReturnPath(KEY, { ...of, host: returnPathHost('acme.test') })
    const at = address.indexOf('@')
    t.equal(address.slice(at), '@sw-bounce.acme.test')
    t.equal(at, 42)
    t.same(parseReturnPath(KEY, address.slice(0, at)), of)
    t.same(parseReturnPath(KEY, address.slice(0, at).toUpperCase()), of)
  }
})

t.test('return-path: a token with any character changed is forged [bounce.token]', async (t) => {
  const token = formatReturnToken(KEY, OF)
  for (let at = 0; at < token.length; at += 1) {
    for (const other of 'a7') {
      if (token[at] === other) continue
      t.equal(parseToken(KEY, token.slice(0, at) + other + token.slice(at + 1)), null, `${at} ${other}`)
    }
  }
})

const token = formatReturnToken(KEY, OF)
const REFUSED: [name: string, localPart: string][] = [
  ['nothing', ''],
  ['no token', 'b-'],
  ['another prefix', `c-${token}`],
  ['no prefix', token],
  ['too short', `b-${token.slice(1)}`],
  ['too long', `b-${token}a`],
  ['characters that are none of base32', `b-${token.slice(1)}1`],
  ['a token of another type', `b-${otherType()}`],
  ['a token of another key', `b-${formatReturnToken(randomBytes(32), OF)}`],
  ['letters outside ASCII that lower to ASCII', `b-${token.slice(0, 39)}\u212a`],
]
for (const [name, localPart] of REFUSED)
  t.test(`return-path: ${name} is refused [bounce.token]`, async (t) => t.equal(parseReturnPath(KEY, localPart), null))

t.test('return-path: forged or not, the form is known [bounce.address]', async (t) => {
  t.ok(isReturnPath(`b-${token}`))
  t.ok(isReturnPath(`B-${'x'.repeat(40)}`))
  t.notOk(isReturnPath('b-short'))
  t.notOk(isReturnPath('postmaster'))
  t.equal(serviceReturnPathHost('svc.test'), 'rp.svc.test')
})
