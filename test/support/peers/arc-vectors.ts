/**
 * arc-vectors - ARC: vectors from the text of RFC 8617 and, for tag lists and keys, of RFC 6376, each with its section.
 */
import type { ArcVerdict } from '../../../schemas/inbound.ts'
import { canonicalField, joinMail, type KeyName, publicKeyText, signField, signText } from './sign-mail.ts'

const BODY = 'Hello there,\r\n'
const FIELDS = ['From: Ada <ada@a.example>', 'Subject: Greetings']
const RECORD = `v=DKIM1; k=rsa; p=${publicKeyText('rsa')}`
export const ARC_ZONE = { 's._domainkey.list.example': [`TXT ${RECORD}`] }

/** One set of a chain: texts that differ from an honest one. Null leaves the field out. */
interface ArcSet {
  readonly aar?: ((field: string) => string) | null
  /** The message signature before it is signed. */
  readonly ams?: ((field: string) => string) | null
  /** The seal before it is signed. */
  readonly seal?: ((field: string) => string) | null
  readonly key?: KeyName
  readonly canon?: string
  /** Body when it passed here. */
  readonly body?: string
}

/** Seals a mail once for each set (RFC 8617 5.1). Answers its fields, the newest set first. */
function chain(sets: readonly ArcSet[]): string[] {
  let fields = [...FIELDS]
  const sealed: string[] = []
  for (const [at, set] of sets.entries()) {
    const i = at + 1
    const algorithm = set.key === 'ed25519' ? 'ed25519-sha256' : 'rsa-sha256'
    const same = (field: string): string => field
    const aar =
      set.aar === null ? [] : [(set.aar ?? same)(`ARC-Authentication-Results: i=${i}; list.example; spf=pass`)]
    const unsigned = `ARC-Message-Signature: i=${i}; a=${algorithm}; c=${set.canon ?? 'relaxed/relaxed'}; d=list.example; s=s; h=from:subject; bh={bh}; b={b}`
    const signing = { names: ['from', 'subject'], canon: set.canon ?? 'relaxed/relaxed', key: set.key ?? 'rsa' }
    const ams =
      set.ams === null
        ? []
        : [signField({ fields, body: set.body ?? BODY }, { ...signing, field: (set.ams ?? same)(unsigned) })]
    sealed.push(...aar, ...ams)
    const draft = (set.seal ?? same)(
      `ARC-Seal: i=${i}; a=${algorithm}; t=1700000000; cv=${i === 1 ? 'none' : 'pass'}; d=list.example; s=s; b={b}`,
    )
    const own = canonicalField(draft.replace('{b}', ''), 'relaxed')
    const text = [...sealed.map((field) => `${canonicalField(field, 'relaxed')}\r\n`), own].join('')
    const seal = set.seal === null ? [] : [draft.replace('{b}', signText(text, set.key ?? 'rsa'))]
    sealed.push(...seal)
    fields = [...seal, ...ams, ...aar, ...fields]
  }
  return fields
}

const honest = (count: number): ArcSet[] => Array.from({ length: count }, () => ({}))
const first = (set: ArcSet): ArcSet[] => [set]
const second = (set: ArcSet): ArcSet[] => [{}, set]
const swap =
  (from: string | RegExp, to: string) =>
  (field: string): string =>
    field.replace(from, to)
const raw = (fields: readonly string[], body = BODY): Buffer => joinMail({ fields, body })
const again = (name: string, fields: readonly string[]): string[] =>
  fields.flatMap((field) => (field.startsWith(`${name}:`) ? [field, field] : [field]))

