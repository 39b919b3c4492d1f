/** Tests of src/edge/key.ts. */

import { createHash } from 'node:crypto'

import { test } from 'tap'

import { KEY_SHARDS_MAX, makeKey, parseKey } from '../../src/http/key.ts'

test('key: what is made is read back, with its shard [key.format]', async (t) => {
  for (const kind of ['sk', 'sk_test', 'ak', 'ok'] as const) {
    for (const shard of [0, 1, 61, 62, 63, KEY_SHARDS_MAX - 1]) {
      const { token, prefix, hash } = makeKey(kind, shard)
      t.match(token, /^(sk|sk_test|ak|ok)_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/)
      t.same(parseKey(token), { kind, shard, prefix, hash })
      t.equal(token.slice(0, kind.length + 9), prefix)
      t.equal(hash, createHash('sha256').update(token).digest('hex'))
    }
  }
})

test('key: the checksum is CRC-32 in base62, six characters [key.format]', async (t) => {
  // CRC-32 of the body is 0x69dae0e1, counted with another implementation (zlib of Python).
  const body = 'sk_00000000_00000000000000000000000000000000'
  t.equal(parseKey(`${body}1wBiGf`)?.shard, 0)
})

test('key: any changed character is refused without a look-up [key.format]', async (t) => {
  const { token } = makeKey('sk_test', 17)
  for (let index = 0; index < token.length; index++) {
    const other = token[index] === 'a' ? 'b' : 'a'
    t.equal(parseKey(token.slice(0, index) + other + token.slice(index + 1)), null)
  }
  for (const text of ['', 'sk_', token.slice(1), token.slice(0, -1), `${token}a`, ` ${token}`, `${token}\n`]) {
    t.equal(parseKey(text), null)
  }
})

test('key: a shard that two characters cannot name is refused [key.format]', async (t) => {
  for (const shard of [-1, 0.5, KEY_SHARDS_MAX, Number.NaN]) t.throws(() => makeKey('sk', shard), RangeError)
})

test('key: random characters are all of base62 [key.format]', async (t) => {
  const seen = new Set(Array.from({ length: 200 }, () => makeKey('ak', 0).token.slice(5)).join(''))
  t.equal(seen.size, 63)
})
