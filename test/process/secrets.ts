/** secrets - keyed hashes: what makes two of them equal, and what must not. */
import { createHmac, hkdfSync } from 'node:crypto'
import t from 'tap'
import { makeSecrets } from '../../src/process/secrets.ts'
import { ringOf } from '../support/world/rings.ts'

const SECRET = 'a secret of the tests that is long enough'
const secrets = makeSecrets(ringOf(SECRET))

t.test('address hash is HMAC-SHA256 over account and lower-case address', (t) => {
  const key = Buffer.from(hkdfSync('sha256', SECRET, '', 'sendwright address hmac v1', 32))
  const whole = createHmac('sha256', key).update('account-1\0ada@example.com').digest('base64url')
  t.equal(secrets.addressHmac('account-1', 'Ada@Example.com'), whole.slice(0, 22))
  t.end()
})

t.test('an address is known by its domain as it stands in the DNS, whichever way it is written', (t) => {
  const known = secrets.addressHmac('a', 'ada@xn--bcher-kva.example')
  t.equal(secrets.addressHmac('a', 'Ada@Bücher.example'), known)
  t.equal(secrets.addressHmac('a', 'ada@BÜCHER.example'), known)
  t.not(secrets.addressHmac('a', 'adá@bücher.example'), known)
  t.equal(secrets.addressHmac('a', 'adá@bücher.example'), secrets.addressHmac('a', 'ADÁ@xn--bcher-kva.example'))
  t.end()
})

t.test('hash is that of RFC 2104 for every length and script', (t) => {
  const key = Buffer.from(hkdfSync('sha256', SECRET, '', 'sendwright idempotency hmac v1', 32))
  for (const char of ['k', 'é', '✓', '\u{1f600}']) {
    for (const length of [0, 1, 55, 56, 63, 64, 254, 337, 338, 339, 1000]) {
      const text = char.repeat(length / char.length)
      const whole = createHmac('sha256', key).update(`s\0${text}`).digest('base64url')
      t.equal(secrets.idempotencyHash('s', text), whole.slice(0, 22), `${length} times ${char}`)
    }
  }
  t.end()
})

t.test('what is remembered of an owner is only ever its own last text', (t) => {
  const fresh = () => makeSecrets(ringOf(SECRET))
  for (const [owner, text] of [
    ['a', 'x@example.com'],
    ['a', 'x@example.com'],
    ['b', 'x@example.com'],
    ['a', 'y@example.com'],
    ['a', 'X@example.com'],
    ['b', 'x@example.com'],
  ] as const) {
    t.equal(secrets.senderHmac(owner, text), fresh().addressHmac(owner, text))
    t.equal(secrets.tagHash(owner, text), fresh().tagHash(owner, text))
  }
  for (let n = 0; n < 10_050; n += 1) secrets.tagHash(`owner-${n}`, `tag-${n}`)
  for (const n of [0, 51, 10_049]) t.equal(secrets.tagHash(`owner-${n}`, 'new'), fresh().tagHash(`owner-${n}`, 'new'))
  t.end()
})

t.test('hashes differ by owner, by purpose and by secret', (t) => {
  const address = 'ada@example.com'
  const hashes = [
    secrets.addressHmac('a', address),
    secrets.addressHmac('b', address),
    secrets.idempotencyHash('a', address),
    secrets.idempotencyHash('b', address),
    secrets.tagHash('a', address),
    secrets.tagHash('b', address),
    makeSecrets(ringOf(`${SECRET}!`)).addressHmac('a', address),
    // The separator keeps two pairs apart that read alike when joined.
    secrets.addressHmac('a\0ada', '@example.com'),
  ]
  t.equal(new Set(hashes).size, hashes.length)
  t.end()
})

t.test('idempotency hash keeps the case of the key', (t) => {
  t.not(secrets.idempotencyHash('s', 'Key'), secrets.idempotencyHash('s', 'key'))
  t.end()
})

t.test('hashes have the length that the store is laid out for', (t) => {
  t.match(secrets.addressHmac('a', 'x@example.com'), /^[\w-]{22}$/)
  t.match(secrets.idempotencyHash('s', 'k'), /^[\w-]{22}$/)
  t.match(secrets.tagHash('s', 'welcome'), /^[\w-]{8}$/)
  t.match(secrets.senderId, /^[a-z\d]{5,15}$/, 'what Gmail takes as a sender')
  t.not(secrets.senderId, makeSecrets(ringOf(`${SECRET}!`)).senderId)
  t.end()
})
