/** sign - the whole way: keys as they are stored, the thread pool, a verifier that is not ours. */

import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { makeDkimKeyPair } from '../../../src/mail/compose/dkim-key.ts'
import { makeSigner } from '../../../src/outbound/thread/sign.ts'

const MESSAGE = Buffer.from('From: a@acme.test\r\nSubject: Hello\r\n\r\nHello\r\n')

t.test('sign: one signature for each key, the same bytes each time [dkim.signed]', async (t) => {
  const pairs = await Promise.all([makeDkimKeyPair(), makeDkimKeyPair()])
  const keys = pairs.map(({ privateKey }, index) => ({
    domain: `d${index}.test`,
    selector: `s${index}`,
    privateKey: privateKey.toString('base64'),
  }))
  const records = new Map(
    pairs.map(({ publicKey }, index) => [`s${index}._domainkey.d${index}.test`, `v=DKIM1; k=rsa; p=${publicKey}`]),
  )
  const sign = makeSigner()
  const signed = await sign(MESSAGE, { keys, signedAtMs: 1_700_000_000_000 })
  const { results } = await dkimVerify(signed, {
    resolver: async (name: string) => [[records.get(name) ?? '']],
    curTime: new Date(1_700_000_001_000),
  })
  t.same(
    results.map(({ signingDomain, status }: { signingDomain?: string; status: { result: string } }) => [
      signingDomain,
      status.result,
    ]),
    [
      ['d0.test', 'pass'],
      ['d1.test', 'pass'],
    ],
  )
  t.same(await makeSigner()(MESSAGE, { keys, signedAtMs: 1_700_000_000_000 }), signed)
  t.equal(await sign(MESSAGE, { keys: [], signedAtMs: 0 }), MESSAGE, 'without a key the message is as it was')
})
