/**
 * judge - a mail and its session: the object of the contract, temporary verdicts, and the result of an aborted
 * verification.
 */
import t from 'tap'
import { type Authentication, UNCHECKED } from '../../../src/mail/authenticate/authentication.ts'
import { judgeMail, judgeReports } from '../../../src/mail/authenticate/judge.ts'
import { lookUpIn, type Records } from '../../support/peers/records.ts'
import { joinMail, publicKeyText, signField } from '../../support/peers/sign-mail.ts'

const NOW_MS = Date.UTC(2026, 10, 22)
const MAIL = { fields: ['From: Ada <ada@a.example>', 'Subject: Greetings'], body: 'Hello\r\n' }
const SIGNED = {
  ...MAIL,
  fields: [
    signField(MAIL, {
      field: 'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=a.example; s=s; h=from:subject; bh={bh}; b={b}',
      names: ['from', 'subject'],
      canon: 'relaxed/relaxed',
      key: 'rsa',
    }),
    ...MAIL.fields,
  ],
}
const RECORDS: Records = {
  'a.example': ['TXT v=spf1 ip4:192.0.2.1 -all'],
  'mx.a.example': ['TXT v=spf1 ip4:192.0.2.1 -all'],
  's._domainkey.a.example': [`TXT v=DKIM1; p=${publicKeyText('rsa')}`],
  '_dmarc.a.example': ['TXT v=DMARC1; p=reject'],
}
const SENDER = { address: 'bounce@a.example', ip: '192.0.2.1', helo: 'mx.a.example', receiver: 'mx.b.example' }
const GOOD: Authentication = {
  spf: 'pass',
  spfHelo: 'pass',
  dkim: 'pass',
  dmarc: 'pass',
  dmarcPolicy: null,
  arc: 'none',
}

/** what, records that differ, sender that differs, whether it is signed, verdicts that differ, temporary */
const CASES: [string, Records, Partial<typeof SENDER>, boolean, Partial<Authentication>, boolean][] = [
  ['all as it should be', {}, {}, true, {}, false],
  ['unsigned', {}, {}, false, { dkim: 'none' }, false],
  ['forwarded: SPF fails, DKIM holds', {}, { ip: '192.0.2.9' }, true, { spf: 'fail', spfHelo: 'fail' }, false],
  [
    'forged',
    {},
    { ip: '192.0.2.9' },
    false,
    { spf: 'fail', spfHelo: 'fail', dkim: 'none', dmarc: 'fail', dmarcPolicy: 'reject' },
    false,
  ],
  ['a returned mail', {}, { address: '' }, true, { spf: 'none' }, false],
  ['the key is away', { 's._domainkey.a.example': ['TIMEOUT'] }, {}, true, { dkim: 'temperror' }, true],
  [
    'the key is away, and SPF fails',
    { 's._domainkey.a.example': ['TIMEOUT'] },
    { ip: '192.0.2.9' },
    true,
    { spf: 'fail', spfHelo: 'fail', dkim: 'temperror', dmarc: 'temperror' },
    true,
  ],
  ['the policy is away', { '_dmarc.a.example': ['TIMEOUT'] }, {}, true, { dmarc: 'temperror' }, true],
  ['the HELO name is away', { 'mx.a.example': ['TIMEOUT'] }, {}, true, { spfHelo: 'temperror' }, true],
]

t.test('judge: the verdicts on a mail [inbound.authentication]', async (t) => {
  for (const [what, records, sender, isSigned, differs, isTemporary] of CASES) {
    const { lookUp } = lookUpIn({ ...RECORDS, ...records })
    const raw = joinMail(isSigned ? SIGNED : MAIL)
    const judged = await judgeMail(raw, { sender: { ...SENDER, ...sender }, lookUp, nowMs: NOW_MS })
    t.same(judged.authentication, { ...GOOD, ...differs }, what)
    t.equal(judged.isTemporary, isTemporary, what)
  }
})

t.test('judge: an aborted verification keeps SPF [inbound.authentication]', async (t) => {
  const { lookUp, asked } = lookUpIn(RECORDS)
  const found = { domain: 'a.example', reason: null, record: null }
  const sender = { from: { ...found, verdict: 'pass' }, helo: { ...found, verdict: 'temperror' } } as const
  const judged = await judgeReports({ sender, signatures: null }, lookUp)
  t.same(judged.authentication, { ...GOOD, spfHelo: 'temperror', dkim: 'permerror', dmarc: 'permerror', arc: 'fail' })
  t.equal(judged.isTemporary, true)
  t.same(asked, [])
  t.same([...new Set(Object.values(UNCHECKED))], ['unchecked', null])
})
