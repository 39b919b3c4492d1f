/** attempt-route - packed and unpacked, small, whatever a name in the DNS holds. */
import t from 'tap'
import {
  type AttemptRoute,
  hostOfRoute,
  packRoute,
  unconnectedRoute,
  unpackRoute,
} from '../../src/mail/attempt-route.ts'

const ROUTE: AttemptRoute = {
  host: 'gmail-smtp-in.l.google.com',
  address: '142.250.27.26',
  sourceAddress: '203.0.113.25',
  tlsVersion: 'TLSv1.3',
  cipher: 'TLS_AES_256_GCM_SHA384',
  isVerified: true,
  mtaSts: 'enforce',
  dane: null,
  isReused: false,
  dnsMs: 12,
  connectMs: 31,
  tlsMs: 40,
  transactionMs: 412,
}

for (const [name, more] of [
  ['a new connection', {}],
  ['another cipher and policy', { tlsVersion: 'TLSv1.2', cipher: 'ECDHE-RSA-AES128-GCM-SHA256', mtaSts: 'testing' }],
  ['plaintext over a kept connection', { tlsVersion: null, cipher: null, isVerified: false, isReused: true }],
  ['IPv6', { address: '2001:db8::26', sourceAddress: '2001:db8::25' }],
  ['TLSA records that name the certificate', { dane: 'verified' }],
  ['TLSA records that cannot be used', { dane: 'encrypted', mtaSts: null }],
  ['TLSA records that name another certificate', { dane: 'failed' }],
  ['no policy', { mtaSts: null, connectMs: null, tlsMs: null }],
] as const)
  t.test(`attempt-route: ${name}`, async (t) => {
    const route = { ...ROUTE, ...more }
    const packed = packRoute(route)
    t.same(unpackRoute(packed), route)
    t.equal(hostOfRoute(packed), route.host)
  })

t.test('attempt-route: a server without a connection', async (t) => {
  const route = unconnectedRoute('mx.a.test', null, null)
  t.same(unpackRoute(packRoute(route)), route)
})

t.test('attempt-route: times are rounded, and a usual route takes at most 80 bytes', async (t) => {
  const packed = packRoute({ ...ROUTE, dnsMs: 12.49, transactionMs: 411.5 })
  t.same(unpackRoute(packed), ROUTE)
  t.ok(packed.length <= 80, packed)
})

t.test('attempt-route: a hostile name neither forges a field nor needs an escape', async (t) => {
  const packed = packRoute({ ...ROUTE, host: `a b"\\\n\u0000é${'x'.repeat(300)}` })
  t.ok(packed.length < 360)
  t.equal(JSON.stringify(packed).length, packed.length + 2)
  t.match(unpackRoute(packed), { host: /^a\?b\?+x+$/, address: ROUTE.address, transactionMs: 412 })
})
