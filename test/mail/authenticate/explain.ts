/** explain - each verdict in a sentence, with the record it is based on and the change that would make it pass. */
import t from 'tap'
import { type Explained, explain } from '../../../src/mail/authenticate/explain.ts'
import { judgeMail } from '../../../src/mail/authenticate/judge.ts'
import { ARC_VECTORS, ARC_ZONE } from '../../support/peers/arc-vectors.ts'
import { DKIM_NOW_MS, DKIM_VECTORS, keyZone, signedMail } from '../../support/peers/dkim-vectors.ts'
import { lookUpIn, type Records } from '../../support/peers/records.ts'
import { joinMail, publicKeyText } from '../../support/peers/sign-mail.ts'
import { SPF_CASES, SPF_RECORDS, SPF_SENDER } from '../../support/peers/spf-vectors.ts'

const MAIL = { fields: ['From: Ada <ada@a.example>', 'Subject: Greetings'], body: 'Hello\r\n' }
const SENDER = { address: 'bounce@a.example', ip: '192.0.2.1', helo: 'mx.a.example', receiver: 'mx.b.example' }
const RECORDS: Records = {
  'a.example': ['TXT v=spf1 ip4:192.0.2.1 -all'],
  'mx.a.example': ['TXT v=spf1 -all'],
  's._domainkey.a.example': [`TXT v=DKIM1; p=${publicKeyText('rsa')}`],
  '_dmarc.a.example': ['TXT v=DMARC1; p=reject'],
}

async function explained(
  raw: Buffer,
  { records = RECORDS, sender = SENDER }: { records?: Records; sender?: typeof SENDER | null } = {},
): Promise<Explained[]> {
  const { lookUp } = lookUpIn(records)
  return explain(await judgeMail(raw, { sender, lookUp, nowMs: DKIM_NOW_MS }), sender?.ip ?? null)
}
const of = (all: readonly Explained[], check: Explained['check']): Explained | undefined =>
  all.find((one) => one.check === check)

t.test('explain: a mail whose sender is as it should be', async (t) => {
  const all = await explained(joinMail(MAIL))
  t.same(of(all, 'spf'), {
    check: 'spf',
    verdict: 'pass',
    message: '192.0.2.1 may send for a.example',
    record: { name: 'a.example', text: 'v=spf1 ip4:192.0.2.1 -all' },
    fix: null,
  })
  t.match(of(all, 'spfHelo'), { verdict: 'fail', fix: /ip4:192\.0\.2\.1 in the TXT record of mx\.a\.example$/ })
  t.match(of(all, 'dkim'), { verdict: 'none', message: 'The mail is not signed' })
  t.match(of(all, 'dmarc'), {
    verdict: 'pass',
    message: 'From a.example is confirmed by SPF for a.example',
    record: { name: '_dmarc.a.example', text: 'v=DMARC1; p=reject' },
  })
  t.match(of(all, 'arc'), { verdict: 'none' })
})

t.test('explain: forged mail, and what would pass', async (t) => {
  const all = await explained(joinMail(MAIL), { sender: { ...SENDER, address: 'x@evil.example', ip: '2001:db8::9' } })
  t.match(of(all, 'spf'), {
    verdict: 'none',
    fix: 'Create the DNS record: evil.example TXT "v=spf1 ip6:2001:db8::9 -all"',
  })
  t.match(of(all, 'dmarc'), {
    verdict: 'fail',
    message: 'Nothing confirms From a.example: no signature is valid, SPF is none; its policy is reject',
    fix: /d=a\.example/,
  })
})

t.test('explain: without a session SPF is not checked, and the rest is', async (t) => {
  const all = await explained(joinMail(MAIL), { sender: null })
  t.match(of(all, 'spf'), { verdict: 'unchecked', message: 'SPF was not checked: who connected is not known' })
  t.match(of(all, 'dmarc'), { verdict: 'fail' })
})

t.test('explain: every vector has its own sentence, never an empty one', async (t) => {
  const messages = new Set<string>()
  for (const [section, what, vector, verdict] of DKIM_VECTORS) {
    const all = await explained(signedMail(vector), { records: keyZone(vector.record) })
    const own = all.filter(({ check }) => check === 'dkim')
    t.ok(
      own.some((one) => one.verdict === verdict),
      `${section}: ${what}: ${own.map((one) => `${one.verdict} ${one.message}`)}`,
    )
    for (const { message, fix, verdict: told } of own) {
      t.notMatch(message, /undefined|null|: $/, `${what}: ${message}`)
      if (told !== 'pass' && !/expired/.test(message)) t.ok(fix, `${what}: ${message}`)
      messages.add(message)
    }
    if (/768/.test(what)) t.match(own[0], { message: /less than 1,024 bits/, fix: /2,048/ })
  }
  t.ok(messages.size > 8, [...messages].join('\n'))
  for (const [section, what, raw, verdict, records = ARC_ZONE] of ARC_VECTORS) {
    const all = await explained(raw, { records })
    t.match(of(all, 'arc'), { verdict, message: /\w+/ }, `${section}: ${what}`)
    t.notMatch(of(all, 'arc')?.message, /undefined|no reason given/, `${section}: ${what}`)
  }
  for (const [what, sender, spf] of SPF_CASES) {
    const all = await explained(joinMail(MAIL), { records: SPF_RECORDS, sender: { ...SPF_SENDER, ...sender } })
    const { verdict, message, fix } = of(all, 'spf') as Explained
    t.equal(verdict, spf, what)
    t.notMatch(`${message} ${fix}`, /undefined|: $|no reason given/, `${what}: ${message}`)
  }
})

t.test('explain: a changed body, a missing key, a mail over the limits', async (t) => {
  const [, , vector] = DKIM_VECTORS.find(([, , , verdict]) => verdict === 'pass')!
  const good = signedMail(vector)
  const changed = await explained(Buffer.concat([good, Buffer.from('more\r\n')]), { records: keyZone(vector.record) })
  t.match(of(changed, 'dkim'), { verdict: 'fail', message: /^The body was changed after a\.example signed it/ })
  const keyless = await explained(good, { records: {} })
  t.match(of(keyless, 'dkim'), {
    verdict: 'permerror',
    message: 'There is no key in s._domainkey.a.example',
    fix: /^Create the DNS record: s\._domainkey\.a\.example TXT /,
  })
  const large = await explained(Buffer.from(`From: a@a.example\r\nX: ${'a'.repeat(300_000)}\r\n\r\n`))
  t.match(of(large, 'dkim'), { verdict: 'permerror', message: /256 KiB/ })
  t.match(of(large, 'dmarc'), { verdict: 'permerror', message: /256 KiB/ })
})
