/**
 * judge-dns - mail judged with a hostile or broken DNS, a real server on the loopback: permanent errors, temporary
 * ones, and that no sender makes us ask endlessly.
 */
import t, { type Test } from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import type { Authentication } from '../../src/mail/authenticate/authentication.ts'
import { makeMailJudge } from '../../src/reception/mail-judge.ts'
import { joinMail, publicKeyText, signField } from '../support/peers/sign-mail.ts'
import { startZone, type Zone, type ZoneRecord } from '../support/peers/zone.ts'

const LOOK_UPS_MAX = 60
/** The maximum contents of a DNS message, without its header and names. */
const TXT_BYTES_MAX = 64_000
const MAIL = { fields: ['From: Ada <ada@a.test>', 'Subject: Greetings'], body: 'Hello\r\n' }
const TAGS = 'a=rsa-sha256; c=relaxed/relaxed; h=from:subject; bh={bh}; b={b}'
const signing = { names: ['from', 'subject'], canon: 'relaxed/relaxed', key: 'rsa' } as const
const signed = (...names: [domain: string, selector: string][]): Buffer => {
  const signatures = names.map(([domain, selector]) =>
    signField(MAIL, { ...signing, field: `DKIM-Signature: v=1; d=${domain}; s=${selector}; ${TAGS}` }),
  )
  return joinMail({ ...MAIL, fields: [...signatures, ...MAIL.fields] })
}
const SIGNED = signed(['a.test', 's'])
const SENDER = { address: 'bounce@a.test', ip: '192.0.2.1', helo: 'mx.a.test', receiver: 'mx.b.test' }
const txt = (data: string): ZoneRecord => ({ type: 'TXT', data })
const alias = (domain: string): ZoneRecord => ({ type: 'CNAME', domain })
const KEY = txt(`v=DKIM1; p=${publicKeyText('rsa')}`)

/** How long an answer is kept, and more. */
const FORGOTTEN_MS = 600_000

async function open(t: Test) {
  const zone = await startZone()
  let nowMs = 0
  const resolver = createResolver({ servers: [zone.server], nowMs: () => nowMs, queryTimeoutMs: 400 })
  const room = makeMailJudge({ resolver, nowMs: () => performance.now() })
  t.teardown(async () => {
    await room.close()
    resolver.close()
    await zone.close()
  })
  /** Judges with the zone's present records. The next mail finds another zone. */
  const judge = async (raw: Buffer = SIGNED, address = SENDER.address) => {
    const judged = await room.judge({ raw, sender: { ...SENDER, address }, checkedAtMs: Date.UTC(2026, 10, 23) })
      .judgement
    const asked = zone.asked.splice(0).length
    nowMs += FORGOTTEN_MS
    return { ...judged, asked }
  }
  const reset = (): void => {
    zone.remove('_dmarc.test')
    zone.remove('b.test')
    zone.set('a.test', txt('v=spf1 ip4:192.0.2.1 -all'))
    zone.set('mx.a.test', txt('v=spf1 ip4:192.0.2.1 -all'))
    zone.set('s._domainkey.a.test', KEY)
    zone.set('_dmarc.a.test', txt('v=DMARC1; p=reject'))
  }
  reset()
  return { zone, judge, reset }
}

const GOOD: Authentication = {
  spf: 'pass',
  spfHelo: 'pass',
  dkim: 'pass',
  dmarc: 'pass',
  dmarcPolicy: null,
  arc: 'none',
}
const KEY_NAME = 's._domainkey.a.test'

