/** SPF: the suite of the openspf project for RFC 7208, and the two fields of the contract. */
import t from 'tap'
import { checkSender } from '../../../src/mail/authenticate/sender.ts'
import { lookUpIn } from '../../support/peers/records.ts'
import {
  lookUpOf,
  readSpfSuite,
  SPF_CASES,
  SPF_RECORDS,
  SPF_SENDER,
  SPF_SUITE,
} from '../../support/peers/spf-vectors.ts'

t.test(
  'spf: the suite of openspf for RFC 7208 [inbound.authentication.spf]',
  { skip: SPF_SUITE === null && 'no suite' },
  async (t) => {
    const scenarios = readSpfSuite(SPF_SUITE as string)
    let cases = 0
    for (const { description, tests, zonedata } of scenarios) {
      for (const [name, { helo, host, mailfrom, result }] of Object.entries(tests)) {
        cases += 1
        const sender = { address: mailfrom, ip: host, helo, receiver: 'mx.b.example' }
        const { from, helo: ofHelo } = await checkSender(sender, lookUpOf(zonedata))
        const [spf, spfHelo] = [from.verdict, ofHelo.verdict]
        // The suite's empty MAIL FROM asks for the HELO name.
        t.ok(
          [result].flat().includes(mailfrom === '' ? spfHelo : spf),
          `${description}: ${name}: ${spf}, ${spfHelo} for ${result}`,
        )
      }
    }
    t.equal(cases, 203)
  },
)

t.test('spf: MAIL FROM and HELO, each by itself [inbound.authentication.spf]', async (t) => {
  for (const [what, sender, spf, spfHelo] of SPF_CASES) {
    const { lookUp, asked } = lookUpIn(SPF_RECORDS)
    const report = await checkSender({ ...SPF_SENDER, ...sender }, lookUp)
    t.same([report.from.verdict, report.helo.verdict], [spf, spfHelo], what)
    t.ok(asked.length <= 30, `${what}: ${asked.length} look-ups`)
  }
})
