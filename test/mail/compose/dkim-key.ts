/** dkim-key - a real key pair, its names. */

import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import t from 'tap'
import { formatDkimTxt, makeDkimKeyPair, makeSelector } from '../../../src/mail/compose/dkim-key.ts'

t.test('dkim-key: the pair signs and verifies, and its record fits two strings', async (t) => {
  const pair = await makeDkimKeyPair()
  const privateKey = createPrivateKey({ key: pair.privateKey, format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey({ key: Buffer.from(pair.publicKey, 'base64'), format: 'der', type: 'spki' })
  t.equal(privateKey.asymmetricKeyDetails?.modulusLength, 2048)
  const signature = sign('sha256', Buffer.from('text'), privateKey)
  t.ok(verify('sha256', Buffer.from('text'), publicKey, signature))
  t.equal(formatDkimTxt(pair.publicKey), `v=DKIM1; k=rsa; p=${pair.publicKey}`)
  t.ok(formatDkimTxt(pair.publicKey).length <= 510)
})

t.test('dkim-key: selector', async (t) => {
  t.equal(makeSelector(Date.UTC(2026, 0, 31, 23, 59), Buffer.from([0x0a, 0xff, 0x33])), 'sw202601310aff')
})
