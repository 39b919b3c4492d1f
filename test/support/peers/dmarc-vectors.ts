/**
 * dmarc-vectors - DMARC from the text of RFC 9989: records, named domains, and the verdict, each with its section
 *
 * A section that begins with a number of four digits is one of that RFC.
 */
import type { DmarcInput, DmarcReport } from '../../../src/mail/authenticate/dmarc.ts'
import type { Records } from './records.ts'

/** A record as most have it. */
export const REJECT = 'v=DMARC1; p=reject'

/** Records by the name that they are about. */
export const dmarcZone = (records: Readonly<Record<string, string | readonly string[]>>): Records =>
  Object.fromEntries(
    Object.entries(records).map(([name, texts]) => [
      `_dmarc.${name}`,
      [texts].flat().map((text) => (text === 'TIMEOUT' ? text : `TXT ${text}`)),
    ]),
  )

/** The named results: `spf:` and `dkim:` pass, `spf?` and `dkim?` are a DNS failure, `from:` is an author. */
export function inputOf(words: string): DmarcInput {
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

export type DmarcVector = [section: string, what: string, records: Records, identities: string, verdict: DmarcVerdict]

/** The verdict, and the policy if it failed. */
type DmarcVerdict = 'pass' | 'none' | 'temperror' | 'permerror' | 'fail none' | 'fail quarantine' | 'fail reject'
/** A report in the form of the vectors. */
export const told = ({ dmarc, dmarcPolicy }: DmarcReport): string =>
  dmarcPolicy === null ? dmarc : `${dmarc} ${dmarcPolicy}`

/** section, what, records, identities, verdict */
export const DMARC_VECTORS: readonly DmarcVector[] = [
  ['5.3.4', 'no record', {}, 'from:a.example dkim:a.example', 'none'],
  ['4.4', 'nothing holds', dmarcZone({ 'a.example': REJECT }), 'from:a.example', 'fail reject'],
  ['4.4', 'DKIM is enough', dmarcZone({ 'a.example': REJECT }), 'from:a.example dkim:a.example', 'pass'],
  ['4.4', 'SPF is enough', dmarcZone({ 'a.example': REJECT }), 'from:a.example spf:a.example', 'pass'],
  [
    '4.4',
    'both of somebody else',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example spf:b.example dkim:c.example',
    'fail reject',
  ],
  [
    '4.4',
    'one of many signatures is enough',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example dkim:b.example dkim:c.example dkim:a.example',
    'pass',
  ],
  [
    '4.4.1',
    'relaxed: a name below signs',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example dkim:mail.a.example',
    'pass',
  ],
  [
    '4.4.1',
    'relaxed: a name above signs',
    dmarcZone({ 'a.example': REJECT }),
    'from:mail.a.example dkim:a.example',
    'pass',
  ],
  [
    '4.4.1',
    'relaxed: a name beside signs',
    dmarcZone({ 'a.example': REJECT }),
    'from:one.a.example dkim:two.a.example',
    'pass',
  ],
  [
    '4.4.1',
    'adkim=r is relaxed',
    dmarcZone({ 'a.example': `${REJECT}; adkim=r` }),
    'from:a.example dkim:mail.a.example',
    'pass',
  ],
  [
    '4.4.1',
    'adkim=s: a name below does not count',
    dmarcZone({ 'a.example': `${REJECT}; adkim=s` }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  [
    '4.4.1',
    'adkim=s: the name itself does',
    dmarcZone({ 'a.example': `${REJECT}; adkim=s` }),
    'from:a.example dkim:a.example',
    'pass',
  ],
  [
    '4.4.1',
    'adkim=s: SPF stays relaxed',
    dmarcZone({ 'a.example': `${REJECT}; adkim=s` }),
    'from:a.example spf:mail.a.example',
    'pass',
  ],
  [
    '4.4.2',
    'aspf=s: a name below does not count',
    dmarcZone({ 'a.example': `${REJECT}; aspf=s` }),
    'from:a.example spf:mail.a.example',
    'fail reject',
  ],
  [
    '4.4.2',
    'aspf=s: the name itself does',
    dmarcZone({ 'a.example': `${REJECT}; aspf=s` }),
    'from:a.example spf:a.example',
    'pass',
  ],
  [
    '4.4.2',
    'aspf=s: DKIM stays relaxed',
    dmarcZone({ 'a.example': `${REJECT}; aspf=s` }),
    'from:a.example dkim:mail.a.example',
    'pass',
  ],
  ['4.4.2', 'relaxed SPF', dmarcZone({ 'a.example': REJECT }), 'from:a.example spf:bounce.a.example', 'pass'],
  [
    '4.7',
    'adkim in capitals',
    dmarcZone({ 'a.example': `${REJECT}; adkim=S` }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  ['4.7', 'p in capitals', dmarcZone({ 'a.example': 'v=DMARC1; p=QUARANTINE' }), 'from:a.example', 'fail quarantine'],
  ['4.7', 'p=none', dmarcZone({ 'a.example': 'v=DMARC1; p=none' }), 'from:a.example', 'fail none'],
  [
    '4.7',
    'blanks around equals signs and semicolons',
    dmarcZone({ 'a.example': 'v = DMARC1 ; p = quarantine ; adkim = s' }),
    'from:a.example dkim:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.7',
    'no blanks',
    dmarcZone({ 'a.example': 'v=DMARC1;p=reject;adkim=s' }),
    'from:a.example dkim:mail.a.example',
    'fail reject',
  ],
  ['4.7', 'a semicolon at the end', dmarcZone({ 'a.example': `${REJECT};` }), 'from:a.example', 'fail reject'],
  ['4.7', 'v in small letters is no DMARC', dmarcZone({ 'a.example': 'v=dmarc1; p=reject' }), 'from:a.example', 'none'],
  ['4.7', 'v is not the first tag', dmarcZone({ 'a.example': 'p=reject; v=DMARC1' }), 'from:a.example', 'none'],
  ['4.7', 'another version', dmarcZone({ 'a.example': 'v=DMARC2; p=reject' }), 'from:a.example', 'none'],
  [
    '4.7',
    'a version that only begins like it',
    dmarcZone({ 'a.example': 'v=DMARC10; p=reject' }),
    'from:a.example',
    'none',
  ],
  ['4.7', 'unknown tags', dmarcZone({ 'a.example': `${REJECT}; zz=1` }), 'from:a.example', 'fail reject'],
  ['4.7', 'pct is history', dmarcZone({ 'a.example': `${REJECT}; pct=0` }), 'from:a.example', 'fail reject'],
  [
    '6376 3.2',
    'a tag twice makes it no record',
    dmarcZone({ 'a.example': `${REJECT}; p=none` }),
    'from:a.example',
    'none',
  ],
  [
    '4.10',
    'other texts beside it',
    dmarcZone({ 'a.example': ['v=spf1 -all', REJECT, 'hello'] }),
    'from:a.example',
    'fail reject',
  ],
  ['4.10', 'two records are none', dmarcZone({ 'a.example': [REJECT, 'v=DMARC1; p=none'] }), 'from:a.example', 'none'],
  [
    '4.10',
    'two records are none, and the walk goes on',
    dmarcZone({ 'mail.a.example': [REJECT, REJECT], 'a.example': 'v=DMARC1; p=quarantine' }),
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'no p, but reports are asked for: none',
    dmarcZone({ 'a.example': 'v=DMARC1; rua=mailto:r@a.example' }),
    'from:a.example',
    'fail none',
  ],
  ['4.10.1', 'no p and no reports: no DMARC', dmarcZone({ 'a.example': 'v=DMARC1' }), 'from:a.example', 'none'],
  [
    '4.10.1',
    'a p that nobody knows, with reports',
    dmarcZone({ 'a.example': 'v=DMARC1; p=maybe; rua=mailto:r@a.example' }),
    'from:a.example',
    'fail none',
  ],
  [
    '4.10.1',
    'a p that nobody knows, without',
    dmarcZone({ 'a.example': 'v=DMARC1; p=maybe' }),
    'from:a.example',
    'none',
  ],
  [
    '4.10.1',
    'sp holds below',
    dmarcZone({ 'a.example': `${REJECT}; sp=none`, 'mail.a.example': [] }),
    'from:mail.a.example',
    'fail none',
  ],
  [
    '4.10.1',
    'sp does not hold for the name itself',
    dmarcZone({ 'a.example': `${REJECT}; sp=none` }),
    'from:a.example',
    'fail reject',
  ],
  ['4.10.1', 'without sp, p holds below', dmarcZone({ 'a.example': REJECT }), 'from:mail.a.example', 'fail reject'],
  [
    '4.10.1',
    'np holds for names that are not there',
    dmarcZone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }),
    'from:mail.a.example',
    'fail reject',
  ],
  [
    '4.10.1',
    'np does not hold for names that are there',
    { ...dmarcZone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }), 'mail.a.example': ['A 192.0.2.1'] },
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'a name without an address is there',
    { ...dmarcZone({ 'a.example': 'v=DMARC1; p=none; sp=quarantine; np=reject' }), 'mail.a.example': ['TXT hello'] },
    'from:mail.a.example',
    'fail quarantine',
  ],
  [
    '4.10.1',
    'a record of its own goes before',
    dmarcZone({ 'mail.a.example': 'v=DMARC1; p=none', 'a.example': `${REJECT}; sp=reject` }),
    'from:mail.a.example',
    'fail none',
  ],
  [
    '4.7 t',
    'a domain that tests: one step lower',
    dmarcZone({ 'a.example': `${REJECT}; t=y` }),
    'from:a.example',
    'fail quarantine',
  ],
  [
    '4.7 t',
    'quarantine that is tested',
    dmarcZone({ 'a.example': 'v=DMARC1; p=quarantine; t=y' }),
    'from:a.example',
    'fail none',
  ],
  ['4.7 t', 't=n', dmarcZone({ 'a.example': `${REJECT}; t=n` }), 'from:a.example', 'fail reject'],
  [
    '4.10.2',
    'psd=n ends the walk: the domain is its own organisation',
    dmarcZone({ 'a.example': REJECT, 'dept.a.example': `${REJECT}; psd=n` }),
    'from:dept.a.example dkim:a.example',
    'fail reject',
  ],
  [
    '4.10.2',
    'psd=n: below it all align',
    dmarcZone({ 'a.example': REJECT, 'dept.a.example': `${REJECT}; psd=n` }),
    'from:one.dept.a.example dkim:two.dept.a.example',
    'pass',
  ],
  [
    '4.10.2',
    'psd=y: the organisation is one label below',
    dmarcZone({ example: 'v=DMARC1; p=quarantine; psd=y', 'a.example': REJECT }),
    'from:mail.a.example dkim:a.example',
    'pass',
  ],
  [
    '4.10.2',
    'psd=y: two organisations do not align',
    dmarcZone({ example: 'v=DMARC1; p=quarantine; psd=y' }),
    'from:a.example dkim:b.example',
    'fail quarantine',
  ],
  [
    '4.10.2',
    'psd=y: its policy holds where nobody below has one',
    dmarcZone({ example: 'v=DMARC1; p=quarantine; sp=reject; psd=y', 'a.example': [] }),
    'from:a.example',
    'fail reject',
  ],
  [
    '4.10.2',
    'without psd the shortest name with a record is the organisation',
    dmarcZone({ 'a.example': REJECT, 'x.a.example': REJECT }),
    'from:x.a.example dkim:y.a.example',
    'pass',
  ],
  [
    '4.10.2',
    'no record above: each name is its own organisation',
    dmarcZone({ 'x.a.example': REJECT }),
    'from:x.a.example dkim:y.a.example',
    'fail reject',
  ],
  [
    '4.10',
    'names of more than eight labels jump to seven',
    dmarcZone({ '3.4.5.6.7.a.example': REJECT }),
    'from:0.1.2.3.4.5.6.7.a.example',
    'fail reject',
  ],
  [
    '4.10',
    'what lies between is not asked',
    dmarcZone({ '2.3.4.5.6.7.a.example': REJECT }),
    'from:0.1.2.3.4.5.6.7.a.example',
    'none',
  ],
  ['5.3.1', 'no author', dmarcZone({ 'a.example': REJECT }), 'dkim:a.example', 'none'],
  [
    '5.3.1',
    'two authors of one domain',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example from:b@a.example dkim:a.example',
    'pass',
  ],
  [
    '5.3.1',
    'authors of two domains',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example from:b.example dkim:a.example',
    'permerror',
  ],
  ['5.3.1', 'capitals', dmarcZone({ 'a.example': REJECT }), 'from:A.Example dkim:a.EXAMPLE', 'pass'],
  [
    '5.3.1',
    'letters beyond ASCII',
    dmarcZone({ 'xn--mnchen-3ya.example': REJECT }),
    'from:münchen.example dkim:xn--mnchen-3ya.example',
    'pass',
  ],
  ['5.3.1', 'an address literal', dmarcZone({ 'a.example': REJECT }), 'from:ada@[192.0.2.1]', 'none'],
  [
    '5.3.1',
    'a name that only ends like it',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example dkim:xa.example',
    'fail reject',
  ],
  ['5.3.2', 'the DNS cannot tell of the record', dmarcZone({ 'a.example': 'TIMEOUT' }), 'from:a.example', 'temperror'],
  ['5.3.2', 'nor of one above', dmarcZone({ 'a.example': 'TIMEOUT' }), 'from:mail.a.example', 'temperror'],
  ['5.4', 'SPF may align yet', dmarcZone({ 'a.example': REJECT }), 'from:a.example spf?a.example', 'temperror'],
  ['5.4', 'SPF is of somebody else', dmarcZone({ 'a.example': REJECT }), 'from:a.example spf?b.example', 'fail reject'],
  [
    '5.4',
    'a signature may align yet',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example dkim?a.example',
    'temperror',
  ],
  [
    '5.4',
    'a signature of somebody else',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example dkim?b.example',
    'fail reject',
  ],
  [
    '5.4',
    'adkim=s: it cannot align',
    dmarcZone({ 'a.example': `${REJECT}; adkim=s` }),
    'from:a.example dkim?mail.a.example',
    'fail reject',
  ],
  [
    '5.4',
    'another one holds',
    dmarcZone({ 'a.example': REJECT }),
    'from:a.example spf?a.example dkim:a.example',
    'pass',
  ],
]
