/** signing-keys - keys as the store holds them, opened; the service's own from its file. */

import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { ViewFact } from '../../cluster/behaviour.ts'
import { makeIds } from '../../cluster/id.ts'
import { makeDkimKeyPair } from '../../src/mail/compose/dkim-key.ts'
import { makeSigningKeyFinder, openServiceKey } from '../../src/outbound/signing-keys.ts'
import { NONCE_BYTES, sealSecret } from '../../src/state/ring/sealing.ts'
import { makeReader } from '../../src/views/key.ts'
import { configOf } from '../support/service/service.ts'
import { ringOf } from '../support/world/rings.ts'

const ACCOUNT_ID = makeIds({ shard: 7, last: '', random: () => 0.5 }).next(1_700_000_000_000)
const RING = ringOf('secret')

async function rowOf(selector: string, sinceMs: number, domain = 'acme.test') {
  const { privateKey, publicKey } = await makeDkimKeyPair()
  const owner = `${ACCOUNT_ID} ${domain} ${selector}`
  const sealed = sealSecret(RING, { secret: privateKey, owner, nonce: randomBytes(NONCE_BYTES) })
  return {
    privateKey: privateKey.toString('base64'),
    row: [selector, JSON.stringify([sinceMs, publicKey, sealed.toString('base64')])],
  }
}

t.test('signing-keys: the key in use at acceptance, read once if its time is known [dkim.signed]', async (t) => {
  const [old, fresh, foreign] = await Promise.all([rowOf('s1', 100), rowOf('s2', 200), rowOf('s3', 300, 'other.test')])
  const rows = new Map([old, fresh, foreign].map(({ row }) => row as [string, string]))
  const reads: string[] = []
  let isAway = false
  const store = {
    async read(shard: number, facts: readonly ViewFact[]) {
      reads.push(`${shard} ${facts.map(({ key }) => key).join()}`)
      return isAway ? null : [rows]
    },
  }
  const find = makeSigningKeyFinder(makeReader(store), RING)
  const order = { accountId: ACCOUNT_ID, domain: 'acme.test' }
  t.equal((await find({ ...order, acceptedAtMs: 150, keySinceMs: null }))?.privateKey, old.privateKey)
  t.same(await find({ ...order, acceptedAtMs: 250, keySinceMs: 200 }), {
    domain: 'acme.test',
    selector: 's2',
    privateKey: fresh.privateKey,
  })
  t.same(
    reads,
    Array.from({ length: 2 }, () => `7 {s007}:dkim:${ACCOUNT_ID}:acme.test`),
  )
  isAway = true
  t.equal((await find({ ...order, acceptedAtMs: 260, keySinceMs: 200 }))?.selector, 's2')
  t.equal(reads.length, 2)
  t.equal(await find({ ...order, acceptedAtMs: 150, keySinceMs: null }), undefined, 'the store is away')
  isAway = false
  t.equal(await find({ ...order, acceptedAtMs: 50, keySinceMs: null }), null, 'there was none')
  t.equal(await find({ ...order, acceptedAtMs: 350, keySinceMs: 300 }), null, 'sealed for another domain')
})

t.test('signing-keys: the service’s own key is an RSA key in PEM, or the start ends [dkim.service]', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-key-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string) => {
    const path = join(folder, name)
    writeFileSync(path, text)
    return configOf({ SERVICE_DOMAIN: 'svc.test', SERVICE_DKIM: `svc:${path}` })
  }
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  for (const type of ['pkcs8', 'pkcs1'] as const) {
    const key = openServiceKey(write(type, rsa.export({ type, format: 'pem' }) as string))
    t.same(key, {
      domain: 'svc.test',
      selector: 'svc',
      privateKey: rsa.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
    })
  }
  t.equal(openServiceKey(configOf({})), null)
  const ed25519 = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const short = generateKeyPairSync('rsa', { modulusLength: 512 }).privateKey.export({ type: 'pkcs8', format: 'pem' })
  for (const config of [write('text', 'no key'), write('ed', ed25519), write('short', short as string)])
    t.throws(() => openServiceKey(config), /SERVICE_DKIM: a private RSA key/)
  t.throws(() => openServiceKey(configOf({ SERVICE_DKIM: `svc:${folder}/none` })), /SERVICE_DKIM/)
})
