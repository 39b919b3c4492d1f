/** dkim-vectors - DKIM: vectors from the text of RFC 6376, RFC 8301 and RFC 8463, each with its section. */
import type { DkimVerdict } from '../../../schemas/inbound.ts'
import { type Draft, joinMail, type KeyName, publicKeyText, signField } from './sign-mail.ts'

export const DKIM_NOW_MS = Date.UTC(2026, 10, 22)
const NOW = DKIM_NOW_MS / 1000
export const MAIL: Draft = {
  fields: [
    'From: Ada <ada@a.example>',
    'To: b@b.example',
    'Subject: Greetings\r\n\tand more',
    'Date: Sun, 22 Nov 2026 10:00:00 +0000',
  ],
  body: 'Hello  there,\r\n\r\nall well. \r\n',
}
const TAGS = {
  v: '1',
  a: 'rsa-sha256',
  c: 'relaxed/relaxed',
  d: 'a.example',
  s: 's',
  h: 'from:to:subject',
  bh: '{bh}',
  b: '{b}',
}
const RECORD = `v=DKIM1; k=rsa; p=${publicKeyText('rsa')}`

export interface Vector {
  /** Tags that differ; null leaves one out. */
  readonly tags?: Readonly<Record<string, string | null>>
  /** The whole tag list in their place. */
  readonly list?: string
  /** The signing, if `c` does not describe it. */
  readonly canon?: string
  readonly key?: KeyName
  readonly length?: number
  /** The names that count, if `h` lists them differently. */
  readonly names?: readonly string[]
  /** Records of the key; null for no such name. */
  readonly record?: string | readonly string[] | null
  readonly mail?: Draft
  /** The change to the signed mail in transit. */
  readonly change?: (raw: string) => string
}

export const without = (tag: string): Vector => ({ tags: { [tag]: null } })
const withTag = (tag: string, value: string): Vector => ({ tags: { [tag]: value } })
const listOf = (tags: Readonly<Record<string, string | null>>): string =>
  Object.entries(tags)
    .flatMap(([tag, value]) => (value === null ? [] : [`${tag}=${value}`]))
    .join('; ')

