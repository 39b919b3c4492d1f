/** known-keys - owners by the header that names them. */

import t from 'tap'
import { makeKey, parseKey } from '../../src/http/key.ts'
import { type KnownKey, KnownKeys } from '../../src/http/known-keys.ts'

const { token } = makeKey('sk', 1)
const OWNER = { tokenId: 't1' } as KnownKey['owner']
const KNOWN: KnownKey = { parsed: parseKey(token) as KnownKey['parsed'], owner: OWNER }

t.test('known-keys: found by the header as it came, until the key is revoked', async (t) => {
  const keys = new KnownKeys()
  t.equal(keys.get(`Bearer ${token}`), undefined)
  keys.add(`Bearer ${token}`, KNOWN)
  t.equal(keys.get(`Bearer ${token}`), KNOWN)
  t.equal(keys.get(`bearer ${token}`), undefined)
  keys.delete(`Bearer ${token}`)
  t.equal(keys.get(`Bearer ${token}`), undefined)
})

t.test('known-keys: one key does not take the place of others by spellings of its header', async (t) => {
  const keys = new KnownKeys()
  for (const header of [`bearer ${token}`, `Bearer  ${token}`, `Bearer ${' '.repeat(9_000)}${token}`]) {
    keys.add(header, KNOWN)
    t.equal(keys.get(header), undefined)
  }
})
