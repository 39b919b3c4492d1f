/** audit - the contents of an entry of the log, its key and its retention. */

import t from 'tap'
import { msOf } from '../../cluster/id.ts'
import { patchAccount } from '../../src/actors/account/change-account.ts'
import {
  type AuditRecord,
  auditOps,
  computeDifference,
  entryOps,
  packAudit,
  unpackAudit,
} from '../../src/state/audit.ts'
import { auditKey } from '../../src/state/keys.ts'
import { BY, makeTenant } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ENTRY: AuditRecord = {
  auditId: '01a1f8d8-8300-7017-8000-0e7faee555a7',
  actor: null,
  act: 'makeOperatorKey',
  note: 'lost it { " \u2028 Ø',
  targets: { tokenId: 'x' },
  before: null,
  after: { keys: [1, { a: null }] },
}

t.test(
  'audit: an act is logged by the commit that executes it, and a refused one is not [operator.audit]',
  async (t) => {
    const world = new World(NOW_MS)
    const { accountId } = makeTenant(world)
    const key = auditKey(world.shard, '202611')
    world.run(patchAccount, { accountId, changes: { monthlyCap: 100_001 }, by: BY })
    t.equal(world.sorted(key).size, 0)
    const changes = { monthlyCap: 5, perMinuteLimit: 300, highestCap: 7 }
    world.run(patchAccount, { accountId, changes, by: { ...BY, note: 'by phone' } })
    const [[member, score]] = [...world.sorted(key)] as [[string, number]]
    t.match(unpackAudit(member), {
      ...BY,
      note: 'by phone',
      targets: { accountId },
      before: { monthlyCap: 10_000, highestCap: null },
      after: { monthlyCap: 5, highestCap: 7 },
    })
    t.notOk('perMinuteLimit' in (unpackAudit(member).after ?? {}), 'what did not change is left out')
    t.equal(score, NOW_MS)
    t.equal(msOf(unpackAudit(member).auditId), NOW_MS)
  },
)

t.test('audit: unpacking returns the packed entry', async (t) => {
  t.same(unpackAudit(packAudit(ENTRY)), ENTRY)
})

t.test('audit: a month is deleted when its last day is 13 months old [operator.audit]', async (t) => {
  const expiryOf = (ms: number) => {
    const world = new World(ms)
    for (const op of auditOps({ shard: world.shard, newId: () => ENTRY.auditId }, BY, ENTRY)) world.apply(op)
    return [...world.expiries.values()]
  }
  const atMs = msOf(ENTRY.auditId)
  const { year, month } = { year: new Date(atMs).getUTCFullYear(), month: new Date(atMs).getUTCMonth() }
  t.same(expiryOf(NOW_MS), [Date.UTC(year, month + 14)])
  t.equal(entryOps(3, ENTRY)[0]?.key, `{s003}:audit:${year}${String(month + 1).padStart(2, '0')}`)
})

const DIFFERENCES: readonly [object, object, object, object][] = [
  [{ a: 1 }, { a: 1 }, {}, {}],
  [{ a: 1, b: 2 }, { a: 1, b: null }, { b: 2 }, { b: null }],
  [{}, { a: [1] }, { a: null }, { a: [1] }],
  [{ a: 1 }, {}, { a: 1 }, { a: null }],
  [{ a: undefined }, { a: null }, {}, {}],
]

t.test('audit: the difference of two states', async (t) => {
  for (const [was, is, before, after] of DIFFERENCES) t.same(computeDifference(was, is), { before, after })
})
