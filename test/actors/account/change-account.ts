/** change-account - the allowed transitions between account statuses, and the answer to each forbidden one. */

import t from 'tap'
import {
  approveAccount,
  closeAccount,
  pauseAccount,
  resumeAccount,
} from '../../../src/actors/account/change-account.ts'
import { unpackAudit } from '../../../src/state/audit.ts'
import { fieldsOfSettings } from '../../../src/state/dashboard/member.ts'
import { settingsKey } from '../../../src/state/dashboard/places.ts'
import { auditKey } from '../../../src/state/keys.ts'
import { accountState, BY, changeState, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

type Act = 'approve' | 'pause' | 'pause without hold' | 'resume' | 'close'

function order(world: World, accountId: string, act: Act) {
  const of = { accountId, by: BY }
  if (act === 'approve') return world.run(approveAccount, { ...of, monthlyCap: 50_000, perMinuteLimit: 600 })
  if (act === 'resume') return world.run(resumeAccount, of)
  return act === 'close' ? world.run(closeAccount, of) : world.run(pauseAccount, { ...of, hold: act === 'pause' })
}

/** status and held before, act, then status and held, or the code. */
const CASES: readonly [status: string, held: boolean, act: Act, then: string, heldThen?: boolean][] = [
  ['pending', false, 'approve', 'active', false],
  ['pending', false, 'pause', 'account_not_active'],
  ['pending', false, 'resume', 'account_not_active'],
  ['pending', false, 'close', 'closed', false],
  ['active', false, 'approve', 'account_not_pending'],
  ['active', false, 'pause', 'paused', true],
  ['active', false, 'pause without hold', 'paused', false],
  ['active', false, 'resume', 'active', false],
  ['active', false, 'close', 'closed', false],
  ['paused', true, 'approve', 'account_not_pending'],
  ['paused', true, 'pause', 'paused', true],
  ['paused', false, 'pause', 'paused', true],
  ['paused', true, 'pause without hold', 'paused', false],
  ['paused', true, 'resume', 'active', false],
  ['paused', true, 'close', 'closed', false],
  ['closed', false, 'approve', 'account_not_pending'],
  ['closed', false, 'pause', 'account_closed'],
  ['closed', false, 'resume', 'account_closed'],
  ['closed', false, 'close', 'account_closed'],
]

for (const [status, held, act, then, heldThen] of CASES) {
  t.test(`account-status: ${act} of ${status}${held ? ' and held' : ''} is ${then} [account.states]`, async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    changeState(world, 'account', tenant.accountId, { status, held })
    const before = accountState(world, tenant)
    const reply = order(world, tenant.accountId, act)
    const log = world.sorted(auditKey(world.shard, '202611'))
    if (heldThen === undefined) {
      t.match(reply, { kind: 'refused', code: then })
      t.same(accountState(world, tenant), before)
      return t.equal(log.size, 0)
    }
    const after = accountState(world, tenant)
    t.match(reply, { kind: 'account', account: { status: then, held: heldThen } })
    t.match(after, { status: then, held: heldThen })
    t.equal(log.size, 1, 'what changes nothing is logged too')
    const [member = ''] = [...log.keys()]
    t.match(unpackAudit(member).after, status === then ? {} : { status: then })
    const isReleased = [...world.items.keys()].includes(`timers release:${tenant.accountId}`)
    t.equal(isReleased, held && !heldThen, 'held mail is released')
  })
}

t.test('account-status: an approval sets the cap applied for, the monthly cap and the rate', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'account', tenant.accountId, { status: 'pending' })
  order(world, tenant.accountId, 'approve')
  t.match(accountState(world, tenant), { approvedCap: 50_000, monthlyCap: 50_000, perMinuteLimit: 600 })
  changeState(world, 'account', tenant.accountId, { status: 'pending', highestCap: 7 })
  const approve = { accountId: tenant.accountId, perMinuteLimit: null, by: BY }
  t.match(world.run(approveAccount, { ...approve, monthlyCap: 8 }), { code: 'limit_too_high', extra: { max: 7 } })
  t.equal(world.run(approveAccount, { ...approve, monthlyCap: 7 }).kind, 'account')
  t.equal(accountState(world, tenant).perMinuteLimit, 600, 'a rate that is not given stays')
})

/** Volume applied for, null for no application; then the cap. */
const VOLUMES: readonly [volume: number | null, cap: number][] = [
  [null, 10_000],
  [1, 10_000],
  [10_000, 10_000],
  [10_001, 50_000],
  [250_000, 250_000],
  [250_001, 1_000_000],
  [1_000_000, 1_000_000],
]

t.test('account-status: an approval without a cap uses the cap of the requested volume [account.limits]', async (t) => {
  const approve = (volume: number | null) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const { accountId } = tenant
    changeState(world, 'account', accountId, { status: 'pending' })
    const application = volume && { monthlyVolume: volume, purpose: 'Receipts', website: null, atMs: NOW_MS }
    if (application) {
      const key = settingsKey(world.shard, accountId)
      world.apply({ key, write: 'HSET', args: fieldsOfSettings({ application }) })
    }
    const reply = world.run(approveAccount, { accountId, by: BY, monthlyCap: null, perMinuteLimit: null })
    return { reply, state: accountState(world, tenant) }
  }
  for (const [volume, cap] of VOLUMES)
    t.match(approve(volume).state, { status: 'active', approvedCap: cap, monthlyCap: cap }, `${volume}`)
  const { reply, state } = approve(1_000_001)
  t.match(reply, { code: 'invalid_request', extra: { monthlyVolume: 1_000_001 } })
  t.equal(state.status, 'pending')
})

t.test('account-status: the answer to a send, live and test', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const told = (test: boolean) => {
    const reply = send(world, tenant, { test })
    return reply.kind === 'refused' ? reply.code : reply.kind
  }
  order(world, tenant.accountId, 'pause')
  t.same([told(false), told(true)], ['account_paused', 'account_paused'])
  order(world, tenant.accountId, 'resume')
  t.same([told(false), told(true)], ['accepted', 'accepted'])
  order(world, tenant.accountId, 'close')
  t.same([told(false), told(true)], ['account_not_active', 'account_not_active'])
})

t.test('account-status: an account that does not exist is not found', async (t) => {
  for (const act of ['approve', 'pause', 'resume', 'close'] as const)
    t.match(order(new World(NOW_MS), 'nobody', act), { code: 'not_found' })
})
