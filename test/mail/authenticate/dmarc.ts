/** DMARC: vectors from the text of RFC 9989, each with its section, and the effect of temporary failures. */
import t from 'tap'
import { checkDmarc } from '../../../src/mail/authenticate/dmarc.ts'
import { DMARC_VECTORS, dmarcZone, inputOf, REJECT, told } from '../../support/peers/dmarc-vectors.ts'
import { lookUpIn } from '../../support/peers/records.ts'

for (const [section, what, records, identities, verdict] of DMARC_VECTORS) {
  t.test(
    `dmarc: RFC ${/^\d{4} /.test(section) ? '' : '9989 '}${section}: ${what} [inbound.authentication.dmarc]`,
    async (t) => {
      const { lookUp, asked } = lookUpIn(records)
      t.equal(told(await checkDmarc(inputOf(identities), lookUp)), verdict)
      t.ok(asked.length < 20, asked.join())
    },
  )
}

t.test('dmarc: two From fields cannot be judged', async (t) => {
  const input = { ...inputOf('from:a.example dkim:a.example'), fromFields: 2 }
  t.equal(told(await checkDmarc(input, lookUpIn(dmarcZone({ 'a.example': REJECT })).lookUp)), 'permerror')
})

t.test('dmarc: there are at least 60 vectors', async (t) => {
  t.ok(DMARC_VECTORS.length >= 60, String(DMARC_VECTORS.length))
})
