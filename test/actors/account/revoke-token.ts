/** revoke-token - a key that ends, by itself or by another, once. */

import t from 'tap'
import { createToken, revokeToken } from '../../../src/actors/account/token.ts'
import { unpackApiKey, unpackToken } from '../../../src/state/api-key.ts'
import { apiKeyKey, tokensKey } from '../../../src/state/keys.ts'
import { LIVE_KEY, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test('revoke-token: a key may revoke itself, and is invalid from then on [key.revoke]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { serverId } = tenant.live
  const order = { accountId: tenant.accountId, serverId, orderedBy: 'server' } as const
  const made = world.run(createToken, { ...order, keyHash: LIVE_KEY, name: 'B', key: { hash: 'b', prefix: 'p' } })
  if (made.kind !== 'token') return t.fail(made.code)
  const [first] = (world.states.get(`server:${serverId}`) as { keys: { tokenId: string }[] }).keys
  const tokenId = first?.tokenId as string
  t.equal(send(world, tenant).kind, 'accepted')
  world.nowMs += 1_000
  const revoked = world.run(revokeToken, { ...order, keyHash: LIVE_KEY, tokenId })
  t.match(revoked, { kind: 'token', tokenId, token: { revokedAtMs: NOW_MS + 1_000 } })
  t.equal(unpackApiKey(world.hash(apiKeyKey(world.shard, LIVE_KEY)))?.revokedAtMs, NOW_MS + 1_000)
  const row = world.hash(tokensKey(world.shard, serverId)).get(tokenId) as string
  t.equal(unpackToken(row).revokedAtMs, NOW_MS + 1_000)
  t.match(send(world, tenant), { kind: 'refused', code: 'unauthorized' })
  t.match(world.run(revokeToken, { ...order, keyHash: LIVE_KEY, tokenId }), { code: 'unauthorized' })
  world.nowMs += 1_000
  const again = world.run(revokeToken, { ...order, keyHash: 'b', tokenId })
  t.match(again, { token: { revokedAtMs: NOW_MS + 1_000 } }, 'unchanged')
  t.equal(world.ops.length, 0)
  const third = world.run(createToken, { ...order, keyHash: 'b', name: 'C', key: { hash: 'c', prefix: 'p' } })
  t.equal(third.kind, 'token', 'there is room for another')
})

t.test('revoke-token: a key of another owner is not there', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  const { keys } = world.states.get(`server:${test.serverId}`) as { keys: { tokenId: string }[] }
  const order = { accountId, serverId: live.serverId, orderedBy: 'server', keyHash: LIVE_KEY } as const
  for (const tokenId of [keys[0]?.tokenId as string, live.streamId, ''])
    t.match(world.run(revokeToken, { ...order, tokenId }), { kind: 'refused', code: 'not_found' })
})
