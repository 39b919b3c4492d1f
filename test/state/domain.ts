/** domain - the table of transitions, through the commands, and the refusals of each. */

import t from 'tap'
import { addDomain } from '../../src/actors/domain/add-domain.ts'
import { recordCheck } from '../../src/actors/domain/domain-check.ts'
import { removeDomain } from '../../src/actors/domain/remove-domain.ts'
import { pairAt } from '../../src/state/dkim-pair.ts'
import { type DomainState, type RecordResult, unpackSending } from '../../src/state/domain.ts'
import { dkimKey, domainsKey, namesKey, sendingKey, undecidedKey } from '../../src/state/keys.ts'
import { ACCOUNT_KEY, changeState, LIVE_KEY, makeItem, makeTenant, send, type Tenant } from '../support/world/tenant.ts'
import { World } from '../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const DAY_MS = 86_400_000
const DOMAIN = 'mail.acme.example'
const FIELDS = { domain: DOMAIN, selector: 'sw1', publicKey: 'public', sealedPrivateKey: 'sealed' }

type State = 'unverified' | 'verified' | 'warning'

interface Step {
  readonly from: State
  /** After `failingSince` in the warning. */
  readonly afterMs?: number
  readonly found: readonly [returnPath: RecordResult, dkim: RecordResult]
  readonly to: State
}

const STEPS: readonly Step[] = [
  { from: 'unverified', found: ['ok', 'ok'], to: 'verified' },
  { from: 'unverified', found: ['ok', 'missing'], to: 'unverified' },
  { from: 'unverified', found: ['mismatch', 'ok'], to: 'unverified' },
  { from: 'verified', found: ['ok', 'ok'], to: 'verified' },
  { from: 'verified', found: ['missing', 'ok'], to: 'warning' },
  { from: 'verified', found: ['ok', 'mismatch'], to: 'warning' },
  { from: 'warning', afterMs: 1000, found: ['ok', 'ok'], to: 'verified' },
  { from: 'warning', afterMs: DAY_MS - 1, found: ['missing', 'ok'], to: 'warning' },
  { from: 'warning', afterMs: DAY_MS, found: ['ok', 'mismatch'], to: 'unverified' },
  { from: 'warning', afterMs: 3 * DAY_MS, found: ['ok', 'ok'], to: 'verified' },
]

for (const { from, afterMs = 5000, found, to } of STEPS) {
  t.test(`domain: ${from}, ${found.join(' and ')} after ${afterMs} ms -> ${to} [domain.states]`, async (t) => {
    const { world, tenant, domain } = begin(from)
    world.nowMs += afterMs
    const after = check(world, tenant, domain.domainId, found)
    t.equal(stateOf(after), to)
    t.equal(after.lastCheckedAtMs, world.nowMs)
    const began = domain.failingSinceMs
    t.equal(after.failingSinceMs, to === 'warning' ? (began ?? world.nowMs) : null)
    const kept = to === 'verified' ? null : to === 'warning' ? (began ?? world.nowMs) : domain.warningBeganAtMs
    t.equal(after.warningBeganAtMs, kept)
    t.equal(after.returnPath.verified, found[0] === 'ok')
    t.equal(after.dkim.verified, found[1] === 'ok')
    t.equal(after.dkim.verifiedAtMs, found[1] === 'ok' ? (domain.dkim.verifiedAtMs ?? world.nowMs) : null)
    const row = world.hash(sendingKey(world.shard, tenant.accountId)).get(DOMAIN)
    t.equal(row !== undefined, to !== 'unverified')
    if (row !== undefined)
      t.same(unpackSending(row), {
        domainId: domain.domainId,
        failingSinceMs: after.failingSinceMs,
        keySinceMs: domain.keySinceMs,
      })
    t.equal(sendFrom(world, tenant), to === 'unverified' ? 'domain_not_verified' : 'accepted')
  })
}

