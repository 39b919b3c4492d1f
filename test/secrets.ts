/** secrets - keyed hashes: what makes two of them equal, and what must not. */
import { createHmac, hkdfSync } from 'node:crypto'
import t from 'tap'
import { makeSecrets } from '../src/secrets.ts'

const SECRET = 'a secret of the tests that is long enough'
const secrets = makeSecrets(SECRET)

t.test('address hash is HMAC-SHA256 over account and lower-case address', (t) => {
  const key = Buffer.from(hkdfSync('sha256', SECRET, '', 'sendwright address hmac v1', 32))
  const whole = createHmac('sha256', key).update('account-1\0ada@example.com').digest('base64url')
  t.equal(secrets.addressHmac('account-1', 'Ada@Example.com'), whole.slice(0, 22))
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
    makeSecrets(`${SECRET}!`).addressHmac('a', address),
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
  t.equal(secrets.sealingKey.length, 32)
  t.end()
})

t.test('check is the same for one secret and another for every other', (t) => {
  t.equal(makeSecrets(SECRET).check, secrets.check)
  t.not(makeSecrets(`${SECRET}!`).check, secrets.check)
  t.end()
})
