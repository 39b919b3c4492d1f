/** plan - the choice of a pool by rules, and of a source by weight. */

import t from 'tap'
import type { EgressBody } from '../../../schemas/operator/egress.ts'
import { choosePool, type MailOf, makePlan, needsHosts, pickMember } from '../../../src/outbound/egress/plan.ts'
import { WARM_UP_SCHEDULE, warmUpCeiling } from '../../../src/outbound/egress/warm-up.ts'
import { egressDocument, egressPlan } from '../../support/world/egress.ts'

const ID = '0192f3a0-0000-7000-8000-00000000000'
const BODY: Partial<EgressBody> = {
  sources: [
    { name: 'a', address: '192.0.2.1' },
    { name: 'b', address: '192.0.2.2' },
    { name: 'constructor', relay: 'smtp://user@relay.test:587', password: 'secret' },
  ],
  pools: [
    { name: 'own', sources: [{ source: 'a', weight: 3 }, { source: 'b' }] },
    { name: 'valueof', sources: [{ source: 'default' }] },
    { name: 'relayed', sources: [{ source: 'constructor' }] },
  ],
  rules: [
    { accountId: `${ID}1`, pool: 'relayed' },
    { serverId: `${ID}2`, streamKind: 'broadcast', pool: 'own' },
    { site: 'google.com', pool: 'own' },
    { streamId: `${ID}3`, pool: 'default' },
  ],
}
const MAIL: MailOf = { accountId: null, serverId: null, streamId: null, streamKind: 'transactional', domain: 'a.test' }

const RULES: [mail: Partial<MailOf>, hosts: string[] | null, pool: string, rule: number | null][] = [
  [{}, ['mx.a.test'], 'default', null],
  [{ accountId: `${ID}1` }, ['aspmx.l.google.com'], 'relayed', 0],
  [{ serverId: `${ID}2` }, ['mx.a.test'], 'default', null],
  [{ serverId: `${ID}2`, streamKind: 'broadcast' }, ['mx.a.test'], 'own', 1],
  [{}, ['aspmx.l.google.com'], 'own', 2],
  [{}, ['notgoogle.com'], 'default', null],
  [{ domain: 'eu.google.com' }, null, 'own', 2],
  [{ streamId: `${ID}3` }, ['mx.a.test'], 'default', 3],
]
for (const [mail, hosts, pool, rule] of RULES)
  t.test(`egress: ${JSON.stringify(mail)} at ${hosts} goes by ${pool} [egress.rule]`, async (t) => {
    const chosen = choosePool(egressPlan(BODY), { ...MAIL, ...mail }, hosts)
    t.same([chosen.pool.name, chosen.rule], [pool, rule])
  })

t.test('egress: mail servers are looked up only for a rule of a site or a source that sends to them', async (t) => {
  const plan = egressPlan(BODY, true)
  t.ok(needsHosts(plan, MAIL), 'a rule of a site may match')
  const relayed = egressPlan({ ...BODY, rules: [], defaultPool: 'relayed' })
  t.notOk(needsHosts(relayed, MAIL))
  t.notOk(relayed.isDirect)
  t.notOk(needsHosts(egressPlan({}, true), MAIL), 'all mail goes to RELAY_URL')
  t.ok(needsHosts(egressPlan(), MAIL))
})

t.test('egress: weights divide the mail, and 0 is for the time without another source [egress.pool]', async (t) => {
  const members = egressPlan(BODY).pools.get('own')!.members
  const counts = { a: 0, b: 0 }
  for (let n = 0; n < 400; n += 1) counts[pickMember(members, n / 400)!.source.name as 'a' | 'b'] += 1
  t.same(counts, { a: 300, b: 100 })
  const spare = members.map((member, at) => ({ ...member, weight: at === 0 ? 0 : 1 }))
  t.equal(pickMember(spare, 0)?.source.name, 'b')
  t.equal(pickMember([spare[0]!], 0.5)?.source.name, 'a')
  t.equal(pickMember([], 0.5), null)
})

t.test('egress: a password that cannot be opened is a fault of its source alone [egress.password]', async (t) => {
  const plan = makePlan({ document: egressDocument(BODY), passwordOf: () => undefined, hasRelay: false })
  t.match(plan.sources.get('constructor'), { fault: /cannot be opened/ })
  t.equal(plan.sources.get('a')?.fault, null)
  const opened = egressPlan(BODY).sources.get('constructor')
  t.match(opened, { fault: null, relay: { target: { auth: { user: 'user', pass: 'secret' } }, connections: 10 } })
})

t.test('egress: a document of a later version loses what is not known', async (t) => {
  const document = egressDocument(BODY)
  const later = {
    ...document,
    pools: [{ name: 'own', sources: [{ source: 'gone', weight: 1 }] }],
    defaultPool: 'own',
  }
  const plan = makePlan({ document: later, passwordOf: () => null, hasRelay: false })
  t.equal(plan.defaultPool.name, 'default')
  t.equal(plan.rules.length, 1, 'rules of pools without sources are left out')
})

t.test('egress: the published schedule rises each day for 30 days [egress.warmup]', async (t) => {
  t.equal(WARM_UP_SCHEDULE.length, 30)
  t.ok(WARM_UP_SCHEDULE.every((value, day) => day === 0 || value > WARM_UP_SCHEDULE[day - 1]!))
  const warmUp = { startMs: Date.parse('2026-12-01T00:00:00Z'), schedule: [5, 7] }
  const at = (text: string) => warmUpCeiling(warmUp, Date.parse(text))
  t.equal(at('2026-11-30T23:59:59.999Z'), 0, 'nothing before the first day')
  t.equal(at('2026-12-01T00:00:00Z'), 5)
  t.equal(at('2026-12-02T23:59:59Z'), 7)
  t.equal(at('2026-12-03T00:00:00Z'), null, 'no ceiling afterwards')
})
