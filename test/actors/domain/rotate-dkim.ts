/** rotate-dkim - another key is ordered, waited for, found, and signs what is accepted from then on. */

import t from 'tap'
import { addDomain } from '../../../src/actors/domain/add-domain.ts'
import { recordCheck } from '../../../src/actors/domain/domain-check.ts'
import { rotateDkim } from '../../../src/actors/domain/rotate-dkim.ts'
import type { AttemptJob } from '../../../src/actors/message/prepare-attempt.ts'
import { pairAt, unpackPair } from '../../../src/state/dkim-pair.ts'
import { type DomainCheck, type DomainState, unpackSending } from '../../../src/state/domain.ts'
import { dkimKey, sendingKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, LIVE_KEY, makeItem, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const DOMAIN = 'mail.acme.example'
const OK: DomainCheck = { returnPath: 'ok', dkim: 'ok' }

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const key = { accountId: tenant.accountId, keyHash: ACCOUNT_KEY }
  const added = world.run(addDomain, {
    ...key,
    domain: DOMAIN,
    selector: 'sw1',
    publicKey: 'p1',
    sealedPrivateKey: 's1',
  })
  if (added.kind !== 'added') throw new Error('Domain was not added')
  const { domainId } = added.domain
  const order = { ...key, domainId }
  const check = (found: DomainCheck) => world.run(recordCheck, { ...order, check: found })
  const rotate = (selector: string) =>
    world.run(rotateDkim, { ...order, selector, publicKey: `p-${selector}`, sealedPrivateKey: `s-${selector}` })
  const stateOf = () => world.states.get(`domain:${domainId}`) as DomainState
  const rows = () => world.hash(dkimKey(world.shard, tenant.accountId, DOMAIN))
  /** Accepts a message. Returns its time and the time from which its key signs. */
  const accepted = () => {
    const before = new Set(world.items.keys())
    send(world, tenant, { messages: [makeItem({ from: { ...makeItem().from, domain: DOMAIN } })] })
    const due = [...world.items.entries()].find(([name]) => !before.has(name))![1]
    const { acceptedAtMs, keySinceMs } = (due.job as AttemptJob).message
    return {
      first: pairAt(rows(), keySinceMs ?? acceptedAtMs)?.selector,
      again: pairAt(rows(), acceptedAtMs)?.selector,
    }
  }
  check(OK)
  return { world, tenant, order, check, rotate, stateOf, rows, accepted, domainId }
}

t.test('rotate-dkim: the key exists, does not sign yet, and is looked up often [domain.rotate]', async (t) => {
  const { world, rotate, stateOf, rows, accepted, domainId } = begin()
  const before = stateOf()
  const reply = rotate('sw2')
  t.match(reply, { kind: 'rotating', domain: { selector: 'sw1', pending: { selector: 'sw2', publicKey: 'p-sw2' } } })
  t.same(stateOf(), { ...before, pending: { selector: 'sw2', publicKey: 'p-sw2', orderedAtMs: world.nowMs } })
  t.same(unpackPair('sw2', rows().get('sw2')), {
    selector: 'sw2',
    sinceMs: 0,
    publicKey: 'p-sw2',
    sealedPrivateKey: 's-sw2',
  })
  t.same(accepted(), { first: 'sw1', again: 'sw1' })
  t.equal(world.items.get(`timers check:${domainId}`)?.atMs, world.nowMs + 30_000)
})

t.test('rotate-dkim: a second order while a key is pending returns the same key [domain.rotate]', async (t) => {
  const { rotate, rows } = begin()
  rotate('sw2')
  t.match(rotate('sw3'), { kind: 'rotating', domain: { pending: { selector: 'sw2' } } })
  t.same([...rows().keys()], ['sw1', 'sw2'])
})

t.test(
  'rotate-dkim: until the key is found nothing changes; from then on it signs, each attempt alike [domain.rotate]',
  async (t) => {
    const { world, tenant, check, rotate, stateOf, accepted } = begin()
    rotate('sw2')
    for (const pendingDkim of ['missing', 'mismatch', 'dns_error'] as const) {
      check({ ...OK, pendingDkim })
      t.match(stateOf(), { selector: 'sw1', pending: { selector: 'sw2' }, verified: true, failingSinceMs: null })
    }
    t.same(accepted(), { first: 'sw1', again: 'sw1' })
    world.nowMs += 1000
    // The former record may be gone already: it is no longer looked at.
    check({ returnPath: 'ok', dkim: 'missing', pendingDkim: 'ok' })
    const after = stateOf()
    t.match(after, { selector: 'sw2', publicKey: 'p-sw2', pending: null, verified: true, failingSinceMs: null })
    t.equal(after.dkim.verifiedAtMs, world.nowMs)
    const row = world.hash(sendingKey(world.shard, tenant.accountId)).get(DOMAIN) ?? ''
    t.equal(unpackSending(row).keySinceMs, after.keySinceMs)
    const { first, again } = accepted()
    t.equal(first, again, 'in the millisecond of the change too')
    world.nowMs += 10
    t.same(accepted(), { first: 'sw2', again: 'sw2' })
  },
)

t.test('rotate-dkim: a lookup of the former key decides nothing about the new one [domain.rotate]', async (t) => {
  const { check, rotate, stateOf } = begin()
  rotate('sw2')
  check({ ...OK, pendingDkim: 'ok', selector: 'sw1' })
  const after = stateOf()
  check({ returnPath: 'ok', dkim: 'missing', selector: 'sw1' })
  t.same(stateOf(), after)
  t.equal(rotate('sw3').kind, 'rotating', 'and it may be rotated again')
})

t.test('rotate-dkim: refuses in order [refusal.order]', async (t) => {
  const { world, order } = begin()
  const body = { ...order, selector: 'sw2', publicKey: 'p', sealedPrivateKey: 's' }
  t.match(world.run(rotateDkim, { ...body, keyHash: LIVE_KEY, domainId: 'none' }), { code: 'unauthorized' })
  t.match(world.run(rotateDkim, { ...body, domainId: 'none' }), { code: 'not_found' })
})
