/** ARC: the vectors from the RFCs. */
import t from 'tap'
import { ARC_VECTORS, ARC_ZONE } from '../../support/peers/arc-vectors.ts'
import { lookUpIn } from '../../support/peers/records.ts'
import { verifyMail } from '../../support/peers/verify-mail.ts'

for (const [section, what, mail, verdict, records = ARC_ZONE] of ARC_VECTORS) {
  t.test(
    `arc: RFC ${section.includes(' 3') && section.startsWith('6') ? '' : '8617 '}${section}: ${what} [inbound.authentication.arc]`,
    async (t) => {
      const report = await verifyMail(mail, { lookUp: lookUpIn(records).lookUp, nowMs: Date.UTC(2026, 10, 22) })
      t.equal(report?.arc, verdict)
      t.equal(report?.dkim, 'none')
    },
  )
}

t.test('arc: there are at least 60 vectors', async (t) => {
  t.ok(ARC_VECTORS.length >= 60, String(ARC_VECTORS.length))
})