for (const from of ['unverified', 'verified', 'warning'] as const) {
  t.test(`domain: ${from}: a failure of the resolver records nothing [domain.states]`, async (t) => {
    for (const found of [
      ['dns_error', 'ok'],
      ['dns_error', 'dns_error'],
    ] as const) {
      const { world, tenant, domain } = begin(from)
      world.nowMs += 2 * DAY_MS
      t.same(check(world, tenant, domain.domainId, found), domain)
      t.same(world.ops, [])
    }
  })

  t.test(
    `domain: ${from}: beside a wrong record it is undecided, until a look-up decides [domain.states]`,
    async (t) => {
      const { world, tenant, domain } = begin(from)
      const list = () => [...world.sorted(undecidedKey(world.shard))]
      world.nowMs += 1000
      const sinceMs = world.nowMs
      t.same(check(world, tenant, domain.domainId, ['missing', 'dns_error']), { ...domain, undecidedSinceMs: sinceMs })
      t.same(list(), domain.verified ? [[domain.domainId, sinceMs]] : [], 'the operator is shown those that send')
      world.nowMs += 1000
      t.equal(check(world, tenant, domain.domainId, ['dns_error', 'mismatch']).undecidedSinceMs, sinceMs, 'the first')
      t.equal(
        check(world, tenant, domain.domainId, ['dns_error', 'ok']).undecidedSinceMs,
        sinceMs,
        'nothing is decided',
      )
      t.equal(check(world, tenant, domain.domainId, ['missing', 'ok']).undecidedSinceMs, undefined)
      t.same(list(), [])
      check(world, tenant, domain.domainId, ['missing', 'dns_error'])
      t.equal(list().length, domain.verified ? 1 : 0)
      world.run(removeDomain, { accountId: tenant.accountId, keyHash: ACCOUNT_KEY, domainId: domain.domainId })
      t.same(list(), [], 'nor is one that was removed')
    },
  )
}

t.test('domain: added unverified, with names, list and keys', async (t) => {
  const { world, tenant, domain } = begin('unverified')
  t.match(domain, { domain: DOMAIN, verified: false, lastCheckedAtMs: null, createdAtMs: NOW_MS, selector: 'sw1' })
  t.equal(world.hash(namesKey(world.shard, tenant.accountId)).get(`domain/${DOMAIN}`), domain.domainId)
  t.same([...world.sorted(domainsKey(world.shard, tenant.accountId)).keys()], [domain.domainId])
  const pairs = world.hash(dkimKey(world.shard, tenant.accountId, DOMAIN))
  const { keySinceMs } = domain
  t.same(pairAt(pairs, NOW_MS), {
    selector: 'sw1',
    sinceMs: keySinceMs,
    publicKey: 'public',
    sealedPrivateKey: 'sealed',
  })
})

t.test('domain: the same again in an account is domain_exists, in another it is not', async (t) => {
  const { world, tenant, domain } = begin('unverified')
  const extra = { domainId: domain.domainId }
  t.same(add(world, tenant), { kind: 'refused', code: 'domain_exists', extra })
  const other = makeTenant(world)
  t.equal(add(world, other).kind, 'added')
})

t.test('domain: a removed domain sends nothing, is not found, and may be added again', async (t) => {
  const { world, tenant, domain } = begin('verified')
  const order = { accountId: tenant.accountId, keyHash: ACCOUNT_KEY, domainId: domain.domainId }
  t.same(world.run(removeDomain, order), { kind: 'removed' })
  t.equal(sendFrom(world, tenant), 'domain_not_verified')
  t.match(world.run(removeDomain, order), { code: 'not_found' })
  t.match(world.run(recordCheck, { ...order, check: { returnPath: 'ok', dkim: 'ok' } }), { code: 'not_found' })
  const key = dkimKey(world.shard, tenant.accountId, DOMAIN)
  t.equal(pairAt(world.hash(key), domain.keySinceMs)?.selector, 'sw1', 'accepted mail still goes out signed')
  world.nowMs += DAY_MS
  const again = add(world, tenant, { selector: 'sw2' })
  t.equal(again.kind, 'added')
  t.equal(pairAt(world.hash(key), domain.keySinceMs)?.selector, 'sw1', 'also once it was added again')
  t.equal(pairAt(world.hash(key), world.nowMs)?.selector, 'sw2')
  world.nowMs += 31 * DAY_MS
  t.equal(pairAt(world.hash(key), world.nowMs)?.selector, 'sw2', 'and its own keys stay')
  t.notOk(world.keyNames().some((key) => key.includes(domain.domainId)))
})

