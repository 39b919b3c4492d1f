/** account-status - FIXTHIS. */

import t from 'tap'
import { patchAccount } from '../../../src/actors/account/change-account.ts'
import type { AccountLimits } from '../../../src/state/account.ts'
import { accountState, BY, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

const CASES: readonly { changes: Partial<AccountLimits>; max: number | null }[] = [
  { changes: { monthlyCap: 100_000 }, max: null },
  { changes: { monthlyCap: 100_001 }, max: 100_000 },
  { changes: { monthlyCap: 100_001, approvedCap: 20_000 }, max: null },
  { changes: { monthlyCap: 500, highestCap: 500 }, max: null },
  { changes: { monthlyCap: 501, highestCap: 500 }, max: 500 },
  { changes: { monthlyCap: 501, highestCap: null, approvedCap: 50 }, max: 500 },
  { changes: { highestCap: 9_999 }, max: 9_999 },
  { changes: { approvedCap: 999 }, max: 9_990 },
  {
    changes: {
      perMinuteLimit: 1,
      serverLimit: 99,
      testMonthlyCap: 1,
      testPerMinuteLimit: 2,
      inboundPerMinuteLimit: 3,
      subscriptionActive: false,
    },
    max: null,
  },
  { changes: {}, max: null },
]

for (const { changes, max } of CASES) {
  t.test(`patch-account: ${JSON.stringify(changes)} ${max === null ? 'holds' : 'is limit_too_high'}`, async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const before = accountState(world, tenant)
    const reply = world.run(patchAccount, { accountId: tenant.accountId, changes, by: BY })
    const after = max === null ? { ...before, ...changes } : before
    t.same(accountState(world, tenant), after)
    if (max === null) t.same(reply, { kind: 'account', account: after, counters: null })
    else t.same(reply, { kind: 'refused', code: 'limit_too_high', extra: { max } })
  })
}

t.test('patch-account: a changed limit counts from the next request', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId } = tenant
  send(world, tenant)
  const reply = world.run(patchAccount, { accountId, changes: { perMinuteLimit: 1 }, by: BY })
  t.match(reply, { counters: { minute: [NOW_MS / 60_000, 1] } })
  t.match(send(world, tenant), { code: 'rate_limited', extra: { limit: 1, used: 1 } })
  world.run(patchAccount, { accountId, changes: { perMinuteLimit: 2 }, by: BY })
  t.equal(send(world, tenant).kind, 'accepted')
})

t.test('patch-account: an unknown account is not found', async (t) => {
  const reply = new World(NOW_MS).run(patchAccount, { accountId: 'nobody', changes: {}, by: BY })
  t.same(reply, { kind: 'refused', code: 'not_found', extra: {} })
})
