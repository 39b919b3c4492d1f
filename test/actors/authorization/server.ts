/** server - the keys that may order changes of servers, and the refusals of the others. */

import t from 'tap'
import { createServer } from '../../../src/actors/server/create-server.ts'
import { patchServer } from '../../../src/actors/server/patch-server.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import type { OperatorAct } from '../../../src/state/audit.ts'
import { ACCOUNT_KEY, BY, changeState, LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
const SERVER = { name: 'More', mode: 'live', key: { hash: 'h', prefix: 'p' } } as const

interface Who {
  readonly name: string
  readonly keyHash: string | null
  readonly by?: OperatorAct
  readonly status?: string
  readonly code: string | null
}

const CASES: readonly Who[] = [
  { name: 'its account’s key', keyHash: ACCOUNT_KEY, code: null },
  { name: 'an operator', keyHash: null, by: BY, code: null },
  { name: 'a key of a server', keyHash: LIVE_KEY, code: 'unauthorized' },
  { name: 'a revoked key', keyHash: 'gone', code: 'unauthorized' },
  { name: 'nobody', keyHash: null, code: 'unauthorized' },
  { name: 'a key of a paused account', keyHash: ACCOUNT_KEY, status: 'paused', code: null },
  { name: 'a key of a pending account', keyHash: ACCOUNT_KEY, status: 'pending', code: null },
  { name: 'a key of a closed account', keyHash: ACCOUNT_KEY, status: 'closed', code: 'account_not_active' },
  { name: 'an operator, of a closed account', keyHash: null, by: BY, status: 'closed', code: 'account_closed' },
  { name: 'a revoked key of a closed account', keyHash: 'gone', status: 'closed', code: 'unauthorized' },
]

for (const { name, status = 'active', code, ...who } of CASES) {
  t.test(`server-order: ${name} is answered ${code ?? 'what was ordered'} [refusal.order]`, async (t) => {
    const world = new World(NOW_MS)
    const { accountId, live } = makeTenant(world)
    changeState(world, 'account', accountId, { status })
    const order = { accountId, serverId: live.serverId, ...who }
    const replies = [
      world.run(createServer, { accountId, ...who, server: SERVER }),
      world.run(patchServer, { ...order, changes: { name: 'Other' } }),
      world.run(removeServer, order),
    ]
    for (const reply of replies) t.equal(reply.kind === 'refused' ? reply.code : null, code)
  })
}

t.test('server-order: another account’s server, a removed one and an unknown one are not found', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  const order = { accountId, keyHash: ACCOUNT_KEY, changes: {} }
  changeState(world, 'server', live.serverId, { accountId: 'other' })
  t.equal(world.run(removeServer, { ...order, serverId: test.serverId }).kind, 'removed')
  for (const serverId of [live.serverId, test.serverId, 'nobody']) {
    t.match(world.run(patchServer, { ...order, serverId }), { code: 'not_found' })
    t.match(world.run(removeServer, { ...order, serverId }), { code: 'not_found' })
  }
  t.match(world.run(createServer, { accountId: 'nobody', keyHash: null, by: BY, server: SERVER }), {
    code: 'not_found',
  })
})
