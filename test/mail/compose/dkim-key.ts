/** dkim-key - a real key pair, its names, its seal. */

import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import t from 'tap'
import {
  deriveSealingKey,
  formatDkimTxt,
  makeDkimKeyPair,
  makeSelector,
  NONCE_BYTES,
  openKey,
  sealKey,
} from '../../../src/mail/compose/dkim-key.ts'

t.test('dkim-key: the pair signs and verifies, and its record fits two strings', async (t) => {
  const pair = await makeDkimKeyPair()
  const privateKey = createPrivateKey({ key: pair.privateKey, format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey({ key: Buffer.from(pair.publicKey, 'base64'), format: 'der', type: 'spki' })
  t.equal(privateKey.asymmetricKeyDetails?.modulusLength, 2048)
  const signature = sign('sha256', Buffer.from('text'), privateKey)
  t.ok(verify('sha256', Buffer.from('text'), publicKey, signature))
  t.equal(formatDkimTxt(pair.publicKey), `v=DKIM1; k=rsa; p=${pair.publicKey}`)
  t.ok(formatDkimTxt(pair.publicKey).length <= 510)

  const key = deriveSealingKey('secret')
  const nonce = Buffer.alloc(NONCE_BYTES, 1)
  const sealed = sealKey(key, { privateKey: pair.privateKey, owner: 'domain-1', nonce })
  t.notOk(sealed.includes(pair.privateKey.subarray(0, 32)))
  t.same(openKey(key, { sealed, owner: 'domain-1' }), pair.privateKey)
  t.equal(openKey(key, { sealed, owner: 'domain-2' }), null, 'another owner')
  t.equal(openKey(deriveSealingKey('other'), { sealed, owner: 'domain-1' }), null, 'another secret')
  for (const at of [0, 1, 20, sealed.length - 1]) {
    const changed = Buffer.from(sealed)
    changed[at]! ^= 1
    t.equal(openKey(key, { sealed: changed, owner: 'domain-1' }), null, `byte ${at} changed`)
  }
  t.equal(openKey(key, { sealed: Buffer.alloc(3), owner: 'domain-1' }), null, 'too short')
})

t.test('dkim-key: selector', async (t) => {
  t.equal(makeSelector(Date.UTC(2026, 0, 31, 23, 59), Buffer.from([0x0a, 0xff, 0x33])), 'sw202601310aff')
})
