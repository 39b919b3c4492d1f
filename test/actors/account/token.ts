/** token - a second key of a server or an account is created, and a third is refused. */

import t from 'tap'
import { createToken } from '../../../src/actors/account/token.ts'
import { unpackApiKey } from '../../../src/state/api-key.ts'
import { apiKeyKey, tokenIdsKey, tokensKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, LIVE_KEY, makeTenant, TEST_KEY } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

t.test('create-token: a server’s key is live, listed and found by its hash [key.create]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, test } = makeTenant(world)
  const { serverId } = test
  const order = { accountId, serverId, orderedBy: 'server', keyHash: TEST_KEY } as const
  const made = world.run(createToken, { ...order, name: 'Second', key: { hash: 'h2', prefix: 'sk_test_2' } })
  if (made.kind !== 'token') return t.fail(made.code)
  t.same(made.token, { name: 'Second', prefix: 'sk_test_2', hash: 'h2', createdAtMs: NOW_MS, revokedAtMs: null })
  const { tokenId } = made
  const state = world.states.get(`server:${serverId}`) as { keys: { tokenId: string; hash: string }[] }
  t.same(state.keys.at(-1), { tokenId, hash: 'h2' })
  t.equal(state.keys.length, 2)
  const known = { kind: 'server', accountId, serverId, tokenId, mode: 'test', streamId: test.streamId }
  t.same(unpackApiKey(world.hash(apiKeyKey(world.shard, 'h2'))), { ...known, revokedAtMs: null, role: null })
  t.ok(world.hash(tokensKey(world.shard, serverId)).has(tokenId))
  t.equal([...world.sorted(tokenIdsKey(world.shard, serverId)).keys()].sort().at(-1), tokenId)
})

t.test('create-token: an owner holds two live keys [key.live.max]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const owners = [
    { accountId, serverId: live.serverId, orderedBy: 'server', keyHash: LIVE_KEY },
    { accountId, serverId: null, orderedBy: 'operator', keyHash: 'any' },
  ] as const
  for (const [index, order] of owners.entries()) {
    const add = (n: number) =>
      world.run(createToken, { ...order, name: 'Key', key: { hash: `h${index}${n}`, prefix: 'p' } })
    t.equal(add(1).kind, 'token')
    t.match(add(2), { kind: 'refused', code: 'token_limit', extra: { max: 2 } })
    t.equal(world.ops.length, 0)
    t.equal(world.hash(apiKeyKey(world.shard, `h${index}2`)).size, 0)
  }
  const account = unpackApiKey(world.hash(apiKeyKey(world.shard, 'h11')))
  t.match(account, { kind: 'account', accountId, serverId: null, mode: null, streamId: null })
})

t.test('create-token: an account key makes keys of its servers', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const order = { accountId, serverId: live.serverId, orderedBy: 'account', keyHash: ACCOUNT_KEY } as const
  t.equal(world.run(createToken, { ...order, name: 'Key', key: { hash: 'h', prefix: 'p' } }).kind, 'token')
})