t.test('domain: every order refuses in order: key, account, domain [refusal.order]', async (t) => {
  const orders = [
    (world: World, order: object) => world.run(removeDomain, order as never),
    (world: World, order: object) =>
      world.run(recordCheck, { ...order, check: { returnPath: 'ok', dkim: 'ok' } } as never),
    (world: World, order: object) => world.run(addDomain, { ...order, ...FIELDS } as never),
  ]
  for (const [index, run] of orders.entries()) {
    const { world, tenant } = begin('unverified')
    const order = { accountId: tenant.accountId, domainId: 'nothing', keyHash: LIVE_KEY }
    changeState(world, 'account', tenant.accountId, { status: 'closed' })
    t.match(run(world, order), { code: 'unauthorized' })
    t.match(run(world, { ...order, accountId: 'nobody' }), { code: 'unauthorized' })
    t.match(run(world, { ...order, keyHash: ACCOUNT_KEY }), { code: 'account_not_active' })
    changeState(world, 'account', tenant.accountId, { status: 'paused' })
    const last = index === 2 ? 'domain_exists' : 'not_found'
    t.match(run(world, { ...order, keyHash: ACCOUNT_KEY }), { code: last })
    t.same(world.ops, [])
  }
})

t.test('domain: another account’s domain is not found', async (t) => {
  const { world, domain } = begin('verified')
  const other = makeTenant(world)
  const order = { accountId: other.accountId, keyHash: ACCOUNT_KEY, domainId: domain.domainId }
  t.match(world.run(removeDomain, order), { code: 'not_found' })
})

function begin(state: State): { world: World; tenant: Tenant; domain: DomainState } {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const added = add(world, tenant)
  if (added.kind !== 'added') throw new Error('Domain was not added')
  let { domain } = added
  if (state !== 'unverified') domain = check(world, tenant, domain.domainId, ['ok', 'ok'])
  if (state === 'warning') domain = check(world, tenant, domain.domainId, ['missing', 'ok'])
  return { world, tenant, domain }
}

function add(world: World, { accountId }: Tenant, changes: Partial<typeof FIELDS> = {}) {
  return world.run(addDomain, { accountId, keyHash: ACCOUNT_KEY, ...FIELDS, ...changes })
}

function check(
  world: World,
  tenant: Tenant,
  domainId: string,
  [returnPath, dkim]: readonly [RecordResult, RecordResult],
): DomainState {
  const order = { accountId: tenant.accountId, keyHash: ACCOUNT_KEY, domainId }
  const reply = world.run(recordCheck, { ...order, check: { returnPath, dkim } })
  if (reply.kind !== 'checked') throw new Error(`Check was refused: ${reply.code}`)
  t.same(reply.check, { returnPath, dkim })
  t.same(reply.domain, world.states.get(`domain:${domainId}`))
  return reply.domain
}

function stateOf({ verified, failingSinceMs }: DomainState): State {
  if (!verified) return 'unverified'
  return failingSinceMs === null ? 'verified' : 'warning'
}

function sendFrom(world: World, tenant: Tenant): string {
  const from = { ...makeItem().from, domain: DOMAIN }
  const reply = send(world, tenant, { messages: [makeItem({ from })] })
  return reply.kind === 'refused' ? reply.code : reply.kind
}