/** section, subject, mail, verdict, records if they differ */
export const ARC_VECTORS: [
  section: string,
  what: string,
  mail: Buffer,
  verdict: ArcVerdict,
  records?: Record<string, string[]>,
][] = [
  ['5.2 1', 'no chain', raw(FIELDS), 'none'],
  ['5.2', 'one set', raw(chain(honest(1))), 'pass'],
  ['5.2', 'two sets', raw(chain(honest(2))), 'pass'],
  ['5.2', 'five sets', raw(chain(honest(5))), 'pass'],
  ['4.2.1', '50 sets', raw(chain(honest(50))), 'pass'],
  ['4.2.1', '51 sets', raw(chain(honest(51))), 'fail'],
  ['4.1.2', 'simple/simple', raw(chain(first({ canon: 'simple/simple' }))), 'pass'],
  [
    '8463 3',
    'Ed25519',
    raw(chain(first({ key: 'ed25519' }))),
    'pass',
    { 's._domainkey.list.example': [`TXT v=DKIM1; k=ed25519; p=${publicKeyText('ed25519')}`] },
  ],
  ['5.2 3.A', 'no results', raw(chain(first({ aar: null }))), 'fail'],
  ['5.2 3.A', 'no message signature', raw(chain(first({ ams: null }))), 'fail'],
  ['5.2 3.A', 'no seal', raw(chain(first({ seal: null }))), 'fail'],
  ['5.2 3.A', 'no seal in the first of two', raw(chain([{ seal: null }, {}])), 'fail'],
  ['5.2 3.A', 'results twice', raw(again('ARC-Authentication-Results', chain(honest(1)))), 'fail'],
  ['5.2 3.A', 'message signature twice', raw(again('ARC-Message-Signature', chain(honest(1)))), 'fail'],
  ['5.2 3.A', 'seal twice', raw(again('ARC-Seal', chain(honest(1)))), 'fail'],
  ['5.2 3.B', 'a gap', raw(chain(honest(3)).filter((field) => !field.includes('i=2;'))), 'fail'],
  ['5.2 3.B', 'the first is missing', raw(chain(honest(2)).filter((field) => !field.includes('i=1;'))), 'fail'],
  ['4.2.1', 'i=0 in the seal', raw(chain(first({ seal: swap('i=1', 'i=0') }))), 'fail'],
  ['4.2.1', 'i=51 in the seal', raw(chain(first({ seal: swap('i=1', 'i=51') }))), 'fail'],
  ['4.1.3', 'no i in the seal', raw(chain(first({ seal: swap('i=1; ', '') }))), 'fail'],
  ['4.1.2', 'no i in the message signature', raw(chain(first({ ams: swap('i=1; ', '') }))), 'fail'],
  ['4.1.1', 'no i in the results', raw(chain(first({ aar: swap('i=1; ', '') }))), 'fail'],
  ['4.2.1', 'i that is no number, seal', raw(chain(first({ seal: swap('i=1', 'i=one') }))), 'fail'],
  ['4.2.1', 'i that is no number, message signature', raw(chain(first({ ams: swap('i=1', 'i=1x') }))), 'fail'],
  ['4.2.1', 'i that is no number, results', raw(chain(first({ aar: swap('i=1', 'i=a') }))), 'fail'],
  [
    '4.1.1',
    'i is not the first in the results',
    raw(chain(first({ aar: swap('i=1; list.example;', 'list.example; i=1;') }))),
    'fail',
  ],
  ['5.2 3.C', 'cv=pass in the first seal', raw(chain(first({ seal: swap('cv=none', 'cv=pass') }))), 'fail'],
  ['5.2 2', 'cv=fail in the first seal', raw(chain(first({ seal: swap('cv=none', 'cv=fail') }))), 'fail'],
  ['5.2 3.C', 'cv=none in the second seal', raw(chain(second({ seal: swap('cv=pass', 'cv=none') }))), 'fail'],
  ['5.2 2', 'cv=fail in the second seal', raw(chain(second({ seal: swap('cv=pass', 'cv=fail') }))), 'fail'],
  ['5.2 2', 'cv=fail in the middle', raw(chain([{}, { seal: swap('cv=pass', 'cv=fail') }, {}])), 'fail'],
  ['4.1.3', 'no cv', raw(chain(first({ seal: swap('cv=none; ', '') }))), 'fail'],
  ['4.1.3', 'a cv that nobody knows', raw(chain(first({ seal: swap('cv=none', 'cv=maybe') }))), 'fail'],
  ['4.1.3', 'cv in capitals', raw(chain(first({ seal: swap('cv=none', 'cv=NONE') }))), 'pass'],
  ['6376 3.2', 'seal: a tag twice', raw(chain(first({ seal: swap('; b=', '; d=list.example; b=') }))), 'fail'],
  ['6376 3.2', 'seal: two semicolons', raw(chain(first({ seal: swap('; b=', ';; b=') }))), 'fail'],
  ['6376 3.2', 'seal: a name in capitals', raw(chain(first({ seal: swap('d=', 'D=') }))), 'fail'],
  ['6376 3.2', 'seal: a semicolon at the end', raw(chain(first({ seal: swap('{b}', '{b};') }))), 'pass'],
  ['6376 3.2', 'seal: a tag that nobody knows', raw(chain(first({ seal: swap('; b=', '; zz=1; b=') }))), 'pass'],
  ['6376 3.2', 'seal: blanks around the equals sign', raw(chain(first({ seal: swap('d=', 'd = ') }))), 'pass'],
  ['6376 3.2', 'seal: folded', raw(chain(first({ seal: swap('; d=', ';\r\n d=') }))), 'pass'],
  ['4.1.3', 'seal: h is forbidden', raw(chain(first({ seal: swap('; b=', '; h=from; b=') }))), 'fail'],
  ['4.1.3', 'seal: no a', raw(chain(first({ seal: swap('a=rsa-sha256; ', '') }))), 'fail'],
  ['4.1.3', 'seal: no b', raw(chain(first({ seal: swap('; b={b}', '') }))), 'fail'],
  ['4.1.3', 'seal: no d', raw(chain(first({ seal: swap('d=list.example; ', '') }))), 'fail'],
  ['4.1.3', 'seal: no s', raw(chain(first({ seal: swap('s=s; ', '') }))), 'fail'],
  ['4.1.3', 'seal: no t', raw(chain(first({ seal: swap('t=1700000000; ', '') }))), 'pass'],
  ['4.1.3', 'seal: t that is no number', raw(chain(first({ seal: swap('t=1700000000', 't=now') }))), 'fail'],
  ['4.1.3', 'seal: rsa-sha1', raw(chain(first({ seal: swap('rsa-sha256', 'rsa-sha1') }))), 'fail'],
  [
    '6376 3.2',
    'message signature: a tag twice',
    raw(chain(first({ ams: swap('; bh=', '; d=list.example; bh=') }))),
    'fail',
  ],
  ['6376 3.2', 'message signature: two semicolons', raw(chain(first({ ams: swap('; bh=', ';; bh=') }))), 'fail'],
  ['6376 3.2', 'message signature: a name in capitals', raw(chain(first({ ams: swap('s=s', 'S=s') }))), 'fail'],
  ['6376 3.2', 'message signature: a semicolon at the end', raw(chain(first({ ams: swap('{b}', '{b};') }))), 'pass'],
  ...['a=rsa-sha256', 'd=list.example', 's=s', 'h=from:subject', 'bh={bh}'].map((tag): (typeof ARC_VECTORS)[number] => [
    '4.1.2',
    `message signature: no ${tag.split('=')[0]}`,
    raw(chain(first({ ams: swap(`${tag}; `, '') }))),
    'fail',
  ]),
  ['4.1.2', 'message signature: no b', raw(chain(first({ ams: swap('; b={b}', '') }))), 'fail'],
  [
    '4.1.2',
    'message signature: a seal is signed',
    raw(chain(first({ ams: swap('h=from:subject', 'h=from:subject:arc-seal') }))),
    'fail',
  ],
  ['4.1.2', 'message signature: rsa-sha1', raw(chain(first({ ams: swap('rsa-sha256', 'rsa-sha1') }))), 'fail'],
  [
    '4.1.2',
    'message signature: c that nobody knows',
    raw(chain(first({ ams: swap('c=relaxed/relaxed', 'c=tidy/relaxed') }))),
    'fail',
  ],
  [
    '4.1.2',
    'message signature: no c is simple/simple',
    raw(chain(first({ canon: 'simple/simple', ams: swap('c=simple/simple; ', '') }))),
    'pass',
  ],
  ['5.2 4', 'the body was changed', raw(chain(honest(1)), 'Other\r\n'), 'fail'],
  ['5.2 4', 'a signed field was changed', raw(chain(honest(1)).map(swap('Greetings', 'Other'))), 'fail'],
  [
    '5.2 4',
    'the newest message signature counts: the body was changed before it',
    raw(chain([{ body: 'Before\r\n' }, {}])),
    'pass',
  ],
  ['5.2 4', 'the body was changed after the newest', raw(chain([{}, { body: 'Before\r\n' }])), 'fail'],
  [
    '5.2 6',
    'the first seal was changed',
    raw(chain(honest(2)).map((field) => (field.startsWith('ARC-Seal: i=1') ? field.replace('t=17', 't=18') : field))),
    'fail',
  ],
  ['5.2 6', 'the results were changed', raw(chain(honest(1)).map(swap('spf=pass', 'spf=fail'))), 'fail'],
  [
    '5.2 6',
    'the results of the first of two were changed',
    raw(
      chain(honest(2)).map((field) => (field.includes('Results: i=1') ? field.replace('spf=pass', 'spf=fail') : field)),
    ),
    'fail',
  ],
  ['5.1.1', 'sets in another order', raw([...chain(honest(2))].reverse()), 'pass'],
  ['6376 3.6.2.2', 'no key', raw(chain(honest(1))), 'fail', {}],
  [
    '6376 6.1.2',
    'the DNS cannot tell',
    raw(chain(honest(1))),
    'unchecked',
    { 's._domainkey.list.example': ['TIMEOUT'] },
  ],
  [
    '6376 6.1.2',
    'the DNS cannot tell of the first seal',
    raw(chain([{ seal: swap('s=s', 's=old') }, {}])),
    'unchecked',
    { ...ARC_ZONE, 'old._domainkey.list.example': ['TIMEOUT'] },
  ],
  [
    '6376 6.1.2',
    'nor of the message signature',
    raw(chain(first({ ams: swap('s=s', 's=old') }))),
    'unchecked',
    { ...ARC_ZONE, 'old._domainkey.list.example': ['TIMEOUT'] },
  ],
  [
    '6376 3.6.1',
    'the key is revoked',
    raw(chain(honest(1))),
    'fail',
    { 's._domainkey.list.example': ['TXT v=DKIM1; p='] },
  ],
  [
    '6376 3.6.1',
    'the key is for another hash',
    raw(chain(honest(1))),
    'fail',
    { 's._domainkey.list.example': [`TXT ${RECORD}; h=sha1`] },
  ],
  [
    '6376 3.6.1',
    'the key is not for mail',
    raw(chain(honest(1))),
    'fail',
    { 's._domainkey.list.example': [`TXT ${RECORD}; s=other`] },
  ],
  [
    '8301 3.2',
    'the key has 768 bits',
    raw(chain(first({ key: 'short' }))),
    'fail',
    { 's._domainkey.list.example': [`TXT v=DKIM1; p=${publicKeyText('short')}`] },
  ],
]
