/** sealing - secrets and keys of mails: sealed under the ring, opened with the generation that they name. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { Ring, withGeneration, withNewestSealing, withoutFormer } from '../../../src/state/ring/ring.ts'
import {
  generationOfMailKey,
  generationOfSecret,
  NONCE_BYTES,
  openMailKey,
  openSecret,
  sealSecret,
  wrapMailKey,
} from '../../../src/state/ring/sealing.ts'
import { ringOf } from '../../support/world/rings.ts'

const first = ringOf('secret')
const added = withGeneration(first.keys, randomBytes(64))
const both = new Ring(withNewestSealing(added))
const last = new Ring(withoutFormer(both.keys))
const owner = 'domain-1'
const seal = (ring: Ring, secret: Buffer) => sealSecret(ring, { secret, owner, nonce: randomBytes(NONCE_BYTES) })

t.test('sealing: a secret opens for its owner alone, with the ring that sealed it, and unchanged', async (t) => {
  const secret = randomBytes(1_200)
  for (const [ring, generation] of [
    [first, 0],
    [both, 1],
  ] as const) {
    const sealed = seal(ring, secret)
    t.equal(generationOfSecret(sealed), generation)
    t.notOk(sealed.includes(secret.subarray(0, 32)))
    t.same(openSecret(ring, { sealed, owner }), secret)
    t.equal(openSecret(ring, { sealed, owner: 'domain-2' }), null, 'another owner')
    for (const at of [3, 20, sealed.length - 1]) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      t.equal(openSecret(ring, { sealed: changed, owner }), null, `byte ${at} changed`)
    }
  }
  t.equal(openSecret(ringOf('other'), { sealed: seal(first, secret), owner }), null, 'another secret')
  for (const bytes of [[], [0], [1], [2], [2, 0], [1, 2, 3], [3, 0, 0]])
    t.equal(openSecret(both, { sealed: Buffer.from(bytes), owner }), null, `bytes ${bytes}`)
})

t.test(
  'sealing: a value names its generation; one that was removed opens nothing, a newer one is waited for',
  async (t) => {
    const key = randomBytes(32)
    const [old, fresh] = [wrapMailKey(first, key), wrapMailKey(both, key)]
    t.match(old, /^[\w-]{54}$/, 'as earlier releases wrote it')
    t.match(fresh, /^1\.[\w-]{54}$/)
    t.same([old, fresh].map(generationOfMailKey), [0, 1])
    for (const sealed of [old, fresh]) t.same(openMailKey(both, sealed), key)
    t.equal(openMailKey(last, old), null)
    t.same(openMailKey(last, fresh), key)
    t.throws(() => openMailKey(first, fresh), /has not loaded key 1/)
    const [oldSecret, freshSecret] = [seal(first, key), seal(both, key)]
    for (const sealed of [oldSecret, freshSecret]) t.same(openSecret(both, { sealed, owner }), key)
    t.equal(openSecret(last, { sealed: oldSecret, owner }), null)
    t.throws(() => openSecret(first, { sealed: freshSecret, owner }), /has not loaded key 1/)
    for (const text of ['', 'x', '1.', '.x', 'a.b', fresh.slice(0, 20), `1.${old}`])
      t.equal(openMailKey(last, text), null)
  },
)
