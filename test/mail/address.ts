/** Tests of src/mail/address.ts. */

import { readFileSync } from 'node:fs'
import t, { test } from 'tap'
import { isDomain, parseAddress, parseEnvelope } from '../../src/mail/address.ts'
import { findSuite } from '../support/machine/suites.ts'

const LABEL63 = 'a'.repeat(63)

const VALID = [
  'a@b.co',
  'first.last@example.com',
  "o'brien_-+x@example.com",
  '-_+@example.com',
  "'@example.com",
  '1@1.aa',
  `${'a'.repeat(64)}@example.com`,
  `a@${LABEL63}.com`,
  'a@x-y.z--1.museum',
  `a@${LABEL63}.${LABEL63}.${LABEL63}.${'a'.repeat(60)}`,
]

const INVALID = [
  '',
  '@',
  'a',
  'a@',
  '@b.co',
  'a@b',
  'a@b.c',
  'a@b.c1',
  'a@.co',
  'a@b..co',
  'a@b.co.',
  '.a@b.co',
  'a.@b.co',
  'a..b@b.co',
  'a@@b.co',
  'a@b@c.co',
  'a b@b.co',
  ' a@b.co',
  'a@b.co\n',
  'a@-b.co',
  'a@b-.co',
  'a@b_c.co',
  'a@b.xn--p1ai',
  '"a"@b.co',
  'a@[127.0.0.1]',
  'ä@b.co',
  'a@ä.co',
  'a!@b.co',
  'a@b.co\0',
  `${'a'.repeat(65)}@example.com`,
  `a@${'a'.repeat(64)}.com`,
  `a@${LABEL63}.${LABEL63}.${LABEL63}.${'a'.repeat(61)}`,
]

const ROWS: [address: string, parsed: object | null][] = [
  ['ann@a.test', { local: 'ann', domain: 'a.test' }],
  ['Ann.B+c@A.Test', { local: 'Ann.B+c', domain: 'a.test' }],
  ['ann@bücher.test', { local: 'ann', domain: 'xn--bcher-kva.test' }],
  ['jürgen@a.test', null],
  ['a b@a.test', null],
  ['a>@a.test', null],
  ['@a.test', null],
  ['nobody', null],
  ['x\r\n@a.test', null],
]

test('address: what the grammar holds is parsed [address.grammar]', async (t) => {
  for (const text of VALID) t.ok(parseAddress(text).ok, JSON.stringify(text))
  t.equal(VALID.at(-1)?.length, 254)
})

test('address: what the grammar does not hold is none [address.grammar]', async (t) => {
  for (const text of INVALID) t.notOk(parseAddress(text).ok, JSON.stringify(text))
})

test('address: the domain is written in lower case, the local part as it came [address.grammar]', async (t) => {
  t.same(parseAddress('Ann.Lee@Mail.EXAMPLE.Com'), {
    ok: true,
    address: 'Ann.Lee@mail.example.com',
    localPart: 'Ann.Lee',
    domain: 'mail.example.com',
  })
})

test('address: a domain has two labels or more and at most 253 characters [address.grammar]', async (t) => {
  const long = `${LABEL63}.${LABEL63}.${LABEL63}.`
  for (const text of ['b.co', 'mail.b.co', `${long}${'a'.repeat(61)}`]) t.ok(isDomain(text), text)
  for (const text of ['', 'co', '.co', 'b.co.', 'b.c', '1.2.3.4', `${long}${'a'.repeat(62)}`])
    t.notOk(isDomain(text), text)
})

interface Vector {
  readonly address: string
  readonly category: string
}

/** The grammar a second time, as an expression, so that the vectors judge two implementations of it. */
const GRAMMAR = /^(?=.{1,254}$)(?=[^@]{1,64}@)[\w'+-]+(\.[\w'+-]+)*@((?!-)[A-Za-z\d-]{1,63}(?<!-)\.)+[A-Za-z]{2,63}$/

const VECTORS = findSuite('address/isemail-tests.json')
const skip = VECTORS === null ? 'vectors not found: set SUITES_DIR' : false

test('address: vectors of another project [address.grammar]', { skip }, async (t) => {
  const vectors = JSON.parse(readFileSync(VECTORS ?? '', 'utf8')) as Vector[]
  const errors = vectors.filter(({ category }) => category === 'ISEMAIL_ERR')
  t.equal(errors.length, 66)
  for (const { address } of errors) t.notOk(parseAddress(address).ok, `error: ${JSON.stringify(address)}`)
  for (const { address } of vectors) t.equal(parseAddress(address).ok, GRAMMAR.test(address), JSON.stringify(address))
  t.ok(vectors.filter(({ address }) => parseAddress(address).ok).length >= 15)
})

for (const [address, parsed] of ROWS)
  t.test(`envelope: ${JSON.stringify(address)}`, async (t) => t.same(parseEnvelope(address), parsed))
