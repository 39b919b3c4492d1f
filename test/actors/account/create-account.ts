/** create-account - everything that a new account begins with. */

import t from 'tap'
import { SHARDS, shardOf } from '../../../cluster/id.ts'
import {
  ACCOUNTS_EACH,
  createAccount,
  placeAccount,
  SHARDS_TOGETHER,
} from '../../../src/actors/account/create-account.ts'
import { unpackApiKey } from '../../../src/state/api-key.ts'
import { accountsKey, apiKeyKey, namesKey, tokensKey } from '../../../src/state/keys.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const KEYS = { accountKey: { hash: 'ah', prefix: 'ak_1' }, operatorKey: { hash: 'oh', prefix: 'ok_1' } }
const SERVERS = [
  { name: 'Live', mode: 'live', key: { hash: 'lh', prefix: 'sk_1' } },
  { name: 'Test', mode: 'test', key: { hash: 'th', prefix: 'sk_test_1' } },
] as const

t.test('create-account: account, servers, streams, keys and names', async (t) => {
  const world = new World(NOW_MS, 0)
  const reply = world.run(createAccount, { name: 'Acme', status: 'active', ...KEYS, servers: SERVERS })
  const { accountId, servers, accountTokenId, operatorTokenId } = reply
  t.equal(shardOf(accountId), 0)
  t.same(world.states.get(`account:${accountId}`), {
    accountId,
    name: 'Acme',
    status: 'active',
    createdAtMs: NOW_MS,
    approvedCap: 10_000,
    monthlyCap: 10_000,
    highestCap: null,
    serverLimit: 10,
    perMinuteLimit: 300,
    testPerMinuteLimit: 300,
    testMonthlyCap: 10_000,
    inboundPerMinuteLimit: 300,
    subscriptionActive: true,
    keys: [{ tokenId: accountTokenId, hash: 'ah' }],
    servers: 2,
    held: false,
  })
  for (const [index, { serverId, streamId, tokenId }] of servers.entries()) {
    const { name, mode, key } = SERVERS[index]!
    t.same(world.states.get(`server:${serverId}`), {
      serverId,
      accountId,
      name,
      mode,
      createdAtMs: NOW_MS,
      perMinuteLimit: null,
      monthlyCap: null,
      defaultStreamId: streamId,
      keys: [{ tokenId, hash: key.hash }],
    })
    t.match(world.states.get(`stream:${streamId}`), {
      serverId,
      kind: 'transactional',
      name: 'Transactional',
      isDefault: true,
    })
    const found = { kind: 'server', accountId, serverId, tokenId, mode, streamId, revokedAtMs: null, role: null }
    t.same(unpackApiKey(world.hash(apiKeyKey(0, key.hash))), found)
    t.same([...world.hash(tokensKey(0, serverId)).keys()], [tokenId])
  }
  const names = [...world.hash(namesKey(0, accountId))].map(([name, id]) => `${name} ${id}`)
  t.same(
    names,
    servers.flatMap(({ serverId, streamId }, index) => [
      `server/${SERVERS[index]!.name} ${serverId}`,
      `stream/${serverId}/Transactional ${streamId}`,
    ]),
  )
  t.match(unpackApiKey(world.hash(apiKeyKey(0, 'ah'))), {
    kind: 'account',
    accountId,
    serverId: null,
    tokenId: accountTokenId,
  })
  t.match(unpackApiKey(world.hash(apiKeyKey(0, 'oh'))), { kind: 'operator', accountId: null, tokenId: operatorTokenId })
  t.same([...world.hash(tokensKey(0, 'operator')).keys()], [operatorTokenId])
  t.same([...world.sorted(accountsKey(0))], [[accountId, NOW_MS]])
})

t.test('create-account: its timers are due', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, servers } = world.run(createAccount, {
    name: 'A',
    status: 'active',
    accountKey: null,
    operatorKey: null,
    servers: SERVERS,
  })
  t.same(
    [...world.items.keys()],
    [`timers people:${accountId}:0`, ...servers.map(({ serverId }) => `timers sweep:${serverId}`)],
  )
})

t.test('create-account: without keys and servers, and an operator key on the wrong shard', async (t) => {
  const world = new World(NOW_MS)
  const bare = { name: 'A', status: 'pending', accountKey: null, operatorKey: null, servers: [] } as const
  const reply = world.run(createAccount, bare)
  t.match(reply, { accountTokenId: null, operatorTokenId: null, servers: [] })
  t.match(world.states.get(`account:${reply.accountId}`), { status: 'pending', keys: [] })
  t.throws(() => world.run(createAccount, { ...bare, operatorKey: KEYS.operatorKey }), /Operator keys live on shard 0/)
})

function placed(accounts: number): number[] {
  const counts = Array.from({ length: SHARDS }, () => 0)
  for (let n = 0; n < accounts; n += 1) {
    const shard = placeAccount(counts)
    counts[shard] = (counts[shard] ?? 0) + 1
  }
  return counts
}

t.test('placement: the first account is on shard 0, the next beside it', async (t) => {
  t.same(placed(1).slice(0, 2), [1, 0])
  t.same(placed(2).slice(0, 3), [1, 1, 0])
})

t.test('placement: two shards are filled evenly, then the next two', async (t) => {
  const full = placed(SHARDS_TOGETHER * ACCOUNTS_EACH)
  t.ok(full.slice(0, SHARDS_TOGETHER).every((count) => count === ACCOUNTS_EACH))
  t.ok(full.slice(SHARDS_TOGETHER).every((count) => count === 0))
  t.equal(placeAccount(full), SHARDS_TOGETHER)
})

t.test('placement: once all are full they grow evenly', async (t) => {
  const counts = placed(SHARDS * ACCOUNTS_EACH + SHARDS)
  t.ok(counts.every((count) => count === ACCOUNTS_EACH + 1))
})

t.test('placement: an account that has gone leaves its place to the next', async (t) => {
  const counts = placed(100)
  counts[1] = 0
  t.equal(placeAccount(counts), 1)
})

t.test('placement: every process that runs shards, and every location with shards, gets an even share', async (t) => {
  const places = Array.from({ length: SHARDS }, (_, shard) => `worker ${shard % 4}/redis ${shard % 3}`)
  const counts = Array.from({ length: SHARDS }, () => 0)
  for (let n = 0; n < 24; n += 1) {
    const shard = placeAccount(counts, places)
    counts[shard] = (counts[shard] ?? 0) + 1
  }
  const used = [...counts.keys()].filter((shard) => counts[shard] !== 0)
  t.equal(used.length, 12, 'of each of four that run shards at three places one')
  t.same(new Set(used.map((shard) => places[shard])).size, 12)
  t.ok(used.every((shard) => counts[shard] === 2))
})

t.test(
  'placement: processes in one location fill two of them alone, and one of each with a second location',
  async (t) => {
    for (const redis of [1, 2]) {
      const places = Array.from({ length: SHARDS }, (_, shard) => `worker ${shard % 4}/redis ${(shard >> 2) % redis}`)
      const counts = Array.from({ length: SHARDS }, () => 0)
      for (let n = 0; n < 16; n += 1) {
        const shard = placeAccount(counts, places)
        counts[shard] = (counts[shard] ?? 0) + 1
      }
      t.same(new Set(counts.filter((count) => count !== 0)), new Set([2]), `${redis} places`)
    }
  },
)
