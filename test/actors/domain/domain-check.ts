/**
 * domain-check - months of a domain in one run: its timer, its lookups, the effect of each finding, and the notices.
 */

import t from 'tap'
import { addDomain } from '../../../src/actors/domain/add-domain.ts'
import { CHECK_LANE, checkOutcome, prepareCheck, recordCheck } from '../../../src/actors/domain/domain-check.ts'
import { removeDomain } from '../../../src/actors/domain/remove-domain.ts'
import { NOTICE_LANE } from '../../../src/state/dashboard/places.ts'
import type { DomainCheck, DomainState } from '../../../src/state/domain.ts'
import { administratorsKey } from '../../../src/state/keys.ts'
import { ACCOUNT_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const OK: DomainCheck = { returnPath: 'ok', dkim: 'ok' }
const GONE: DomainCheck = { returnPath: 'missing', dkim: 'ok' }
const FAILED: DomainCheck = { returnPath: 'dns_error', dkim: 'ok' }

function begin(administrators: readonly string[] = []) {
  const world = new World(NOW_MS)
  const { accountId } = makeTenant(world)
  const order = { accountId, keyHash: ACCOUNT_KEY }
  const fields = new Map(administrators.map((address, place) => [String(place), address]))
  if (fields.size > 0) world.keys.set(administratorsKey(world.shard, accountId), { type: 'hash', fields })
  const named = { domain: 'mail.acme.example', selector: 'sw1', publicKey: 'p', sealedPrivateKey: 's' }
  const added = world.run(addDomain, { ...order, ...named })
  if (added.kind !== 'added') throw new Error('Domain was not added')
  const { domainId } = added.domain
  const stateOf = () => world.states.get(`domain:${domainId}`) as DomainState
  /** Lets time pass in minutes; every look-up finds `found`. Out: when there were any, after the start. */
  const live = (forMs: number, found: DomainCheck): number[] => {
    const looks: number[] = []
    const beganAtMs = world.nowMs
    while (world.nowMs < beganAtMs + forMs) {
      world.nowMs += MINUTE_MS
      world.fireTimers()
      const due = world.items.get(`${CHECK_LANE} ${domainId}`)
      if (due === undefined) continue
      const claim = world.claim(prepareCheck, due)
      if (claim === null) continue
      looks.push(world.nowMs - beganAtMs)
      world.end(checkOutcome, claim, found)
    }
    return looks
  }
  const notices = () => world.deliveries().filter(({ lane }) => lane === NOTICE_LANE)
  return { world, order: { ...order, domainId }, domainId, stateOf, live, notices }
}

t.test('domain-check: a new domain is checked often, then hourly, then daily [domain.schedule]', async (t) => {
  const { live, stateOf, notices } = begin()
  const looks = live(6 * DAY_MS, GONE)
  t.ok((looks[0] ?? 0) <= MINUTE_MS, 'within a minute of being added')
  const waits = looks.slice(1).map((at, index) => at - (looks[index] ?? 0))
  const counts = [5 * MINUTE_MS, HOUR_MS, DAY_MS].map((wait) => waits.filter((one) => one === wait).length)
  t.same(counts, [12, 72, 2])
  t.equal(waits.length, 86, 'and no other wait')
  t.match(stateOf(), { verified: false, failingSinceMs: null, warningBeganAtMs: null })
  t.same(notices(), [], 'nobody is told of what never was')
})

t.test('domain-check: verified, warned, ended, and verified again [domain.states] [domain.notice]', async (t) => {
  const { world, live, stateOf, notices } = begin(['ada@acme.example', 'bob@acme.example'])
  live(MINUTE_MS, OK)
  t.match(stateOf(), { verified: true, failingSinceMs: null })
  t.same(live(3 * DAY_MS, OK), [DAY_MS, 2 * DAY_MS, 3 * DAY_MS])
  t.same(notices(), [])
  t.same(live(DAY_MS, GONE), [DAY_MS])
  const warnedAtMs = world.nowMs
  t.match(stateOf(), { verified: true, failingSinceMs: warnedAtMs, warningBeganAtMs: warnedAtMs })
  t.same(
    notices().map(({ item }) => item.split('.').filter((_, place) => place !== 1)),
    ['0', '1'].map((place) => ['warning', place, String(warnedAtMs)]),
  )
  t.equal(live(DAY_MS, GONE).length, 24, 'hourly in the warning')
  t.match(stateOf(), { verified: false, failingSinceMs: null, warningBeganAtMs: warnedAtMs })
  t.equal(notices().filter(({ item }) => item.startsWith('ended.')).length, 2)
  t.equal(live(HOUR_MS, GONE)[0], 5 * MINUTE_MS, 'then as closely as a new one')
  t.equal(notices().length, 4, 'and nobody is told again')
  live(HOUR_MS, OK)
  t.match(stateOf(), { verified: true, failingSinceMs: null, warningBeganAtMs: null })
})

t.test('domain-check: found again within the warning, it is over [domain.states]', async (t) => {
  const { live, stateOf, notices } = begin(['ada@acme.example'])
  live(MINUTE_MS, OK)
  live(DAY_MS, GONE)
  t.same(live(2 * HOUR_MS, OK), [HOUR_MS], 'then daily again')
  t.match(stateOf(), { verified: true, failingSinceMs: null, warningBeganAtMs: null })
  t.equal(notices().length, 1)
})

t.test('domain-check: a failure of the resolver changes nothing, in any state [domain.states]', async (t) => {
  const { live, stateOf, notices } = begin()
  live(MINUTE_MS, FAILED)
  t.match(stateOf(), { verified: false, lastCheckedAtMs: null })
  live(10 * MINUTE_MS, OK)
  live(DAY_MS, GONE)
  const warned = stateOf()
  t.equal(live(3 * DAY_MS, FAILED).length, 72)
  t.same(stateOf(), warned, 'also past the day of the warning')
  t.equal(notices().length, 1)
})

t.test(
  'domain-check: the verify operation moves the next check and returns the same result [domain.verify]',
  async (t) => {
    const { world, live, order, stateOf, notices } = begin()
    live(MINUTE_MS, GONE)
    world.run(recordCheck, { ...order, check: OK })
    t.same(live(HOUR_MS, OK), [], 'verified, a day goes by')
    world.run(recordCheck, { ...order, check: GONE })
    t.equal(stateOf().failingSinceMs, world.nowMs)
    const [notice] = notices()
    t.match(notice?.item, /^warning\.[\w-]+\.-\.\d+$/, 'an account without administrators has a notice for the log')
    t.same(live(HOUR_MS, GONE), [HOUR_MS])
  },
)

t.test('domain-check: a removed domain is checked no longer [domain.remove]', async (t) => {
  const { world, live, order, domainId, stateOf } = begin()
  live(MINUTE_MS, OK)
  world.nowMs += DAY_MS
  world.fireTimers()
  const claim = world.claim(prepareCheck, world.items.get(`${CHECK_LANE} ${domainId}`)!)
  world.run(removeDomain, order)
  t.notOk(
    [...world.items.keys()].some((name) => name.includes(domainId)),
    'its timer and its look-up are gone',
  )
  const removed = stateOf()
  world.end(checkOutcome, claim!, OK)
  t.same(stateOf(), removed, 'what was on its way changes nothing')
  t.same(live(2 * DAY_MS, OK), [])
})

t.test('domain-check: an abandoned lookup never prevents the next one [domain.schedule]', async (t) => {
  const { world, live, domainId } = begin()
  live(MINUTE_MS, OK)
  world.nowMs += DAY_MS
  world.fireTimers()
  world.end(checkOutcome, world.claim(prepareCheck, world.items.get(`${CHECK_LANE} ${domainId}`)!)!, null)
  t.same(live(DAY_MS, OK).length, 1)
})
