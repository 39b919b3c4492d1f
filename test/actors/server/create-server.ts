/** create-server - what a new server holds, and the refusals in their order. */

import t from 'tap'
import { createServer, type NewServer } from '../../../src/actors/server/create-server.ts'
import { unpackApiKey } from '../../../src/state/api-key.ts'
import { unpackAudit } from '../../../src/state/audit.ts'
import { apiKeyKey, auditKey, namesKey, serversKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, accountState, BY, changeState, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)

function start() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  let made = 0
  const create = (server: Partial<NewServer> = {}, who: object = { keyHash: ACCOUNT_KEY }) => {
    made += 1
    const key = { hash: `h${made}`, prefix: 'sk_x' }
    return world.run(createServer, {
      accountId: tenant.accountId,
      keyHash: null,
      ...who,
      server: { name: 'More', mode: 'live', key, ...server },
    })
  }
  return { world, tenant, create }
}

t.test('create-server: state, stream, key, name, place in the list and sweep [server.create]', async (t) => {
  const { world, tenant, create } = start()
  const reply = create({ perMinuteLimit: 300, monthlyCap: 10_000 })
  if (reply.kind !== 'server') return t.fail(reply.code)
  const { serverId, streamId, tokenId } = reply.created
  const { accountId } = tenant
  t.match(world.states.get(`server:${serverId}`), {
    serverId,
    accountId,
    name: 'More',
    mode: 'live',
    perMinuteLimit: 300,
    monthlyCap: 10_000,
    defaultStreamId: streamId,
    keys: [{ tokenId, hash: 'h1' }],
  })
  t.match(world.states.get(`stream:${streamId}`), { serverId, isDefault: true })
  t.match(unpackApiKey(world.hash(apiKeyKey(world.shard, 'h1'))), { kind: 'server', accountId, serverId, streamId })
  t.equal(world.hash(namesKey(world.shard, accountId)).get('server/More'), serverId)
  t.ok(world.sorted(serversKey(world.shard, accountId)).has(serverId))
  t.ok(world.items.has(`timers sweep:${serverId}`))
  t.equal(accountState(world, tenant).servers, 3)
  t.equal(reply.account.servers, 3)
  t.equal(world.sorted(auditKey(world.shard, '202611')).size, 0, 'an account’s own act is not an operator’s')
})

t.test('create-server: an operator’s act is logged [operator.audit]', async (t) => {
  const { world, tenant, create } = start()
  const reply = create({ mode: 'test' }, { by: { ...BY, note: 'asked' } })
  const [member = ''] = [...world.sorted(auditKey(world.shard, '202611')).keys()]
  t.match(unpackAudit(member), {
    note: 'asked',
    targets: { accountId: tenant.accountId, ...(reply.kind === 'server' && { serverId: reply.created.serverId }) },
    before: null,
    after: { name: 'More', mode: 'test' },
  })
})

t.test(
  'create-server: limits only tighter than the account’s, a free name, room for one more, in this order',
  async (t) => {
    const { world, tenant, create } = start()
    changeState(world, 'account', tenant.accountId, { serverLimit: 2 })
    const server = { name: 'Live', perMinuteLimit: 301, monthlyCap: 10_001 }
    t.match(create(server), { code: 'limit_too_high', extra: { max: 300 } })
    t.match(create({ ...server, perMinuteLimit: 300 }), { code: 'limit_too_high', extra: { max: 10_000 } })
    t.match(create({ ...server, perMinuteLimit: null, monthlyCap: null }), {
      code: 'server_exists',
      extra: { serverId: tenant.live.serverId },
    })
    t.match(create(), { code: 'server_limit', extra: { max: 2 } })
    t.equal(world.ops.length, 0)
    changeState(world, 'account', tenant.accountId, { serverLimit: 3 })
    t.equal(create().kind, 'server')
    t.match(create({ name: 'Yet one' }), { code: 'server_limit', extra: { max: 3 } })
    t.match(create(), { code: 'server_exists' })
  },
)