/** section, what, vector, verdict */
export const DKIM_VECTORS: [section: string, what: string, vector: Vector, verdict: DkimVerdict][] = [
  ['6376 3.5', 'every tag as it should be', {}, 'pass'],
  ['6376 3.4.1, 3.4.3', 'simple/simple', withTag('c', 'simple/simple'), 'pass'],
  ['6376 3.4.1, 3.4.4', 'simple/relaxed', withTag('c', 'simple/relaxed'), 'pass'],
  ['6376 3.4.2, 3.4.3', 'relaxed/simple', withTag('c', 'relaxed/simple'), 'pass'],
  ['6376 3.5 c', 'relaxed alone: the body is simple', { tags: { c: 'relaxed' }, canon: 'relaxed/simple' }, 'pass'],
  ['6376 3.5 c', 'absent: simple/simple', { tags: { c: null }, canon: 'simple/simple' }, 'pass'],
  ['6376 3.5 c', 'an algorithm that nobody knows', withTag('c', 'tidy/relaxed'), 'permerror'],
  ['6376 3.5 v', 'absent', without('v'), 'permerror'],
  ['6376 3.5 v', 'another version', withTag('v', '2'), 'permerror'],
  ['6376 3.5 a', 'absent', without('a'), 'permerror'],
  ['6376 3.5 a', 'unknown', withTag('a', 'rsa-sha999'), 'permerror'],
  ['8301 3.1', 'rsa-sha1 must not be used', withTag('a', 'rsa-sha1'), 'fail'],
  ['6376 3.5 b', 'absent', without('b'), 'permerror'],
  ['6376 3.5 bh', 'absent', without('bh'), 'permerror'],
  ['6376 3.5 d', 'absent', without('d'), 'permerror'],
  ['6376 3.5 h', 'absent', { tags: { h: null }, names: ['from'] }, 'permerror'],
  ['6376 3.5 s', 'absent', without('s'), 'permerror'],
  ['6376 3.5 h', 'empty', withTag('h', ''), 'permerror'],
  ['6376 5.4, 6.1.1', 'From is not signed', withTag('h', 'to:subject'), 'permerror'],
  ['6376 3.5 h', 'a field that is not there', withTag('h', 'from:x-none:subject'), 'pass'],
  [
    '6376 3.5 h',
    'blanks around the colons',
    { tags: { h: 'from : to :\r\n subject' }, names: ['from', 'to', 'subject'] },
    'pass',
  ],
  ['6376 3.5 h', 'names in capitals', withTag('h', 'FROM:To'), 'pass'],
  [
    '6376 5.4.2',
    'From is signed twice, and a second one added',
    { tags: { h: 'from:from' }, change: (raw) => `From: evil@a.example\r\n${raw}` },
    'fail',
  ],
  [
    '6376 5.4.2',
    'of two fields the last is signed, the first is not',
    { change: (raw) => `Subject: other\r\n${raw}` },
    'pass',
  ],
  ['6376 3.5 i', 'the domain itself', withTag('i', 'ada@a.example'), 'pass'],
  ['6376 3.5 i', 'a name below it', withTag('i', '@mail.a.example'), 'pass'],
  ['6376 3.5 i', 'a name beside it', withTag('i', '@b.example'), 'permerror'],
  ['6376 3.5 i', 'a name that only ends like it', withTag('i', '@xa.example'), 'permerror'],
  ['6376 2.11, 3.5 i', 'quoted-printable', withTag('i', 'a=3Db@a.example'), 'pass'],
  [
    '6376 3.6.1 t=s',
    'a name below is forbidden',
    { tags: { i: '@mail.a.example' }, record: `${RECORD}; t=s` },
    'permerror',
  ],
  ['6376 3.6.1 t=s', 'the domain itself is not', { tags: { i: '@a.example' }, record: `${RECORD}; t=s` }, 'pass'],
  ['6376 3.6.1 t=y', 'a domain that tests is judged like others', { record: `${RECORD}; t=y` }, 'pass'],
  ['6376 3.5 l', 'all of the body', { tags: { l: '27' }, length: 27 }, 'pass'],
  ['6376 3.5 l', 'more was added', { tags: { l: '27' }, length: 27, change: (raw) => `${raw}more\r\n` }, 'pass'],
  ['6376 3.5 l', 'nothing of the body', { tags: { l: '0' }, length: 0, change: (raw) => `${raw}more\r\n` }, 'pass'],
  ['6376 3.5 l', 'more than there is: the hash says it', { tags: { l: '99' }, length: 99 }, 'pass'],
  ['6376 3.5 l', 'no number', withTag('l', 'all'), 'permerror'],
  ['6376 3.5 q', 'dns/txt', withTag('q', 'dns/txt'), 'pass'],
  ['6376 3.5 q', 'only what nobody knows', withTag('q', 'carrier/pigeon'), 'permerror'],
  ['6376 3.5 q', 'one of two is known', withTag('q', 'carrier/pigeon:dns/txt'), 'pass'],
  ['6376 3.5 t', 'no number', withTag('t', 'now'), 'permerror'],
  ['6376 3.5 x', 'past', { tags: { t: String(NOW - 100), x: String(NOW - 1) } }, 'fail'],
  ['6376 3.5 x', 'to come', { tags: { t: String(NOW - 100), x: String(NOW + 1) } }, 'pass'],
  ['6376 3.5 x', 'before t', { tags: { t: String(NOW + 100), x: String(NOW + 50) } }, 'permerror'],
  ['6376 3.5 z', 'copied fields', withTag('z', 'From:ada@a.example|Subject:x=20y'), 'pass'],
  ['6376 3.2', 'a tag that nobody knows', withTag('zz', 'anything'), 'pass'],
  ['6376 3.2', 'a tag twice', { list: `${listOf(TAGS)}; d=a.example` }, 'permerror'],
  ['6376 3.2', 'names are case-sensitive', { list: listOf(TAGS).replace('d=', 'D=') }, 'permerror'],
  ['6376 3.2', 'a semicolon at the end', { list: `${listOf(TAGS)};` }, 'pass'],
  ['6376 3.2', 'two semicolons', { list: listOf(TAGS).replace('; d=', ';; d=') }, 'permerror'],
  ['6376 3.2', 'a tag without a value sign', { list: `${listOf(TAGS)}; nonsense` }, 'permerror'],
  ['6376 3.2', 'blanks around the equals sign', { list: listOf(TAGS).replace('d=', 'd = ') }, 'pass'],
  ['6376 3.7', 'the body was changed', { change: (raw) => raw.replace('all well', 'all ill') }, 'fail'],
  ['6376 3.7', 'a signed field was changed', { change: (raw) => raw.replace('Subject: G', 'Subject: g') }, 'fail'],
  ['6376 3.7', 'a field that is not signed was changed', { change: (raw) => raw.replace('10:00', '11:00') }, 'pass'],
  [
    '6376 3.4.2',
    'blanks of a signed field, relaxed',
    { change: (raw) => raw.replace('Subject: G', 'subject :  G') },
    'pass',
  ],
  [
    '6376 3.4.1',
    'blanks of a signed field, simple',
    { tags: { c: 'simple/relaxed' }, change: (raw) => raw.replace('Subject: G', 'Subject:  G') },
    'fail',
  ],
  [
    '6376 3.4.4',
    'blanks in the body, relaxed',
    { change: (raw) => raw.replace('Hello  there,', 'Hello \t there,  ') },
    'pass',
  ],
  [
    '6376 3.4.3',
    'blanks in the body, simple',
    { tags: { c: 'relaxed/simple' }, change: (raw) => raw.replace('there,', 'there, ') },
    'fail',
  ],
  [
    '6376 3.4.3',
    'empty lines at the end, simple',
    { tags: { c: 'relaxed/simple' }, change: (raw) => `${raw}\r\n\r\n` },
    'pass',
  ],
  ['6376 3.4.4', 'empty lines at the end, relaxed', { change: (raw) => `${raw}\r\n \r\n` }, 'pass'],
  ['6376 3.4.3', 'no body, simple', { tags: { c: 'simple/simple' }, mail: { ...MAIL, body: '' } }, 'pass'],
  ['6376 3.4.4', 'no body, relaxed', { mail: { ...MAIL, body: '' } }, 'pass'],
  [
    '5322 2.1',
    'no empty line either',
    { mail: { ...MAIL, body: '' }, change: (raw) => raw.replace(/\r\n\r\n$/, '\r\n') },
    'pass',
  ],
  ['6376 3.6.2.2', 'no such name', { record: null }, 'permerror'],
  ['6376 3.6.2.2', 'the name has no such record', { record: [] }, 'permerror'],
  ['6376 6.1.2', 'the DNS cannot tell', { record: ['TIMEOUT'] }, 'temperror'],
  ['6376 3.6.1 p', 'revoked', { record: 'v=DKIM1; p=' }, 'permerror'],
  ['6376 3.6.1 p', 'no base64', { record: 'v=DKIM1; p=***' }, 'permerror'],
  ['6376 3.6.1 p', 'blanks in it', { record: RECORD.replace(/.{60}/g, '$& ') }, 'pass'],
  ['6376 3.6.1 v', 'absent', { record: RECORD.replace('v=DKIM1; ', '') }, 'pass'],
  ['6376 3.6.1 v', 'another version', { record: RECORD.replace('DKIM1', 'DKIM2') }, 'permerror'],
  ['6376 3.6.1 v', 'not the first tag', { record: `k=rsa; v=DKIM1; p=${publicKeyText('rsa')}` }, 'permerror'],
  ['6376 3.6.1 k', 'another kind of key', { record: RECORD.replace('k=rsa', 'k=ed25519') }, 'permerror'],
  ['6376 3.6.1 h', 'another hash', { record: `${RECORD}; h=sha1` }, 'permerror'],
  ['6376 3.6.1 h', 'this hash among others', { record: `${RECORD}; h=sha1:sha256` }, 'pass'],
  ['6376 3.6.1 s', 'not for mail', { record: `${RECORD}; s=tlsrpt` }, 'permerror'],
  ['6376 3.6.1 s', 'for mail', { record: `${RECORD}; s=tlsrpt:email` }, 'pass'],
  ['6376 3.6.1 s', 'for all', { record: `${RECORD}; s=*` }, 'pass'],
  ['6376 3.6.1 n', 'notes and unknown tags', { record: `${RECORD}; n=say "hi"; zz=1` }, 'pass'],
  ['6376 3.2, 3.6.1', 'a tag of the record twice', { record: `${RECORD}; k=rsa` }, 'permerror'],
  ['8301 3.2', 'a key of 768 bits', { key: 'short', record: `v=DKIM1; p=${publicKeyText('short')}` }, 'fail'],
  [
    '8463 3',
    'Ed25519',
    { tags: { a: 'ed25519-sha256' }, key: 'ed25519', record: `v=DKIM1; k=ed25519; p=${publicKeyText('ed25519')}` },
    'pass',
  ],
  [
    '8463 3',
    'Ed25519, changed',
    {
      tags: { a: 'ed25519-sha256' },
      key: 'ed25519',
      record: `v=DKIM1; k=ed25519; p=${publicKeyText('ed25519')}`,
      change: (raw) => raw.replace('well', 'ill'),
    },
    'fail',
  ],
  [
    '6376 6.1.2',
    'the key of somebody else',
    { record: `v=DKIM1; k=rsa; p=${publicKeyText('short')}`, key: 'rsa' },
    'fail',
  ],
]

/** The signed mail of a vector. */
export function signedMail({
  tags = {},
  list,
  canon,
  key = 'rsa',
  length,
  names,
  mail = MAIL,
  change = (raw) => raw,
}: Vector): Buffer {
  const all: Record<string, string | null> = {
    ...TAGS,
    ...tags,
    bh: 'bh' in tags ? (tags.bh ?? null) : TAGS.bh,
    b: 'b' in tags ? (tags.b ?? null) : TAGS.b,
  }
  const field = signField(mail, {
    field: `DKIM-Signature: ${list ?? listOf(all)}`,
    names: names ?? (all.h ?? '').split(':'),
    canon: canon ?? all.c ?? 'simple/simple',
    key,
    ...(length === undefined ? {} : { length }),
  })
  return Buffer.from(change(joinMail({ ...mail, fields: [field, ...mail.fields] }).toString('latin1')), 'latin1')
}

/** The records of its key. */
export const keyZone = (record: Vector['record'] = RECORD): Record<string, readonly string[]> =>
  record === null ? {} : { 's._domainkey.a.example': typeof record === 'string' ? [`TXT ${record}`] : record }
