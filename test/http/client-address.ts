/** Tests of src/edge/client-address.ts. */

import { test } from 'tap'

import { makeClientAddress } from '../../src/http/client-address.ts'

/** Trusted, peer, X-Forwarded-For, client. */
const CASES: readonly (readonly [readonly string[], string, string, string])[] = [
  [[], '127.0.0.1', '9.9.9.9', '127.0.0.1'],
  [['127.0.0.0/8'], '127.0.0.1', '', '127.0.0.1'],
  [['127.0.0.0/8'], '127.0.0.1', '9.9.9.9', '9.9.9.9'],
  [['127.0.0.0/8'], '8.8.8.8', '9.9.9.9', '8.8.8.8'],
  [['127.0.0.0/8'], '127.0.0.1', '1.1.1.1, 9.9.9.9', '9.9.9.9'],
  [['127.0.0.0/8'], '127.0.0.1', '1.1.1.1,9.9.9.9 , 127.0.0.7', '9.9.9.9'],
  [['127.0.0.0/8', '10.0.0.0/8'], '127.0.0.1', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  [['127.0.0.0/8'], '127.0.0.1', '9.9.9.9, unknown', '127.0.0.1'],
  [['127.0.0.0/8'], '127.0.0.1', '9.9.9.9, , 127.0.0.2', '127.0.0.2'],
  [['::1'], '0000:0000:0000:0000:0000:0000:0000:0001', '2001:DB8::0001', '2001:db8::1'],
  [['127.0.0.0/8'], '127.0.0.1', '::ffff:9.9.9.9', '9.9.9.9'],
  [['127.0.0.0/8'], '::ffff:127.0.0.1', '9.9.9.9', '9.9.9.9'],
]

for (const [trusted, peer, forwardedFor, client] of CASES) {
  test(`client-address: ${peer} with ${forwardedFor || 'nothing'} is ${client} [request.client]`, async (t) => {
    const clientAddress = makeClientAddress(trusted)
    t.equal(clientAddress(peer, forwardedFor), client)
    t.equal(clientAddress(peer, forwardedFor), client, 'again, from memory')
  })
}

test('client-address: only so many hops are looked at [request.client]', async (t) => {
  const clientAddress = makeClientAddress(['127.0.0.0/8'])
  const chain = `9.9.9.9,${Array.from({ length: 40 }, () => '127.0.0.2').join(',')}`
  t.equal(clientAddress('127.0.0.1', chain), '127.0.0.2')
})

test('client-address: a range that does not parse is an error [request.client]', async (t) => {
  for (const text of ['x', '1.2.3.4/40', '']) t.throws(() => makeClientAddress([text]))
})
