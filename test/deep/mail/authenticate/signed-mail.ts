/** signed-mail - what the verifier is shown: ten signatures, line ends; and mail that would make it slow. */
import t from 'tap'
import type { DkimVerdict } from '../../../../schemas/inbound.ts'
import { showHeader } from '../../../../src/mail/authenticate/signed-mail.ts'
import { cpuMsOf } from '../../../support/machine/cpu-time.ts'
import { FROM, fillMail, HOSTILE_MAILS, signature } from '../../../support/peers/hostile-mail.ts'
import { lookUpIn } from '../../../support/peers/records.ts'
import { publicKeyText } from '../../../support/peers/sign-mail.ts'
import { verifyMail } from '../../../support/peers/verify-mail.ts'

/** The part of the 20 seconds that a mail has. */
const CPU_MS_MAX = 10_000
const ZONE = { 's._domainkey.a.example': [`TXT v=DKIM1; p=${publicKeyText('rsa')}`] }

t.test('signed-mail: the shown part of a header', async (t) => {
  const shown = (raw: string): string | undefined => showHeader(Buffer.from(raw, 'latin1'))?.header.toString('latin1')
  const relaxed = signature('relaxed/relaxed')
  t.equal(shown(`${relaxed}${FROM}\r\nbody`), `${relaxed}${FROM}\r\n`)
  t.equal(shown(`${relaxed}From: a@a.example\n\nbody`), `${relaxed}${FROM}\r\n`)
  t.equal(shown(`${relaxed.repeat(12)}${FROM}\r\n`), `${relaxed.repeat(10)}${FROM}\r\n`)
  t.equal(shown(`${relaxed.repeat(10)}${FROM}${relaxed}To: b\r\n\r\na`), `${relaxed.repeat(10)}${FROM}To: b\r\n\r\n`)
  t.equal(shown(`DKIM-Signature: ${'x'.repeat(16_385)}\r\n${FROM}\r\n`), `${FROM}\r\n`)
  t.equal(shown(FROM), `${FROM}\r\n`)
  t.equal(shown('\r\nbody'), '\r\n')
  t.equal(shown(''), '\r\n')
  t.equal(shown(`From: a\r\n${' x\r\n'.repeat(10_001)}\r\n`), undefined, 'too many lines')
  t.equal(shown(`From: ${'a'.repeat(262_144)}\r\n\r\n`), undefined, 'too large')
  t.equal(shown(`${'a: b\r\n'.repeat(1001)}\r\n`), undefined, 'too many fields')
})

for (const [what, head, piece, verdict] of HOSTILE_MAILS) {
  t.test(`signed-mail: 35 MB, ${what}, is verified in time`, async (t) => {
    const raw = fillMail(head, piece)
    const { lookUp, asked } = lookUpIn(ZONE)
    let dkim: DkimVerdict | null = null
    const cpuMs = await cpuMsOf(async () => {
      dkim = (await verifyMail(raw, { lookUp, nowMs: 0 }))?.dkim ?? null
    })
    t.equal(dkim, verdict)
    t.ok(cpuMs < CPU_MS_MAX, `${Math.round(cpuMs)} ms`)
    t.ok(asked.length <= 1, asked.join())
  })
}
