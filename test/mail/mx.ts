/** mx - order and filter of exchanges; addresses that may be connected to, also against foreign vectors. */

import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { isPublicAddress, planExchanges } from '../../src/mail/mx.ts'
import { ROOT } from '../support/root.ts'
import { findSuite } from '../support/suites.ts'

const plan = (records: [number, string][], units: number[] = [], ownHosts: string[] = []) => {
  const exchanges = records.map(([priority, exchange]) => ({ priority, exchange }))
  return planExchanges({ domain: 'a.test', records: exchanges, units, ownHosts })
}

t.test('mx: order and filter', async (t) => {
  t.same(plan([]), { kind: 'hosts', hosts: ['a.test'] }, 'implicit MX')
  t.same(plan([[0, '']]), { kind: 'null-mx' })
  t.same(plan([[0, '.']]), { kind: 'null-mx' })
  const twoHosts: [number, string][] = [
    [5, 'MX.svc.test'],
    [9, 'mx.a.test'],
  ]
  t.same(plan(twoHosts, [], ['mx.svc.test']), { kind: 'hosts', hosts: ['mx.a.test'] }, 'our own name is dropped')
  t.same(plan([[5, 'mx.svc.test.']], [], ['mx.svc.test']), { kind: 'loop' })
  t.same(plan([], [], ['a.test']), { kind: 'loop' }, 'implicit MX that is ourselves')
  t.same(
    plan([
      [0, ''],
      [5, 'mx.a.test'],
    ]),
    { kind: 'hosts', hosts: ['mx.a.test'] },
    'the root among others is dropped',
  )
  t.same(
    plan([
      [20, 'b.test'],
      [10, 'C.Test.'],
      [30, 'c.test'],
    ]),
    { kind: 'hosts', hosts: ['c.test', 'b.test'] },
  )
  t.same(
    plan(
      [
        [10, 'x.test'],
        [10, 'y.test'],
      ],
      [0.9, 0.1],
    ),
    { kind: 'hosts', hosts: ['y.test', 'x.test'] },
  )
  t.same(
    plan(
      [
        [10, 'x.test'],
        [10, 'y.test'],
      ],
      [0.1, 0.9],
    ),
    { kind: 'hosts', hosts: ['x.test', 'y.test'] },
  )
  t.same(
    plan([
      [10, '192.0.2.1'],
      [10, '[192.0.2.1]'],
      [10, '::1'],
      [1, 'localhost'],
      [2, 'x.localhost'],
      [90, 'ok.test'],
    ]),
    {
      kind: 'hosts',
      hosts: ['ok.test'],
    },
  )
  t.same(plan([[10, '127.0.0.1']]), { kind: 'unusable' })
})

const ADDRESSES: [address: string, isPublic: boolean][] = [
  ['93.184.216.34', true],
  ['2606:2800:220:1:248:1893:25c8:1946', true],
  ['::ffff:93.184.216.34', true],
  ['127.0.0.1', false],
  ['10.0.0.1', false],
  ['172.16.0.1', false],
  ['192.168.1.1', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['0.0.0.0', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::1', false],
  ['::', false],
  ['fe80::1', false],
  ['fd00::1', false],
  ['::ffff:10.0.0.1', false],
  ['::ffff:127.0.0.1', false],
  ['ff02::1', false],
  ['64:ff9b::7f00:1', false],
  ['2002:7f00:1::', false],
  ['0x7f.1', false],
  ['017700000001', false],
  ['2130706433', false],
  ['mx.test', false],
  ['', false],
]
for (const [address, isPublic] of ADDRESSES) {
  t.test(`mx: ${address || '(empty)'} ${isPublic ? 'is public' : 'is not public'}`, async (t) =>
    t.equal(isPublicAddress(address, []), isPublic),
  )
}

t.test('mx: allowed networks', async (t) => {
  t.ok(isPublicAddress('10.1.2.3', ['192.168.0.0/16', '10.0.0.0/8']))
  t.ok(isPublicAddress('::ffff:10.1.2.3', ['10.0.0.0/8']))
  t.ok(isPublicAddress('::1', ['::1/128']))
  t.notOk(isPublicAddress('10.1.2.3', ['11.0.0.0/8', '::/0']))
})

const vectors = join(process.env.SUITES_DIR ?? join(ROOT, '../shared/suites'), 'ssrf/vectors.json')
t.test(
  'mx: foreign vectors of blocked addresses',
  { skip: existsSync(vectors) ? false : 'no suites folder' },
  async (t) => {
    const all = JSON.parse(readFileSync(vectors, 'utf8')) as { value: string; blocked: boolean }[]
    const blocked = all.filter((one) => one.blocked && isIP(one.value) !== 0)
    t.ok(blocked.length > 20, `${blocked.length} addresses`)
    for (const { value } of blocked) t.notOk(isPublicAddress(value, []), value)
  },
)

const ranges = findSuite('ssrf/deny-ranges.json')
t.test('mx: foreign ranges of blocked addresses', { skip: ranges === null ? 'no suites folder' : false }, async (t) => {
  const denied = JSON.parse(readFileSync(ranges as string, 'utf8')) as { ranges: readonly string[] }
  t.ok(denied.ranges.length > 20, `${denied.ranges.length} ranges`)
  for (const range of denied.ranges) t.notOk(isPublicAddress(range.replace(/\/.*/, ''), []), range)
})
