/** body-hash - vectors of RFC 6376 3.4.5, mailauth's own hashers and our signer as judges, and `l=` in one pass. */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import fc from 'fast-check'
import t from 'tap'
import { type BodyForm, hashBodies } from '../../../src/mail/authenticate/body-hash.ts'
import { hashBody } from '../../../src/mail/compose/dkim.ts'

interface Hasher {
  update(chunk: Buffer): void
  digest(encoding: 'base64'): string
}
const { dkimBody } = createRequire(import.meta.url)('mailauth/lib/dkim/body/index.js') as {
  dkimBody(canon: string, algorithm: string, bytesMax: number | ''): Hasher
}

const sha256 = (text: string): string => createHash('sha256').update(text, 'latin1').digest('base64')
const whole = (canon: BodyForm['canon']): BodyForm => ({ canon, algorithm: 'sha256', bytesMax: null })

/** body, simple, relaxed */
const VECTORS: [string, string, string][] = [
  [' C \r\nD \t E\r\n\r\n\r\n', ' C \r\nD \t E\r\n', ' C\r\nD E\r\n'],
  ['', '\r\n', ''],
  ['\r\n\r\n', '\r\n', ''],
  [' \t ', ' \t \r\n', ''],
  ['a', 'a\r\n', 'a\r\n'],
  ['a \nb\n\n', 'a \r\nb\r\n', 'a\r\nb\r\n'],
  ['a\rb\r', 'a\rb\r\r\n', 'a\rb\r\r\n'],
  ['\r\n\na', '\r\n\r\na\r\n', '\r\n\r\na\r\n'],
]

t.test('body-hash: canonical forms [inbound.authentication.dkim]', async (t) => {
  for (const [body, simple, relaxed] of VECTORS) {
    const raw = Buffer.from(`From: a\r\n\r\n${body}`, 'latin1')
    const hashes = hashBodies(raw, 11, [whole('relaxed'), whole('simple')])
    t.same(hashes, [sha256(relaxed), sha256(simple)], JSON.stringify(body))
  }
})

t.test('body-hash: as the library and as our signer make them', async (t) => {
  const pieces = fc.array(fc.constantFrom('a', ' ', '\t', '\r\n', '\r', 'b', 'words '.repeat(20_000)), {
    maxLength: 30,
  })
  const forms = fc.array(
    fc.record({
      canon: fc.constantFrom('simple', 'relaxed'),
      algorithm: fc.constantFrom('sha1', 'sha256'),
      bytesMax: fc.oneof(fc.constant(null), fc.nat({ max: 40 }), fc.nat({ max: 400_000 })),
    } as const),
    { minLength: 1, maxLength: 11 },
  )
  fc.assert(
    fc.property(pieces, forms, (texts, wanted) => {
      const body = Buffer.from(texts.join(''))
      const theirs = wanted.map(({ canon, algorithm, bytesMax }) => {
        const hasher = dkimBody(canon, algorithm, bytesMax ?? '')
        hasher.update(body)
        return hasher.digest('base64')
      })
      t.same(hashBodies(body, 0, wanted), theirs)
      t.equal(hashBodies(body, 0, [whole('relaxed')])[0], hashBody(body, 0))
    }),
    { numRuns: 500, seed: 21 },
  )
})

t.test('body-hash: shared memory is read as it is', async (t) => {
  const shared = new Uint8Array(new SharedArrayBuffer(6))
  shared.set(Buffer.from('\r\nab\r\n'))
  t.same(hashBodies(shared, 2, [whole('simple')]), [sha256('ab\r\n')])
})
