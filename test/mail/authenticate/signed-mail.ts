/** signed-mail - what the verifier is shown: ten signatures, the relaxed body, and mail that would make it slow. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import type { DkimVerdict } from '../../../schemas/inbound.ts'
import { MAIL_BYTES_MAX } from '../../../schemas/limits.ts'
import { checkSignatures } from '../../../src/mail/authenticate/signatures.ts'
import { prepareSignedMail, relaxBody } from '../../../src/mail/authenticate/signed-mail.ts'
import { hashBody } from '../../../src/mail/compose/dkim.ts'
import { cpuMsOf } from '../../support/machine/cpu-time.ts'
import { lookUpIn } from '../../support/peers/records.ts'
import { publicKeyText } from '../../support/peers/sign-mail.ts'

/** Of the 20 seconds that a mail has. */
const CPU_MS_MAX = 10_000
const FROM = 'From: a@a.example\r\n'
const ZONE = { 's._domainkey.a.example': [`TXT v=DKIM1; p=${publicKeyText('rsa')}`] }
const signature = (canon: string, names = 'from'): string =>
  `DKIM-Signature: v=1; a=rsa-sha256; c=${canon}; d=a.example; s=s; h=${names}; bh=AAAA; b=AAAA\r\n`

t.test('signed-mail: the relaxed body has the hash that our own signer gives it', async (t) => {
  const bytes = fc.array(fc.constantFrom('a', ' ', '\t', '\r\n', '\r', 'b'), { maxLength: 40 })
  fc.assert(
    fc.property(bytes, (pieces) => {
      const body = Buffer.from(pieces.join(''))
      const relaxed = relaxBody(body, 0)
      const isSame = createHash('sha256').update(relaxed).digest('base64') === hashBody(body, 0)
      return isSame && relaxBody(relaxed, 0).equals(relaxed)
    }),
    { numRuns: 3000 },
  )
  t.equal(relaxBody(Buffer.from('a \nb\n\n'), 0).toString(), 'a\r\nb\r\n')
})

t.test('signed-mail: what is shown', async (t) => {
  const shown = (raw: string): string | undefined =>
    prepareSignedMail(Buffer.from(raw, 'latin1'))?.message.toString('latin1')
  const relaxed = signature('relaxed/relaxed')
  const simple = signature('relaxed/simple')
  t.equal(shown(`${FROM}\r\na  b \r\n\r\n`), `${FROM}\r\na b\r\n`)
  t.equal(shown(`${relaxed}${FROM}\r\na  b \r\n\r\n`), `${relaxed}${FROM}\r\na b\r\n`)
  t.equal(shown(`${relaxed}${simple}${FROM}\r\na  b \r\n\r\n`), `${relaxed}${simple}${FROM}\r\na  b \r\n\r\n`)
  t.equal(shown(`${relaxed.replace(/c=.*?; /, '')}${FROM}\r\na  b`), `${relaxed.replace(/c=.*?; /, '')}${FROM}\r\na  b`)
  t.equal(shown(`${simple}From: a@a.example\n\na\nb\r\n`), `${simple}${FROM}\r\na\r\nb\r\n`)
  t.equal(shown(`${relaxed.repeat(12)}${FROM}\r\n`), `${relaxed.repeat(10)}${FROM}\r\n`)
  t.equal(
    shown(`${relaxed.repeat(10)}${FROM}${relaxed}To: b\r\n\r\na`),
    `${relaxed.repeat(10)}${FROM}To: b\r\n\r\na\r\n`,
  )
  t.equal(shown(`DKIM-Signature: ${'x'.repeat(16_385)}\r\n${FROM}\r\n`), `${FROM}\r\n`)
  t.equal(shown(FROM), `${FROM}\r\n`)
  t.equal(shown('\r\nbody'), '\r\nbody\r\n')
  t.equal(shown(''), '\r\n')
  t.equal(shown(`From: a\r\n${' x\r\n'.repeat(10_001)}\r\n`), undefined, 'too many lines')
  t.equal(shown(`From: ${'a'.repeat(262_144)}\r\n\r\n`), undefined, 'too large')
  t.equal(shown(`${'a: b\r\n'.repeat(1001)}\r\n`), undefined, 'too many fields')
})

/** what, head, what fills the body, verdict */
const HOSTILE: [string, string, string, DkimVerdict | null][] = [
  ...['relaxed/relaxed', 'simple/simple'].flatMap((canon): typeof HOSTILE =>
    [' ', '\r\n', '\n', '\r', ' \r\n', 'a\r', 'a', 'words and words\r\n', '\t\n'].map((piece) => [
      `${canon} of ${JSON.stringify(piece)}`,
      signature(canon) + FROM,
      piece,
      'fail',
    ]),
  ),
  ['10,000 signatures', signature('simple/simple').repeat(10_000) + FROM, 'a', null],
  ['900 signatures', signature('simple/relaxed').repeat(900) + FROM, ' a', 'fail'],
  [
    'ten canonical forms',
    ['simple', 'relaxed'].map((canon) => signature(`relaxed/${canon}`).repeat(5)).join('') + FROM,
    'a ',
    'fail',
  ],
  [
    'names without end',
    signature('simple/simple', `from:${'x:'.repeat(7000)}y`).repeat(10) + 'x: a\r\n'.repeat(900) + FROM,
    'a',
    'fail',
  ],
  ['folds', `Subject: a\r\n${' a\r\n'.repeat(9900)}${signature('simple/simple')}${FROM}`, 'a', 'fail'],
]

for (const [what, head, piece, verdict] of HOSTILE) {
  t.test(`signed-mail: 35 MB, ${what}, is verified in time`, async (t) => {
    const start = Buffer.from(`${head}\r\n`)
    const raw = Buffer.concat([start, Buffer.alloc(MAIL_BYTES_MAX - start.length, piece)])
    const { lookUp, asked } = lookUpIn(ZONE)
    let dkim: DkimVerdict | null = null
    const cpuMs = await cpuMsOf(async () => {
      dkim = (await checkSignatures(raw, { lookUp, nowMs: 0 }))?.dkim ?? null
    })
    t.equal(dkim, verdict)
    t.ok(cpuMs < CPU_MS_MAX, `${Math.round(cpuMs)} ms`)
    t.ok(asked.length <= 1, asked.join())
  })
}