/** subject, change of the zone, differing verdicts, whether a later round may find more */
const CASES: [string, (zone: Zone) => void, Partial<Authentication>, boolean][] = [
  ['all as it should be', () => undefined, {}, false],
  ['SPF: no such name', (zone) => zone.remove('a.test'), { spf: 'none' }, false],
  ['SPF: a name without records', (zone) => zone.set('a.test'), { spf: 'none' }, false],
  ['SPF: SERVFAIL', (zone) => zone.fail('a.test', 'servfail'), { spf: 'temperror' }, true],
  ['SPF: REFUSED', (zone) => zone.fail('a.test', 'refused'), { spf: 'temperror' }, true],
  ['SPF: no answer', (zone) => zone.fail('a.test', 'timeout'), { spf: 'temperror' }, true],
  ['SPF: cut off, over TCP too', (zone) => zone.fail('a.test', 'truncated'), { spf: 'none' }, false],
  [
    'SPF: an include that is away',
    (zone) => {
      zone.set('a.test', txt('v=spf1 include:b.test -all'))
      zone.fail('b.test', 'servfail')
    },
    { spf: 'temperror' },
    true,
  ],
  [
    'SPF: an include that has no record',
    (zone) => zone.set('a.test', txt('v=spf1 include:b.test -all')),
    { spf: 'permerror' },
    false,
  ],
  ['SPF: the record has an alias', (zone) => zone.set('a.test', alias('mx.a.test')), {}, false],
  ['SPF: an alias of itself', (zone) => zone.set('a.test', alias('a.test')), { spf: 'none' }, false],
  [
    'SPF: two aliases of each other',
    (zone) => {
      zone.set('a.test', alias('b.test'))
      zone.set('b.test', alias('a.test'))
    },
    { spf: 'none' },
    false,
  ],
  ['SPF: 64 KB of text', (zone) => zone.set('a.test', txt('x'.repeat(TXT_BYTES_MAX))), { spf: 'none' }, false],
  [
    'SPF: a record of 64 KB that says nothing',
    (zone) => zone.set('a.test', txt(`v=spf1 ${'ip4:198.51.100.1 '.repeat(3700)}-all`)),
    { spf: 'fail' },
    false,
  ],
  [
    'SPF: a thousand records',
    (zone) => zone.set('a.test', ...Array.from({ length: 1000 }, () => txt('v=spf1 +all'))),
    { spf: 'permerror' },
    false,
  ],
  ['DKIM: no such key', (zone) => zone.remove(KEY_NAME), { dkim: 'permerror' }, false],
  ['DKIM: a name without records', (zone) => zone.set(KEY_NAME), { dkim: 'permerror' }, false],
  ['DKIM: SERVFAIL', (zone) => zone.fail(KEY_NAME, 'servfail'), { dkim: 'temperror' }, true],
  ['DKIM: no answer', (zone) => zone.fail(KEY_NAME, 'timeout'), { dkim: 'temperror' }, true],
  [
    'DKIM: a key behind an alias',
    (zone) => {
      zone.set(KEY_NAME, alias('key.host.test'))
      zone.set('key.host.test', KEY)
    },
    {},
    false,
  ],
  [
    'DKIM: 64 KB in place of a key',
    (zone) => zone.set(KEY_NAME, txt(`v=DKIM1; p=${'A'.repeat(TXT_BYTES_MAX)}`)),
    { dkim: 'permerror' },
    false,
  ],
  [
    'DKIM and SPF: nothing holds, and the key is away',
    (zone) => {
      zone.set('a.test', txt('v=spf1 -all'))
      zone.fail(KEY_NAME, 'servfail')
    },
    { spf: 'fail', dkim: 'temperror', dmarc: 'temperror' },
    true,
  ],
  ['DMARC: no record', (zone) => zone.remove('_dmarc.a.test'), { dmarc: 'none' }, false],
  ['DMARC: SERVFAIL', (zone) => zone.fail('_dmarc.a.test', 'servfail'), { dmarc: 'temperror' }, true],
  [
    'DMARC: no answer from the domain above, which is not needed',
    (zone) => zone.fail('_dmarc.test', 'timeout'),
    {},
    false,
  ],
  [
    'DMARC: 64 KB of record',
    (zone) => zone.set('_dmarc.a.test', txt(`v=DMARC1; p=reject; x=${'y'.repeat(TXT_BYTES_MAX)}`)),
    {},
    false,
  ],
]

t.test('judge-dns: permanent and temporary results [inbound.authentication]', async (t) => {
  const { zone, judge, reset } = await open(t)
  for (const [what, change, differs, isTemporary] of CASES) {
    reset()
    change(zone)
    const { authentication, isTemporary: isOpen, asked } = await judge()
    t.same([authentication, isOpen], [{ ...GOOD, ...differs }, isTemporary], what)
    t.ok(asked > 0 && asked <= LOOK_UPS_MAX, `${what}: ${asked} questions`)
  }
})

/** An SPF record with the maximum number of lookups, each of which leads to another one. */
const bomb = (name: string): ZoneRecord[] => [
  txt(`v=spf1 ${Array.from({ length: 10 }, (_, at) => `include:${at}.${name}`).join(' ')} -all`),
]

