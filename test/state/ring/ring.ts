/** ring - what earlier releases derived, sealed with SECRET_KEY, and its generations. */
import { hkdfSync, randomBytes } from 'node:crypto'
import t from 'tap'
import {
  checkOfSecret,
  deriveRingKeys,
  openRing,
  RING_NONCE_BYTES,
  Ring,
  sealRing,
  withGeneration,
  withNewestSealing,
  withoutFormer,
} from '../../../src/state/ring/ring.ts'

const SECRET = 'a secret of the tests that is long enough'
const nonce = () => randomBytes(RING_NONCE_BYTES)

t.test('ring: the first one has the very keys that earlier releases derived from SECRET_KEY', async (t) => {
  const derived = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', SECRET, '', `sendwright ${purpose} v1`, 32)).toString('hex')
  const { sealing, hash, current } = deriveRingKeys(SECRET)
  t.equal(current, 0)
  t.same(
    sealing.map(({ generation, mail, secret }) => [generation, mail.toString('hex'), secret.toString('hex')]),
    [[0, derived('content sealing'), derived('dkim sealing')]],
  )
  for (const [purpose, key] of Object.entries(hash))
    t.equal(Buffer.from(key).toString('hex'), derived(purpose), purpose)
  t.equal(Object.keys(hash).length, 12)
})

t.test('ring: opens with the secret that sealed it, and unchanged', async (t) => {
  const keys = withGeneration(deriveRingKeys(SECRET), randomBytes(64))
  const sealed = sealRing(keys, { secretKey: SECRET, nonce: nonce() })
  t.same(openRing(sealed, SECRET), keys)
  t.equal(openRing(sealed, `${SECRET}!`), null)
  for (const at of [0, 20, 60, sealed.length - 2]) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    t.equal(openRing(`${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`, SECRET), null, `character ${at}`)
  }
  for (const text of ['', 'x', sealed.slice(0, 37)]) t.equal(openRing(text, SECRET), null)
})

t.test('ring: a generation is added, seals, and the one before it goes', async (t) => {
  const first = deriveRingKeys(SECRET)
  const added = withGeneration(first, randomBytes(64))
  const sealing = withNewestSealing(added)
  const last = withoutFormer(sealing)
  const shown = [first, added, sealing, last].map((keys) => [
    keys.version,
    keys.current,
    keys.sealing.map(({ generation }) => generation).join(),
  ])
  t.same(shown, [
    [0, 0, '0'],
    [1, 0, '0,1'],
    [2, 1, '0,1'],
    [3, 1, '1'],
  ])
  t.equal(withGeneration(last, randomBytes(64)).sealing.at(-1)?.generation, 2)
  for (const keys of [added, sealing, last]) t.equal(keys.hash, first.hash, 'the keys that hash and sign stay')
})

t.test('ring: nothing is sealed while it is not confirmed, but all is opened', async (t) => {
  let isConfirmed = false
  const ring = new Ring(deriveRingKeys(SECRET), () => isConfirmed)
  t.throws(() => ring.sealing(), /could not be confirmed/)
  t.equal(ring.opening(0)?.generation, 0)
  isConfirmed = true
  t.equal(ring.sealing().generation, 0)
})

t.test('ring: a check distinguishes secrets', async (t) => {
  t.match(checkOfSecret(SECRET), /^[\w-]{22}$/)
  t.equal(checkOfSecret(SECRET), checkOfSecret(SECRET))
  t.not(checkOfSecret(SECRET), checkOfSecret(`${SECRET}!`))
})
