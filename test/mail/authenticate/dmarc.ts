/** DMARC: vectors from the text of RFC 9989, each with its section, and what temporary failures leave open. */
import t from 'tap'
import { checkDmarc, type DmarcInput, type DmarcReport } from '../../../src/mail/authenticate/dmarc.ts'
import { lookUpIn } from '../../support/peers/records.ts'

const P = 'v=DMARC1; p=reject'

/** Records by the name that they are about. */
const zone = (records: Readonly<Record<string, string | readonly string[]>>): Record<string, readonly string[]> =>
  Object.fromEntries(
    Object.entries(records).map(([name, texts]) => [
      `_dmarc.${name}`,
      [texts].flat().map((text) => (text === 'TIMEOUT' ? text : `TXT ${text}`)),
    ]),
  )

/** Who is named: `spf:` and `dkim:` hold, `spf?` and `dkim?` the DNS could not tell, `from:` is an author. */
function inputOf(words: string): DmarcInput {
  const all = words.split(' ').map((word) => /^(\w+[:?])(.*)$/.exec(word) ?? ['', '', ''])
  const named = (kind: string): string[] => all.filter(([, own]) => own === kind).map(([, , value = '']) => value)
  const authors = named('from:').map((domain) => (domain.includes('@') ? domain : `ada@${domain}`))
  return {
    authors,
    fromFields: 1,
    spf: named('spf:').length > 0 ? 'pass' : named('spf?').length > 0 ? 'temperror' : 'none',
    spfDomain: [...named('spf:'), ...named('spf?')][0] ?? '',
    passed: named('dkim:'),
    undecided: named('dkim?'),
  }
}

type Verdict = 'pass' | 'none' | 'temperror' | 'permerror' | 'fail none' | 'fail quarantine' | 'fail reject'
const told = ({ dmarc, dmarcPolicy }: DmarcReport): string => (dmarcPolicy === null ? dmarc : `${dmarc} ${dmarcPolicy}`)

