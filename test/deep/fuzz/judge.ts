/** Signed and sealed mails with bytes cut, doubled and replaced, and hostile records: judging ends without a fault. */
import { isIP } from 'node:net'
import t from 'tap'
import { explain } from '../../../src/mail/authenticate/explain.ts'
import { judgeMail } from '../../../src/mail/authenticate/judge.ts'
import { mergeRounds } from '../../../src/mail/authenticate/rounds.ts'
import { readSessionFromHeaders } from '../../../src/mail/authenticate/session-from-headers.ts'
import { lookUpIn } from '../../support/peers/records.ts'
import { joinMail, publicKeyText, signField } from '../../support/peers/sign-mail.ts'

const SEED = Number(process.env.SEED ?? 22)
const MAILS = Number(process.env.MAILS ?? 2000)
const WORDS = [
  '\r\n',
  '\n',
  '\r',
  ';',
  '=',
  ':',
  ' ',
  '\t',
  '"',
  '(',
  '@',
  'i=2;',
  'cv=',
  '\0',
  '\xff',
  'DKIM-Signature: ',
  'From: ',
  'v=spf1 include:',
  '%{',
  '%{d1r}',
  'redirect=',
  '/0//0',
  'v=DMARC1; ',
  'psd=y',
  'p=',
]
const MAIL = { fields: ['From: Ada <ada@a.example>', 'Subject: Greetings'], body: 'Hello\r\n' }
const TAGS = 'a=rsa-sha256; c=relaxed/relaxed; d=a.example; s=s; h=from:subject; bh={bh}; b={b}'
const RECORDS = {
  'a.example': 'v=spf1 include:b.example ip4:192.0.2.1 a mx ptr exists:%{ir}.%{v}._spf.%{d2} redirect=c.example',
  'b.example': 'v=spf1 ip6:2001:db8::/32 a:x.example -all exp=why.example',
  's._domainkey.a.example': `v=DKIM1; k=rsa; t=y; p=${publicKeyText('rsa')}`,
  '_dmarc.a.example': 'v=DMARC1; p=reject; sp=none; np=quarantine; adkim=r; rua=mailto:r@a.example',
}

let state = SEED
function draw(below: number): number {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  return Math.floor((state / 2 ** 32) * below)
}

function mutate(text: string): string {
  let out = text
  for (let left = draw(5); left > 0; left -= 1) {
    const at = draw(out.length + 1)
    const to = Math.min(out.length, at + draw(40))
    const word = WORDS[draw(WORDS.length)] as string
    out = [
      out.slice(0, at) + word + out.slice(at),
      out.slice(0, at) + word + out.slice(to),
      out.slice(0, to) + out.slice(at),
    ][draw(3)] as string
  }
  return out
}

t.test(`fuzz: ${MAILS} mutated mails and records are judged and explained (seed ${SEED})`, async (t) => {
  const names = ['from', 'subject']
  const sign = (field: string): string => signField(MAIL, { field, names, canon: 'relaxed/relaxed', key: 'rsa' })
  const fields = [
    'Return-Path: <ada@a.example>',
    'Received: from mx.a.example (mx.a.example [198.51.101.7]) by mx.b.example',
    `ARC-Seal: i=1; a=rsa-sha256; t=1; cv=none; d=a.example; s=s; b=AAAA`,
    sign(`ARC-Message-Signature: i=1; ${TAGS}`),
    'ARC-Authentication-Results: i=1; a.example; spf=pass',
    sign(`DKIM-Signature: v=1; ${TAGS}`),
    ...MAIL.fields,
  ]
  const seen = new Map<string, number>()
  let asked = 0
  for (let number = 0; number < MAILS; number += 1) {
    const raw = Buffer.from(mutate(joinMail({ ...MAIL, fields }).toString('latin1')), 'latin1')
    const records = Object.fromEntries(Object.entries(RECORDS).map(([name, text]) => [name, [`TXT ${mutate(text)}`]]))
    const zone = lookUpIn(records)
    const sender = {
      address: mutate('ada@a.example'),
      ip: mutate('192.0.2.1'),
      helo: mutate('mx.a.example'),
      receiver: 'mx.b.example',
    }
    const judged = await judgeMail(raw, { sender, lookUp: zone.lookUp, nowMs: 0 })
    const { authentication } = judged
    const told = explain(judged, sender.ip).map(({ message }) => message)
    if (told.length < 5 || told.some((message) => message === '' || message.includes('undefined')))
      t.fail(`${told.join('; ')}: ${JSON.stringify(raw.toString('latin1'))}`)
    const { ip } = readSessionFromHeaders(raw)
    if (ip !== null && isIP(ip) === 0) t.fail(`${ip} is told`)
    const merged = mergeRounds(authentication, authentication)
    if (JSON.stringify(merged) !== JSON.stringify(authentication)) t.fail(JSON.stringify(merged))
    asked = Math.max(asked, zone.asked.length)
    for (const [field, verdict] of Object.entries(authentication))
      seen.set(`${field} ${verdict}`, (seen.get(`${field} ${verdict}`) ?? 0) + 1)
  }
  t.ok(asked <= 60, `${asked} look-ups at most`)
  for (const verdict of [
    'spf pass',
    'spf permerror',
    'dkim pass',
    'dkim fail',
    'dkim permerror',
    'dmarc pass',
    'dmarc fail',
    'arc fail',
  ])
    t.ok(seen.has(verdict), `${verdict}: ${seen.get(verdict)}`)
})
