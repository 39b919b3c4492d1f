/**
 * SPF: pyspf (Debian: python3-spf) and Mail::SPF (libmail-spf-perl) compared with ours, each on a real DNS server on
 * the loopback, on our own vectors and on the suite of openspf if it is present. Each difference is listed here with
 * its reason.
 */
import t, { type Test } from 'tap'
import { type LinePeer, startLinePeer } from '../../../support/peers/line-peer.ts'
import {
  readSpfSuite,
  SPF_CASES,
  SPF_RECORDS,
  SPF_SENDER,
  SPF_SUITE,
  zoneOf,
} from '../../../support/peers/spf-vectors.ts'
import { MAIL_SPF, PYSPF, type Verifier } from '../../../support/peers/verifiers.ts'
import { startZone, type Zone } from '../../../support/peers/zone.ts'
import { fillZone } from '../../../support/peers/zone-records.ts'

/** The differences of one verifier, by the name of the case, with the reason. */
type Told = Readonly<Record<string, string>>

const NO_NAME = 'its resolver throws where a name cannot be asked for; RFC 7208 4.3: none'
const MAPPED = 'an ip6 mechanism matches an IPv4 address for it; RFC 7208 5.6: it does not'
const MAIL_SPF_TOLD: Told = {
  'a domain that cannot be': NO_NAME,
  'Initial processing: toolonglabel': NO_NAME,
  'Initial processing: emptylabel': NO_NAME,
  'Record evaluation: invalid-domain-empty-label': `${NO_NAME} or permerror`,
  'IP6 mechanism syntax: cidr6-0-ip4': MAPPED,
  'IP6 mechanism syntax: cidr6-ip4': MAPPED,
  'Processing limits: mx-limit': 'looks at the first ten names of an mx, as RFC 4408; RFC 7208 4.6.4: permerror',
}

const ORACLES: readonly { readonly verifier: Verifier; readonly told: Told }[] = [
  { verifier: PYSPF, told: {} },
  { verifier: MAIL_SPF, told: MAIL_SPF_TOLD },
]

type Case = readonly [what: string, sender: { ip: string; sender: string; helo: string }, expected: readonly string[]]

/** Unlisted differences, and listed ones that do not occur. */
async function surprises(peer: LinePeer, cases: readonly Case[], told: Told): Promise<string[]> {
  const found: string[] = []
  for (const [what, job, expected] of cases) {
    const verdict = await peer.ask(job)
    if (expected.includes(verdict) === Object.hasOwn(told, what)) found.push(`${what}: ${verdict}, ours ${expected}`)
  }
  return found
}

async function open(t: Test, { program, args }: Verifier): Promise<{ zone: Zone; peer: LinePeer }> {
  const zone = await startZone()
  const peer = startLinePeer(program, [...args, String(zone.port)])
  t.teardown(async () => {
    peer.close()
    await zone.close()
  })
  return { zone, peer }
}

for (const { verifier, told } of ORACLES) {
  t.test(`oracle: ${verifier.name} on our vectors of SPF`, { skip: verifier.missing }, async (t) => {
    const { zone, peer } = await open(t, verifier)
    fillZone(zone, SPF_RECORDS)
    const cases = SPF_CASES.flatMap(([what, differs, spf, spfHelo]): Case[] => {
      const { address, ip, helo } = { ...SPF_SENDER, ...differs }
      const ofAddress: Case[] = address === '' ? [] : [[what, { ip, sender: address, helo }, [spf]]]
      return [...ofAddress, [`${what}, HELO`, { ip, sender: '', helo }, [spfHelo]]]
    })
    t.same(await surprises(peer, cases, told), [])
  })

  const missing = verifier.missing || (SPF_SUITE === null && 'no suite')
  t.test(`oracle: ${verifier.name} on the suite of openspf`, { skip: missing }, async (t) => {
    const { zone, peer } = await open(t, verifier)
    for (const { description, tests, zonedata } of readSpfSuite(SPF_SUITE as string)) {
      const records = zoneOf(zonedata)
      fillZone(zone, records)
      const cases = Object.entries(tests).map(
        ([name, { helo, host, mailfrom, result }]): Case => [
          `${description}: ${name}`,
          { ip: host, sender: mailfrom, helo },
          [result].flat(),
        ],
      )
      t.same(await surprises(peer, cases, told), [])
      for (const name of Object.keys(records)) zone.remove(name)
    }
  })
}
