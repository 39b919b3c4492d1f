/** held - mail of a paused account leaves its lane, waits, and comes back with its attempts. */

import t from 'tap'
import { closeAccount, pauseAccount, resumeAccount } from '../../../src/actors/account/change-account.ts'
import type { AttemptOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { heldKey } from '../../../src/state/keys.ts'
import { BY, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const HOUR_MS = 3_600_000

const DEFERRED: AttemptOutcome = {
  result: 'deferred',
  code: 451,
  response: '451 later',
  classification: null,
  hard: false,
  expired: false,
  unbuildable: false,
  sizeBytes: 1000,
  retryAfterMs: null,
  hmac: null,
}

function start(recipients = 1) {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const to = Array.from({ length: recipients }, (_, n) => makeRecipient(`a${n}@example.net`))
  send(world, tenant, { messages: [makeItem({ recipients: to })] })
  const of = { accountId: tenant.accountId, by: BY }
  return { world, of, held: heldKey(world.shard, tenant.accountId) }
}

t.test('held: an attempt that becomes due is not made, and its item returns to the lane [account.hold]', async (t) => {
  const { world, of, held } = start(2)
  const [first, second] = world.deliveries()
  const claim = world.claim(prepareAttempt, first!)
  world.end(attemptOutcome, claim!, DEFERRED)
  world.run(pauseAccount, { ...of, hold: true })
  t.equal(world.fireTimers(), 0)
  for (const due of [first!, second!]) {
    world.items.set(`${due.lane} ${due.item}`, { ...due, claims: 1 })
    t.equal(world.claim(prepareAttempt, due), null)
  }
  t.same(
    world.deliveries().filter(({ lane }) => lane.startsWith('deliver/')),
    [],
  )
  t.same(
    [...world.sorted(held)],
    [
      [`deliver/example.net 1 ${first!.item}`, NOW_MS],
      [`deliver/example.net 0 ${second!.item}`, NOW_MS],
    ],
  )
  world.nowMs += HOUR_MS
  world.run(resumeAccount, of)
  t.equal(world.fireTimers(), 2)
  t.equal(world.sorted(held).size, 0)
  t.same(
    world.deliveries().map(({ lane, item, atMs, claims }) => [lane, item, atMs, claims]),
    [
      ['deliver/example.net', second!.item, world.nowMs, 0],
      ['deliver/example.net', first!.item, world.nowMs, 1],
    ],
    'due at once, the attempts counted on',
  )
  t.equal(world.claim(prepareAttempt, world.deliveries()[1]!)?.attempt, 2)
})

t.test(
  'held: without hold accepted mail is delivered, and a change to such a pause releases what waits [account.hold]',
  async (t) => {
    const { world, of, held } = start()
    const [due] = world.deliveries()
    world.run(pauseAccount, { ...of, hold: false })
    t.ok(world.run(prepareAttempt, due!))
    world.run(pauseAccount, { ...of, hold: true })
    t.equal(world.run(prepareAttempt, due!), null)
    t.equal(world.sorted(held).size, 1)
    world.run(pauseAccount, { ...of, hold: false })
    world.fireTimers()
    t.equal(world.sorted(held).size, 0)
  },
)

t.test('held: closing lets accepted mail go', async (t) => {
  const { world, of, held } = start()
  world.run(pauseAccount, { ...of, hold: true })
  world.claim(prepareAttempt, world.deliveries()[0]!)
  world.run(closeAccount, of)
  world.fireTimers()
  t.equal(world.sorted(held).size, 0)
  t.ok(world.claim(prepareAttempt, world.deliveries()[0]!))
})

t.test('held: the release runs in steps, and stops if the account is held again', async (t) => {
  const { world, of, held } = start()
  const [due] = world.deliveries()
  world.run(pauseAccount, { ...of, hold: true })
  const members = Array.from({ length: 450 }, (_, n) => `deliver/d${n} 0 ${due!.item}`)
  for (const member of members) world.apply({ key: held, write: 'ZADD', args: ['1', member] })
  world.run(resumeAccount, of)
  world.run(pauseAccount, { ...of, hold: true })
  t.equal(world.fireTimers(), 2)
  t.equal(world.sorted(held).size, 450)
  world.run(resumeAccount, of)
  t.equal(world.fireTimers(), 4)
  t.equal(world.sorted(held).size, 0)
  t.equal(world.deliveries().length, 451)
})

t.test('held: a failure after 48 hours is the last [account.hold]', async (t) => {
  const { world, of } = start()
  world.run(pauseAccount, { ...of, hold: true })
  world.claim(prepareAttempt, world.deliveries()[0]!)
  world.nowMs += 49 * HOUR_MS
  world.run(resumeAccount, of)
  world.fireTimers()
  const [due] = world.deliveries()
  world.end(attemptOutcome, world.claim(prepareAttempt, due!)!, DEFERRED)
  t.same(
    world.deliveries().filter(({ lane }) => lane.startsWith('deliver/')),
    [],
  )
})