t.test('judge-dns: records that lead to thousands of look-ups [inbound.authentication]', async (t) => {
  const { zone, judge } = await open(t)
  zone.remove('a.test')
  zone.remove('mx.a.test')
  zone.fill((name) => (name.includes('_') ? [] : bomb(name)))
  const { authentication, asked } = await judge(
    signed(...Array.from({ length: 10 }, (_, at): [string, string] => [`d${at}.test`, 's'])),
  )
  t.match(authentication, { spf: 'permerror', spfHelo: 'permerror', dkim: 'permerror' })
  t.ok(asked <= LOOK_UPS_MAX, `${asked} questions`)
})

t.test('judge-dns: mechanisms with many names each', async (t) => {
  const { zone, judge } = await open(t)
  const many = Array.from(
    { length: 200 },
    (_, at): ZoneRecord => ({
      type: 'MX',
      exchange: `mx${at}.a.test`,
      priority: 10,
    }),
  )
  zone.set('a.test', txt('v=spf1 mx:a.test mx:b.test ptr exists:%{ir}.%{l}.a.test -all'), ...many)
  zone.set('b.test', ...many)
  zone.fill((name) => (name.includes('_') ? [] : [{ type: 'A', address: '203.0.113.1' }]))
  const { authentication, asked } = await judge()
  t.equal(authentication?.spf, 'permerror', 'RFC 7208 4.6.4: more than 10 names of one mx')
  t.ok(asked <= LOOK_UPS_MAX, `${asked} questions`)
})

t.test('judge-dns: From in a name of 120 labels, ten signatures below it', async (t) => {
  const { zone, judge } = await open(t)
  const deep = Array.from({ length: 120 }, () => 'x').join('.')
  const mail = { ...MAIL, fields: [`From: ada@${deep}.test`, 'Subject: Greetings'] }
  const fields = Array.from({ length: 10 }, (_, at) =>
    signField(mail, { ...signing, field: `DKIM-Signature: v=1; d=${at}.${deep}.test; s=s; ${TAGS}` }),
  )
  zone.fill((name) => (name.startsWith('_dmarc') ? [txt('v=DMARC1; p=reject')] : [KEY]))
  const { authentication, asked } = await judge(joinMail({ ...mail, fields: [...fields, ...mail.fields] }))
  t.equal(authentication?.dmarc, 'pass')
  t.ok(asked <= LOOK_UPS_MAX, `${asked} questions`)
})

t.test('judge-dns: a DNS that answers late, but answers', async (t) => {
  const { zone, judge } = await open(t)
  zone.slow(80)
  t.same((await judge()).authentication, GOOD)
})

t.test('judge-dns: look-ups past the budget make verdicts temporary, not wrong', async (t) => {
  const { zone, judge } = await open(t)
  // Ten mx mechanisms are allowed, and ten names of each: with their addresses 110 lookups.
  const mechanisms = Array.from({ length: 10 }, (_, at) => `mx:${at}.b.test`).join(' ')
  zone.set('a.test', txt(`v=spf1 ${mechanisms} -all`))
  zone.fill((name, type) => {
    if (type === 'A') return [{ type, address: '203.0.113.1' }]
    const names = Array.from({ length: 10 }, (_, at) => `${at}.${name}`)
    return type === 'MX' ? names.map((exchange) => ({ type, exchange, priority: 10 })) : []
  })
  const { authentication, isTemporary, asked } = await judge(joinMail(MAIL))
  t.match(authentication, { spf: 'temperror', dkim: 'none' })
  t.equal(isTemporary, true)
  t.equal(asked, LOOK_UPS_MAX)
})

t.test(
  'judge-dns: a record with the local part asks for it, whatever its characters [inbound.authentication]',
  async (t) => {
    const { zone, judge } = await open(t)
    zone.set('a.test', txt('v=spf1 exists:%{l}._spf.%{d} -all'))
    const locals = ['prvs=1234567890=ada', 'bounce+17-ada=b.test', 'SRS0=hHhh=TT=b.test=ada', "o'neill", 'ada.b#c']
    for (const local of locals) {
      zone.set(`${local}._spf.a.test`, { type: 'A', address: '127.0.0.2' })
      t.equal((await judge(joinMail(MAIL), `${local}@a.test`)).authentication?.spf, 'pass', local)
      zone.remove(`${local}._spf.a.test`)
      t.equal((await judge(joinMail(MAIL), `${local}@a.test`)).authentication?.spf, 'fail', `${local}: no such name`)
      zone.fail(`${local}._spf.a.test`, 'servfail')
      t.equal((await judge(joinMail(MAIL), `${local}@a.test`)).authentication?.spf, 'temperror', `${local}: SERVFAIL`)
    }
  },
)
