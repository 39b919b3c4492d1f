/** DKIM: the vectors from the RFCs, and the choice among several signatures. */
import t from 'tap'
import type { DkimVerdict } from '../../../schemas/inbound.ts'
import { domainsWith } from '../../../src/mail/authenticate/signatures.ts'
import {
  DKIM_NOW_MS,
  DKIM_VECTORS,
  keyZone,
  MAIL,
  signedMail,
  type Vector,
  without,
} from '../../support/peers/dkim-vectors.ts'
import { lookUpIn } from '../../support/peers/records.ts'
import { joinMail } from '../../support/peers/sign-mail.ts'
import { verifyMail } from '../../support/peers/verify-mail.ts'

for (const [section, what, vector, verdict] of DKIM_VECTORS) {
  t.test(`dkim: RFC ${section}: ${what} [inbound.authentication.dkim]`, async (t) => {
    const report = await verifyMail(signedMail(vector), {
      lookUp: lookUpIn(keyZone(vector.record)).lookUp,
      nowMs: DKIM_NOW_MS,
    })
    t.equal(report?.dkim, verdict)
    t.same(report && domainsWith(report, 'pass'), verdict === 'pass' ? ['a.example'] : [])
    t.same(report && domainsWith(report, 'temperror'), verdict === 'temperror' ? ['a.example'] : [])
  })
}

t.test('dkim: there are at least 50 vectors', async (t) => {
  t.ok(DKIM_VECTORS.length >= 50, String(DKIM_VECTORS.length))
})

t.test(
  'dkim: the best of several signatures counts, otherwise fail, temperror, permerror [inbound.authentication.dkim]',
  async (t) => {
    const fieldOf = (vector: Vector): string => {
      const raw = signedMail(vector).toString('latin1')
      return raw.slice(0, raw.indexOf('\r\nFrom:') + 2)
    }
    const good = fieldOf({})
    const bad = fieldOf({}).replace('b=', 'b=AA')
    const unusable = fieldOf(without('v'))
    const away = fieldOf({ tags: { s: 'away' } })
    const mail = joinMail(MAIL).toString('latin1')
    const cases: [string, DkimVerdict][] = [
      ['', 'none'],
      [bad + good, 'pass'],
      [unusable + bad, 'fail'],
      [away + bad, 'fail'],
      [unusable + away, 'temperror'],
      [unusable, 'permerror'],
      [bad.repeat(10) + good, 'fail'],
      [bad.repeat(9) + good, 'pass'],
      [`DKIM-Signature: ${'x'.repeat(17_000)}\r\n`, 'permerror'],
      [`DKIM-Signature: ${'x'.repeat(17_000)}\r\n${good}`, 'pass'],
    ]
    const { lookUp } = lookUpIn({ ...keyZone(), 'away._domainkey.a.example': ['TIMEOUT'] })
    for (const [number, [fields, verdict]] of cases.entries()) {
      const report = await verifyMail(Buffer.from(fields + mail, 'latin1'), { lookUp, nowMs: DKIM_NOW_MS })
      t.equal(report?.dkim, verdict, `case ${number}`)
    }
  },
)
