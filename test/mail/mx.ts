/** mx - order and filter of exchanges. */

import t from 'tap'
import { planExchanges } from '../../src/mail/mx.ts'

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
  for (const address of [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.0x1',
    '[127.0.0.1]',
    '::1',
    '[::1]',
    'fe80::1%eth0',
    'mx1.big.test,mx2.big.test',
    'out-1|mx.big.test',
  ])
    t.same(plan([[10, address]]), { kind: 'unusable' }, address)
})

t.test('mx: the first 32 of thousands of records count, the same each time', async (t) => {
  const many = Array.from({ length: 3_000 }, (_, n): [number, string] => [n % 3, `mx${n}.test`])
  const hostsOf = (records: [number, string][]) => {
    const planned = plan(records)
    return planned.kind === 'hosts' ? planned.hosts : []
  }
  const hosts = hostsOf(many)
  t.equal(hosts.length, 32)
  t.ok(
    hosts.every((host) => Number(/\d+/.exec(host)?.[0]) % 3 === 0),
    'those of the first preference',
  )
  t.same(new Set(hostsOf([...many].reverse())), new Set(hosts))
})
