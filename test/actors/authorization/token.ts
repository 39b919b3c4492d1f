/** token - which keys may manage the keys of which owner, in the order of refusals. */

import t from 'tap'
import type { Ref, States } from '../../../cluster/behaviour.ts'
import type { Turn } from '../../../src/actors/authorization/proof.ts'
import { authorizeKeyHolder, type TokenOrder, tokenOrderEntities } from '../../../src/actors/authorization/token.ts'
import { ACCOUNT_KEY, changeState, LIVE_KEY, makeTenant, TEST_KEY } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20)
/** No session orders here, so nothing of a turn is looked at. */
const TURN = {} as Turn

function statesOf(world: World): States {
  return { get: ({ kind, id }: Ref) => world.states.get(`${kind}:${id}`) ?? null } as unknown as States
}

t.test('token-order: refused, in order [refusal.order]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live, test } = makeTenant(world)
  const other = makeTenant(world)
  const own: TokenOrder = { accountId, serverId: live.serverId, orderedBy: 'server', keyHash: LIVE_KEY }
  const byAccount: TokenOrder = { ...own, orderedBy: 'account', keyHash: ACCOUNT_KEY }
  const byOperator: TokenOrder = { ...own, orderedBy: 'operator', keyHash: '' }
  const foreign = { serverId: other.live.serverId }
  const cases: [TokenOrder, open: string | null, closed: string][] = [
    [own, null, 'account_not_active'],
    [byAccount, null, 'account_not_active'],
    [byOperator, null, 'account_closed'],
    [{ ...byAccount, serverId: null }, null, 'account_not_active'],
    [{ ...byOperator, serverId: null }, null, 'account_closed'],
    [{ ...own, keyHash: TEST_KEY }, 'unauthorized', 'unauthorized'],
    [{ ...own, keyHash: ACCOUNT_KEY }, 'unauthorized', 'unauthorized'],
    [{ ...own, serverId: null }, 'unauthorized', 'unauthorized'],
    [{ ...own, serverId: test.serverId }, 'unauthorized', 'unauthorized'],
    [{ ...own, ...foreign }, 'unauthorized', 'unauthorized'],
    [{ ...byAccount, keyHash: LIVE_KEY }, 'unauthorized', 'unauthorized'],
    [{ ...byAccount, ...foreign }, 'not_found', 'account_not_active'],
    [{ ...byOperator, ...foreign }, 'not_found', 'account_closed'],
    [{ ...byOperator, accountId: other.live.streamId }, 'not_found', 'not_found'],
    [{ ...byAccount, accountId: other.live.streamId }, 'unauthorized', 'unauthorized'],
  ]
  for (const closed of [false, true]) {
    if (closed) changeState(world, 'account', accountId, { status: 'closed' })
    for (const [order, whileOpen, whenClosed] of cases) {
      const holder = authorizeKeyHolder(order, statesOf(world), TURN)
      const expected = closed ? whenClosed : whileOpen
      t.equal('answer' in holder ? holder.answer.code : null, expected, `${JSON.stringify(order)} ${closed}`)
    }
  }
})

t.test('token-order: the entities that are loaded, and the owners of the keys', async (t) => {
  const order: TokenOrder = { accountId: 'a', serverId: null, orderedBy: 'operator', keyHash: '' }
  t.same(tokenOrderEntities(order), [{ kind: 'account', id: 'a' }])
  t.same(tokenOrderEntities({ ...order, serverId: 's' }), [
    { kind: 'account', id: 'a' },
    { kind: 'server', id: 's' },
  ])
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const byOperator = { ...order, accountId }
  t.match(authorizeKeyHolder(byOperator, statesOf(world), TURN), {
    ownerId: accountId,
    grant: { kind: 'account', serverId: null },
  })
  const ofServer = authorizeKeyHolder({ ...byOperator, serverId: live.serverId }, statesOf(world), TURN)
  t.match(ofServer, { ownerId: live.serverId, grant: { kind: 'server', mode: 'live', streamId: live.streamId } })
})
