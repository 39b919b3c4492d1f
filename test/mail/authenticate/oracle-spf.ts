/**
 * SPF: pyspf (Debian: python3-spf) and Mail::SPF (libmail-spf-perl) beside ours, each asking a real DNS server on the loopback,
 * on our own vectors and, where it is there, on the suite of openspf. Where one says otherwise it is told here, with the reason.
 */
import t, { type Test } from 'tap'
import { isInstalled, type LinePeer, startLinePeer } from '../../support/peers/line-peer.ts'
import { readSpfSuite, SPF_CASES, SPF_RECORDS, SPF_SENDER, SPF_SUITE, zoneOf } from '../../support/peers/spf-vectors.ts'
import { startZone, type Zone } from '../../support/peers/zone.ts'
import { fillZone } from '../../support/peers/zone-records.ts'

/** Where Debian puts its modules. */
const PYTHON = '/usr/bin/python3'

/** In: lines of JSON `{ip, sender, helo}`; `sender` may be empty. Out: a verdict for each. */
const PYSPF = `
import sys, json, dns.resolver, spf
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers, resolver.port = ['127.0.0.1'], int(sys.argv[1])
dns.resolver.default_resolver = resolver
spf.DNSLookup = spf.DNSLookup_dnspython
for line in sys.stdin:
    job = json.loads(line)
    try:
        verdict = spf.check2(i=job['ip'], s=job['sender'], h=job['helo'])[0]
    except Exception as error:
        verdict = 'throws ' + type(error).__name__
    print(verdict, flush=True)
`
const MAIL_SPF = `
use strict; use warnings; use JSON::PP; use Net::DNS::Resolver; use Mail::SPF; $| = 1;
my $resolver = Net::DNS::Resolver->new(nameservers => ['127.0.0.1'], port => $ARGV[0], recurse => 0, udp_timeout => 2, retry => 1);
my $server = Mail::SPF::Server->new(dns_resolver => $resolver, query_rr_types => Mail::SPF::Server->query_rr_type_txt);
while (my $line = <STDIN>) {
  my $job = decode_json($line);
  my $verdict = eval {
    my %who = $job->{sender} eq ''
      ? (scope => 'helo', identity => $job->{helo})
      : (scope => 'mfrom', identity => $job->{sender}, helo_identity => $job->{helo});
    $server->process(Mail::SPF::Request->new(versions => [1], ip_address => $job->{ip}, %who))->code
  } // 'throws';
  print "$verdict\\n";
}
`

interface Oracle {
  readonly name: string
  readonly missing: string | false
  readonly command: readonly [string, ...string[]]
  /** What it says otherwise, by the name of the case, and why. */
  readonly told: Readonly<Record<string, string>>
}

const NO_NAME = 'its resolver throws where a name cannot be asked for; RFC 7208 4.3: none'
const MAPPED = 'an ip6 mechanism matches an IPv4 address for it; RFC 7208 5.6: it does not'
const MAIL_SPF_TOLD: Oracle['told'] = {
  'a domain that cannot be': NO_NAME,
  'Initial processing: toolonglabel': NO_NAME,
  'Initial processing: emptylabel': NO_NAME,
  'Record evaluation: invalid-domain-empty-label': `${NO_NAME} or permerror`,
  'IP6 mechanism syntax: cidr6-0-ip4': MAPPED,
  'IP6 mechanism syntax: cidr6-ip4': MAPPED,
  'Processing limits: mx-limit': 'looks at the first ten names of an mx, as RFC 4408; RFC 7208 4.6.4: permerror',
}

const ORACLES: readonly Oracle[] = [
  {
    name: 'pyspf',
    missing: !isInstalled(PYTHON, ['-c', 'import spf, dns.resolver']) && 'no python3-spf',
    command: [PYTHON, '-c', PYSPF],
    told: {},
  },
  {
    name: 'Mail::SPF',
    missing: !isInstalled('perl', ['-MMail::SPF', '-MJSON::PP', '-e', '1']) && 'no libmail-spf-perl',
    command: ['perl', '-e', MAIL_SPF],
    told: MAIL_SPF_TOLD,
  },
]

type Case = readonly [what: string, sender: { ip: string; sender: string; helo: string }, expected: readonly string[]]

/** What differs and is not told, and what is told and does not differ. */
async function surprises(peer: LinePeer, cases: readonly Case[], told: Oracle['told']): Promise<string[]> {
  const found: string[] = []
  for (const [what, job, expected] of cases) {
    const verdict = await peer.ask(job)
    if (expected.includes(verdict) === Object.hasOwn(told, what)) found.push(`${what}: ${verdict}, ours ${expected}`)
  }
  return found
}

async function open(t: Test, { command }: Oracle): Promise<{ zone: Zone; peer: LinePeer }> {
  const zone = await startZone()
  const [program, ...args] = command
  const peer = startLinePeer(program, [...args, String(zone.port)])
  t.teardown(async () => {
    peer.close()
    await zone.close()
  })
  return { zone, peer }
}

for (const oracle of ORACLES) {
  t.test(`oracle: ${oracle.name} on our vectors of SPF`, { skip: oracle.missing }, async (t) => {
    const { zone, peer } = await open(t, oracle)
    fillZone(zone, SPF_RECORDS)
    const cases = SPF_CASES.flatMap(([what, differs, spf, spfHelo]): Case[] => {
      const { address, ip, helo } = { ...SPF_SENDER, ...differs }
      const ofAddress: Case[] = address === '' ? [] : [[what, { ip, sender: address, helo }, [spf]]]
      return [...ofAddress, [`${what}, HELO`, { ip, sender: '', helo }, [spfHelo]]]
    })
    t.same(await surprises(peer, cases, oracle.told), [])
  })

  const missing = oracle.missing || (SPF_SUITE === null && 'no suite')
  t.test(`oracle: ${oracle.name} on the suite of openspf`, { skip: missing }, async (t) => {
    const { zone, peer } = await open(t, oracle)
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
      t.same(await surprises(peer, cases, oracle.told), [])
      for (const name of Object.keys(records)) zone.remove(name)
    }
  })
}