/** section, what, records, identities, verdict */
const VECTORS: [
  section: string,
  what: string,
  records: Record<string, readonly string[]>,
  identities: string,
  verdict: Verdict,
][] = [
  ['5.3.4', 'no record', {}, 'from:a.example dkim:a.example', 'none'],
  ['4.4', 'nothing holds', zone({ 'a.example': P }), 'from:a.example', 'fail reject'],
  ['4.4', 'DKIM is enough', zone({ 'a.example': P }), 'from:a.example dkim:a.example', 'pass'],
  ['4.4', 'SPF is enough', zone({ 'a.example': P }), 'from:a.example spf:a.example', 'pass'],
  [
    '4.4',
    'both of somebody else',
    zone({ 'a.example': P }),
    'from:a.example spf:b.example dkim:c.example',
    'fail reject',
  ],
  [
    '4.4',
    'one of many signatures is enough',
    zone({ 'a.example': P }),
    'from:a.example dkim:b.example dkim:c.example dkim:a.example',
    'pass',
  ],
  ['4.4.1', 'relaxed: a name below signs', zone({ 'a.example': P }), 'from:a.example dkim:mail.a.example', 'pass'],
  ['4.4.1', 'relaxed: a name above signs', zone({ 'a.example': P }), 'from:mail.a.example dkim:a.example', 'pass'],
  ['4.4.1', 'relaxed: a name beside signs', zone({ 'a.example': P }), 'from:one.a.example dkim:two.a.example', 'pass'],
  ['4.4.1', 'adkim=r is relaxed', zone({ 'a.example': `${P}; adkim=r` }), 'from:a.example dkim:mail.a.example', 'pass'],
  [
    '4.4.1',
    'adkim=s: a name below does not count',
    zone({ 'a.example': `${P}; adkim=s` }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  [
    '4.4.1',
    'adkim=s: the name itself does',
    zone({ 'a.example': `${P}; adkim=s` }),
    'from:a.example dkim:a.example',
    'pass',
  ],
  [
    '4.4.1',
    'adkim=s: SPF stays relaxed',
    zone({ 'a.example': `${P}; adkim=s` }),
    'from:a.example spf:mail.a.example',
    'pass',
  ],
  [
    '4.4.2',
    'aspf=s: a name below does not count',
    zone({ 'a.example': `${P}; aspf=s` }),
    'from:a.example spf:mail.a.example',
    'fail reject',
  ],
  [
    '4.4.2',
    'aspf=s: the name itself does',
    zone({ 'a.example': `${P}; aspf=s` }),
    'from:a.example spf:a.example',
    'pass',
  ],
  [
    '4.4.2',
    'aspf=s: DKIM stays relaxed',
    zone({ 'a.example': `${P}; aspf=s` }),
    'from:a.example dkim:mail.a.example',
    'pass',
  ],
  ['4.4.2', 'relaxed SPF', zone({ 'a.example': P }), 'from:a.example spf:bounce.a.example', 'pass'],
  [
    '4.7',
    'adkim in capitals',
    zone({ 'a.example': `${P}; adkim=S` }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  ['4.7', 'p in capitals', zone({ 'a.example': 'v=DMARC1; p=QUARANTINE' }), 'from:a.example', 'fail quarantine'],
  ['4.7', 'p=none', zone({ 'a.example': 'v=DMARC1; p=none' }), 'from:a.example', 'fail none'],
  [
    '4.7',
    'blanks around equals signs and semicolons',
    zone({ 'a.example': 'v = DMARC1 ; p = quarantine ; adkim = s' }),
    'from:a.example dkim:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.7',
    'no blanks',
    zone({ 'a.example': 'v=DMARC1;p=reject;adkim=s' }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  ['4.7', 'a semicolon at the end', zone({ 'a.example': `${P};` }), 'from:a.example', 'fail reject'],
  ['4.7', 'v in small letters is no DMARC', zone({ 'a.example': 'v=dmarc1; p=reject' }), 'from:a.example', 'none'],
  ['4.7', 'v is not the first tag', zone({ 'a.example': 'p=reject; v=DMARC1' }), 'from:a.example', 'none'],
  ['4.7', 'another version', zone({ 'a.example': 'v=DMARC2; p=reject' }), 'from:a.example', 'none'],
  ['4.7', 'a version that only begins like it', zone({ 'a.example': 'v=DMARC10; p=reject' }), 'from:a.example', 'none'],
  ['4.7', 'unknown tags', zone({ 'a.example': `${P}; zz=1` }), 'from:a.example', 'fail reject'],
  ['4.7', 'pct is history', zone({ 'a.example': `${P}; pct=0` }), 'from:a.example', 'fail reject'],
  ['6376 3.2', 'a tag twice makes it no record', zone({ 'a.example': `${P}; p=none` }), 'from:a.example', 'none'],
  [
    '4.10',
    'other texts beside it',
    zone({ 'a.example': ['v=spf1 -all', P, 'hello'] }),
    'from:a.example',
    'fail reject',
  ],
  ['4.10', 'two records are none', zone({ 'a.example': [P, 'v=DMARC1; p=none'] }), 'from:a.example', 'none'],
  [
    '4.10',
    'two records are none, and the walk goes on',
    zone({ 'mail.a.example': [P, P], 'a.example': 'v=DMARC1; p=quarantine' }),
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'no p, but reports are asked for: none',
    zone({ 'a.example': 'v=DMARC1; rua=mailto:r@a.example' }),
    'from:a.example',
    'fail none',
  ],
  ['4.10.1', 'no p and no reports: no DMARC', zone({ 'a.example': 'v=DMARC1' }), 'from:a.example', 'none'],
  [
    '4.10.1',
    'a p that nobody knows, with reports',
    zone({ 'a.example': 'v=DMARC1; p=maybe; rua=mailto:r@a.example' }),
    'from:a.example',
    'fail none',
  ],
  ['4.10.1', 'a p that nobody knows, without', zone({ 'a.example': 'v=DMARC1; p=maybe' }), 'from:a.example', 'none'],
  [
    '4.10.1',
    'sp holds below',
    zone({ 'a.example': `${P}; sp=none`, 'mail.a.example': [] }),
    'from:mail.a.example',
    'fail none',
  ],
  [
    '4.10.1',
    'sp does not hold for the name itself',
    zone({ 'a.example': `${P}; sp=none` }),
    'from:a.example',
    'fail reject',
  ],
  ['4.10.1', 'without sp, p holds below', zone({ 'a.example': P }), 'from:mail.a.example', 'fail reject'],
  [
    '4.10.1',
    'np holds for names that are not there',
    zone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }),
    'from:mail.a.example',
    'fail reject',
  ],
  [
    '4.10.1',
    'np does not hold for names that are there',
    { ...zone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }), 'mail.a.example': ['A 192.0.2.1'] },
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'a name without an address is there',
    { ...zone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }), 'mail.a.example': ['TXT hello'] },
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'a record of its own goes before',
    zone({ 'mail.a.example': 'v=DMARC1; p=none', 'a.example': `${P}; sp=reject` }),
    'from:mail.a.example',
    'fail none',
  ],
  [
    '4.7 t',
    'a domain that tests: one step lower',
    zone({ 'a.example': `${P}; t=y` }),
    'from:a.example',
    'fail quarantine',
  ],
  [
    '4.7 t',
    'quarantine that is tested',
    zone({ 'a.example': 'v=DMARC1; p=quarantine; t=y' }),
    'from:a.example',
    'fail none',
  ],
  ['4.7 t', 't=n', zone({ 'a.example': `${P}; t=n` }), 'from:a.example', 'fail reject'],
  [
    '4.10.2',
    'psd=n ends the walk: the domain is its own organisation',
    zone({ 'a.example': P, 'dept.a.example': `${P}; psd=n` }),
    'from:dept.a.example dkim:a.example',
    'fail reject',
  ],
  [
    '4.10.2',
    'psd=n: below it all align',
    zone({ 'a.example': P, 'dept.a.example': `${P}; psd=n` }),
    'from:one.dept.a.example dkim:two.dept.a.example',
    'pass',
  ],
  [
    '4.10.2',
    'psd=y: the organisation is one label below',
    zone({ example: 'v=DMARC1; p=quarantine; psd=y', 'a.example': P }),
    'from:mail.a.example dkim:a.example',
    'pass',
  ],
  [
    '4.10.2',
    'psd=y: two organisations do not align',
    zone({ example: 'v=DMARC1; p=quarantine; psd=y' }),
    'from:a.example dkim:b.example',
    'fail quarantine',
  ],
  [
    '4.10.2',
    'psd=y: its policy holds where nobody below has one',
    zone({ example: 'v=DMARC1; p=quarantine; sp=reject; psd=y', 'a.example': [] }),
    'from:a.example',
    'fail reject',
  ],
  [
    '4.10.2',
    'without psd the shortest name with a record is the organisation',
    zone({ 'a.example': P, 'x.a.example': P }),
    'from:x.a.example dkim:y.a.example',
    'pass',
  ],
  [
    '4.10.2',
    'no record above: each name is its own organisation',
    zone({ 'x.a.example': P }),
    'from:x.a.example dkim:y.a.example',
    'fail reject',
  ],
  [
    '4.10',
    'names of more than eight labels jump to seven',
    zone({ '3.4.5.6.7.a.example': P }),
    'from:0.1.2.3.4.5.6.7.a.example',
    'fail reject',
  ],
  [
    '4.10',
    'what lies between is not asked',
    zone({ '2.3.4.5.6.7.a.example': P }),
    'from:0.1.2.3.4.5.6.7.a.example',
    'none',
  ],
  ['5.3.1', 'no author', zone({ 'a.example': P }), 'dkim:a.example', 'none'],
  [
    '5.3.1',
    'two authors of one domain',
    zone({ 'a.example': P }),
    'from:a.example from:b@a.example dkim:a.example',
    'pass',
  ],
  [
    '5.3.1',
    'authors of two domains',
    zone({ 'a.example': P }),
    'from:a.example from:b.example dkim:a.example',
    'permerror',
  ],
  ['5.3.1', 'capitals', zone({ 'a.example': P }), 'from:A.Example dkim:a.EXAMPLE', 'pass'],
  [
    '5.3.1',
    'letters beyond ASCII',
    zone({ 'xn--mnchen-3ya.example': P }),
    'from:münchen.example dkim:xn--mnchen-3ya.example',
    'pass',
  ],
  ['5.3.1', 'an address literal', zone({ 'a.example': P }), 'from:ada@[192.0.2.1]', 'none'],
  ['5.3.1', 'a name that only ends like it', zone({ 'a.example': P }), 'from:a.example dkim:xa.example', 'fail reject'],
  ['5.3.2', 'the DNS cannot tell of the record', zone({ 'a.example': 'TIMEOUT' }), 'from:a.example', 'temperror'],
  ['5.3.2', 'nor of one above', zone({ 'a.example': 'TIMEOUT' }), 'from:mail.a.example', 'temperror'],
  ['5.4', 'SPF may align yet', zone({ 'a.example': P }), 'from:a.example spf?a.example', 'temperror'],
  ['5.4', 'SPF is of somebody else', zone({ 'a.example': P }), 'from:a.example spf?b.example', 'fail reject'],
  ['5.4', 'a signature may align yet', zone({ 'a.example': P }), 'from:a.example dkim?a.example', 'temperror'],
  ['5.4', 'a signature of somebody else', zone({ 'a.example': P }), 'from:a.example dkim?b.example', 'fail reject'],
  [
    '5.4',
    'adkim=s: it cannot align',
    zone({ 'a.example': `${P}; adkim=s` }),
    'from:a.example dkim?mail.a.example',
    'fail reject',
  ],
  ['5.4', 'another one holds', zone({ 'a.example': P }), 'from:a.example spf?a.example dkim:a.example', 'pass'],
]

for (const [section, what, records, identities, verdict] of VECTORS) {
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
  t.equal(told(await checkDmarc(input, lookUpIn(zone({ 'a.example': P })).lookUp)), 'permerror')
})

t.test('dmarc: there are at least 60 vectors', async (t) => {
  t.ok(VECTORS.length >= 60, String(VECTORS.length))
})
