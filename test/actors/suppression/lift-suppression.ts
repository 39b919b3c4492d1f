/** lift-suppression - the keys that may lift each entry, and the remains of a lifted one. */

import t from 'tap'
import { addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { type LiftBody, liftSuppression } from '../../../src/actors/suppression/lift-suppression.ts'
import { unpackAudit } from '../../../src/state/audit.ts'
import { bucketOfHmac } from '../../../src/state/hash-fraction.ts'
import { suppressedKey } from '../../../src/state/keys.ts'
import { packSuppression, type SuppressionReason } from '../../../src/state/suppression.ts'
import { entryOf, personOf } from '../../support/world/suppression.ts'
import { hmacOf, LIVE_KEY, makeTenant, send, TEST_KEY } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ADA = 'ada@example.net'
const OPERATOR = { actor: 'token', act: 'operatorLiftSuppression', note: 'asked by phone' } as const

function begin(reason: SuppressionReason) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId, live } = tenant
  const order = { accountId, serverId: live.serverId, orderedBy: 'server', keyHash: LIVE_KEY } as const
  world.run(addSuppressions, { ...order, streamId: live.streamId, recipients: [{ address: ADA, hmac: hmacOf(ADA) }] })
  const entry = entryOf(world, tenant, ADA)
  if (entry === null) throw new Error('Nothing was added')
  const slice = (bucketOfHmac(hmacOf(ADA)) >> 4).toString(16)
  const fields = new Map([[hmacOf(ADA), packSuppression({ ...entry, reason })]])
  world.keys.set(suppressedKey(world.shard, live.streamId, slice), { type: 'hash', fields })
  const body: LiftBody = { ...order, suppressionId: entry.suppressionId }
  return { world, tenant, body }
}

for (const [reason, lifts] of [
  ['manual', true],
  ['hard_bounce', true],
  ['unsubscribe', false],
  ['spam_complaint', false],
] as const) {
  t.test(`lift-suppression: ${reason} by the client: ${lifts} [suppression.lift]`, async (t) => {
    const { world, tenant, body } = begin(reason)
    const reply = world.run(liftSuppression, body)
    if (!lifts) {
      t.match(reply, { code: 'suppression_not_liftable', extra: { reason } })
      t.equal(entryOf(world, tenant, ADA)?.reason, reason)
      return
    }
    t.same(reply, { kind: 'lifted' })
    t.equal(entryOf(world, tenant, ADA), null)
    t.equal(personOf(world, tenant, ADA)?.suppressions, 0)
    t.match(world.run(liftSuppression, body), { code: 'not_found' }, 'the second time')
    send(world, tenant)
    t.equal(world.deliveries().length, 1)
  })

  t.test(`lift-suppression: ${reason} by the operator, and it is logged [operator.audit]`, async (t) => {
    const { world, tenant, body } = begin(reason)
    t.same(world.run(liftSuppression, { ...body, orderedBy: 'operator', keyHash: '', by: OPERATOR }), {
      kind: 'lifted',
    })
    t.equal(entryOf(world, tenant, ADA), null)
    const logged = world.ops.find(({ key }) => key.includes(':audit:'))
    t.match(unpackAudit(String(logged?.args[1])), {
      ...OPERATOR,
      targets: { suppressionId: body.suppressionId, serverId: body.serverId },
      before: { reason },
      after: null,
    })
    t.notOk(String(logged?.args[1]).includes(ADA))
  })
}

t.test('lift-suppression: an id of another server, a key of another server, no such id', async (t) => {
  const { world, tenant, body } = begin('manual')
  const { serverId } = tenant.test
  t.match(world.run(liftSuppression, { ...body, serverId, keyHash: TEST_KEY }), { code: 'not_found' })
  t.match(world.run(liftSuppression, { ...body, keyHash: TEST_KEY }), { code: 'unauthorized' })
  t.match(world.run(liftSuppression, { ...body, suppressionId: tenant.accountId }), { code: 'not_found' })
  t.not(entryOf(world, tenant, ADA), null)
})
