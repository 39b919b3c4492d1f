/**
 * ip-address - which addresses are public, which are private, and which belong to one client; also against foreign
 * vectors.
 */

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import t from 'tap'
import { clientNetwork, isInsideAddress, isPublicAddress } from '../../src/mail/ip-address.ts'
import { findSuite } from '../support/machine/suites.ts'

const PUBLIC = [
  '93.184.216.34',
  '1.1.1.1',
  '223.255.255.254',
  '2000::',
  '2000::1',
  '2001:200::1',
  '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
  '2001:db9::1',
  '2001:4860:4860::8888',
  '2003::1',
  '2606:2800:220:1:248:1893:25c8:1946',
  '2a00:1450:4001:81b::200e',
  '3fff:1000::1',
]

/** Each with its class. */
const NOT_PUBLIC: readonly (readonly [address: string, what: string])[] = [
  ['0.0.0.0', 'unspecified'],
  ['0.1.2.3', 'this network'],
  ['10.0.0.1', 'private'],
  ['100.64.0.1', 'shared by a provider'],
  ['127.0.0.1', 'loopback'],
  ['169.254.169.254', 'link-local'],
  ['172.16.0.1', 'private'],
  ['192.0.0.9', 'protocol assignments'],
  ['192.0.2.1', 'documentation'],
  ['192.88.99.1', '6to4 relay'],
  ['192.168.1.1', 'private'],
  ['198.18.0.1', 'benchmarking'],
  ['198.51.100.1', 'documentation'],
  ['203.0.113.1', 'documentation'],
  ['224.0.0.1', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'broadcast'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::127.0.0.1', 'IPv4-compatible'],
  ['::a00:1', 'IPv4-compatible'],
  ['::8.8.8.8', 'IPv4-compatible'],
  ['::ffff:10.0.0.1', 'IPv4-mapped'],
  ['::ffff:7f00:1', 'IPv4-mapped'],
  ['::ffff:93.184.216.34', 'IPv4-mapped, of a public one'],
  ['0:0:0:0:0:ffff:5db8:d822', 'IPv4-mapped, of a public one'],
  ['::ffff:0:127.0.0.1', 'IPv4-translated'],
  ['64:ff9b::7f00:1', 'NAT64'],
  ['64:ff9b::808:808', 'NAT64, of a public one'],
  ['64:ff9b:1::808:808', 'NAT64 of a network'],
  ['64:ff9c::1', 'below 2000::/3'],
  ['100::1', 'discard'],
  ['1::1', 'below 2000::/3'],
  ['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'the last below 2000::/3'],
  ['2001::1', 'Teredo'],
  ['2001:1::1', 'protocol assignments'],
  ['2001:2::1', 'benchmarking'],
  ['2001:3::1', 'AMT'],
  ['2001:4:112::1', 'AS112'],
  ['2001:10::1', 'ORCHID'],
  ['2001:20::1', 'ORCHIDv2'],
  ['2001:1ff:ffff::1', 'the last of the protocol assignments'],
  ['2001:db8::1', 'documentation'],
  ['2002:7f00:1::', '6to4'],
  ['2002:808:808::1', '6to4, of a public one'],
  ['2620:4f:8000::1', 'AS112'],
  ['3fff::1', 'documentation'],
  ['4000::1', 'above 2000::/3'],
  ['5f00::1', 'segment routing'],
  ['8000::1', 'above 2000::/3'],
  ['fb00::1', 'unassigned'],
  ['fc00::1', 'unique local'],
  ['fd00::1', 'unique local'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local with a zone'],
  ['2606:4700::1111%eth0', 'a zone on what has none'],
  ['fec0::1', 'site-local'],
  ['ff02::1', 'multicast'],
  ['ffff::1', 'multicast'],
  ['0x7f.1', 'no address'],
  ['017700000001', 'no address'],
  ['2130706433', 'no address'],
  ['8.8.8', 'no address'],
  ['[2606:4700::1111]', 'no address'],
  ['mx.test', 'no address'],
  ['', 'no address'],
]

t.test('ip-address: public addresses [webhook.private]', async (t) => {
  for (const address of PUBLIC) t.ok(isPublicAddress(address, []), address)
  for (const [address, what] of NOT_PUBLIC) t.notOk(isPublicAddress(address, []), `${address}: ${what}`)
})

t.test('ip-address: allowed networks', async (t) => {
  t.ok(isPublicAddress('10.1.2.3', ['192.168.0.0/16', '10.0.0.0/8']))
  t.ok(isPublicAddress('::ffff:10.1.2.3', ['10.0.0.0/8']), 'mapped into IPv6')
  t.ok(isPublicAddress('::ffff:10.1.2.3', ['::ffff:0:0/96']))
  t.ok(isPublicAddress('::1', ['::1/128']))
  t.ok(isPublicAddress('4000::1', ['4000::/16']))
  t.notOk(isPublicAddress('10.1.2.3', ['11.0.0.0/8', '::/0']))
  t.notOk(isPublicAddress('64:ff9b::a00:1', ['10.0.0.0/8']), 'only a mapped one is the IPv4 address')
})

t.test('ip-address: private addresses, to which a password may be sent in plain text', async (t) => {
  for (const address of ['127.0.0.1', '::1', '10.0.0.1', '192.168.1.1', 'fd00::1', 'fe80::1%eth0', '::ffff:10.0.0.1'])
    t.ok(isInsideAddress(address), address)
  for (const address of PUBLIC) t.notOk(isInsideAddress(address), address)
  // Each of these belongs to, or passes through, a foreign network.
  for (const address of [
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
    '4000::1',
    '100.64.0.1',
    '192.88.99.1',
  ])
    t.notOk(isInsideAddress(address), address)
  t.notOk(isInsideAddress('relay.test'))
})

const CLIENTS: readonly (readonly [address: string, client: string])[] = [
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:C000:201', '192.0.2.1'],
  ['0000:0000:0000:0000:0000:ffff:c000:0201', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:DB8:1:2::1', '2001:db8:1:2'],
  ['2001:db8::1', '2001:db8:0:0'],
  ['2001:0db8:0001:0002:0000:0000:0000:0000', '2001:db8:1:2'],
  ['2001:db8:1:3::1', '2001:db8:1:3'],
  ['::1', '0:0:0:0'],
  ['::', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['not:an:address', 'not:an:address'],
  ['', ''],
]
for (const [address, client] of CLIENTS)
  t.test(
    `ip-address: ${address || '(empty)'} is counted as ${client || '(empty)'} [request.rate, mx.rate]`,
    async (t) => t.equal(clientNetwork(address), client),
  )

const vectors = findSuite('ssrf/vectors.json')
t.test('ip-address: foreign vectors of blocked addresses', { skip: skipWithout(vectors) }, async (t) => {
  const all = JSON.parse(readFileSync(vectors as string, 'utf8')) as { value: string; blocked: boolean }[]
  const blocked = all.filter((one) => one.blocked && isIP(one.value) !== 0)
  t.ok(blocked.length > 20, `${blocked.length} addresses`)
  for (const { value } of blocked) t.notOk(isPublicAddress(value, []), value)
})

const ranges = findSuite('ssrf/deny-ranges.json')
t.test('ip-address: foreign ranges of blocked addresses', { skip: skipWithout(ranges) }, async (t) => {
  const denied = JSON.parse(readFileSync(ranges as string, 'utf8')) as { ranges: readonly string[] }
  t.ok(denied.ranges.length > 20, `${denied.ranges.length} ranges`)
  for (const range of denied.ranges) t.notOk(isPublicAddress(range.replace(/\/.*/, ''), []), range)
})

function skipWithout(path: string | null): string | false {
  return path === null ? 'vectors not found: set SUITES_DIR' : false
}
