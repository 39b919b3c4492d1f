/** add-suppressions - addresses that are added, that were listed already, and that are refused. */

import t from 'tap'
import { type AddSuppressionsBody, addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { entryOf, listedPlaces, personOf } from '../../support/world/suppression.ts'
import { changeState, hmacOf, LIVE_KEY, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ADA = 'ada@example.net'

const order = (
  tenant: Tenant,
  addresses: string[],
  changes: Partial<AddSuppressionsBody> = {},
): AddSuppressionsBody => ({
  accountId: tenant.accountId,
  serverId: tenant.live.serverId,
  orderedBy: 'server',
  keyHash: LIVE_KEY,
  streamId: tenant.live.streamId,
  recipients: addresses.map((address) => ({ address, hmac: hmacOf(address) })),
  ...changes,
})

function begin() {
  const world = new World(NOW_MS)
  return { world, tenant: makeTenant(world) }
}

t.test('add-suppressions: unlisted addresses are added, listed ones stay [suppression.add]', async (t) => {
  const { world, tenant } = begin()
  send(world, tenant)
  t.match(world.run(addSuppressions, order(tenant, [ADA, 'new@example.org'])), { kind: 'added', added: 2, existing: 0 })
  const entry = entryOf(world, tenant, ADA)
  t.match(entry, { reason: 'manual', messageId: null, code: null, response: null })
  t.match(personOf(world, tenant, ADA), { number: entry?.number ?? 0, suppressions: 1, month: '202611' })
  t.match(personOf(world, tenant, 'new@example.org'), { suppressions: 1, month: '202611' })
  world.nowMs += 1000
  t.match(world.run(addSuppressions, order(tenant, [ADA, 'more@example.org'])), { added: 1, existing: 1 })
  t.same(entryOf(world, tenant, ADA), entry)
  t.equal(listedPlaces(world, tenant).length, 3)
  send(world, tenant)
  t.equal(world.deliveries().length, 1, 'only what was sent before')
})

t.test('add-suppressions: a thousand at once [suppression.add]', async (t) => {
  const { world, tenant } = begin()
  const addresses = Array.from({ length: 1000 }, (_, index) => `p${index}@example.org`)
  t.match(world.run(addSuppressions, order(tenant, addresses)), { added: 1000, existing: 0 })
  t.match(world.run(addSuppressions, order(tenant, addresses)), { added: 0, existing: 1000 })
  t.equal(listedPlaces(world, tenant).length, 1000)
  const numbers = new Set(addresses.map((address) => personOf(world, tenant, address)?.number))
  t.equal(numbers.size, 1000)
})

t.test('add-suppressions: refusals in order [refusal.order]', async (t) => {
  const { world, tenant } = begin()
  const body = order(tenant, [ADA], { keyHash: 'none', streamId: tenant.test.streamId })
  changeState(world, 'account', tenant.accountId, { status: 'closed' })
  t.match(world.run(addSuppressions, body), { code: 'unauthorized' })
  t.match(world.run(addSuppressions, { ...body, keyHash: LIVE_KEY }), { code: 'account_not_active' })
  changeState(world, 'account', tenant.accountId, { status: 'active' })
  t.match(world.run(addSuppressions, { ...body, keyHash: LIVE_KEY }), { code: 'stream_not_found' })
  changeState(world, 'stream', tenant.live.streamId, { kind: 'inbound' })
  t.match(world.run(addSuppressions, order(tenant, [ADA])), { code: 'stream_kind_not_allowed' })
  t.same(listedPlaces(world, tenant), [])
})
