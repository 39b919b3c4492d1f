/** sweep-events - the log of a server's events: its contents, and its removal by age, slice by slice. */
import t from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { eventSlicesKey, eventsKey } from '../../../src/state/keys.ts'
import { eventCutoffMs, eventLogOwner, eventOfEntry, logEvents } from '../../../src/state/webhook/event-log.ts'
import { ACCOUNT_KEY, acceptedIds, makeItem, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
const ADA = { address: 'ada@example.net', sizeBytes: 900, retryAfterMs: null, hmac: () => 'h'.repeat(22) }

t.test('sweep-events: nothing older than 30 days and a day is left, the rest is complete [event.search]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { serverId } = tenant.live
  const sent: { id: string; atMs: number }[] = []
  const slices = () => [...world.sorted(eventSlicesKey(world.shard, serverId)).keys()]
  for (let day = 0; day < 135; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
    if (day < 80) {
      const [id = ''] = acceptedIds(send(world, tenant))
      const due = world.deliveries().findLast(({ lane }) => !lane.startsWith('post/'))
      const claim = due === undefined ? null : world.claim(prepareAttempt, due)
      if (claim !== null) world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), ADA))
      sent.push({ id, atMs: world.nowMs })
    }
    const events = slices().flatMap((slice) => world.stream(eventsKey(world.shard, serverId, slice)).map(eventOfEntry))
    const ids = events.map((event) => (event.kind === 'message' ? event.messageId : ''))
    const kept = sent.filter(({ atMs }) => atMs >= eventCutoffMs(world.nowMs))
    t.same(
      ids.slice(ids.length - kept.length),
      kept.map(({ id }) => id),
      `day ${day}`,
    )
    t.ok(ids.length <= kept.length + 1, `day ${day}: ${ids.length - kept.length} too old`)
  }
  t.same(slices(), [])
})

t.test('sweep-events: the log of a removed server does not outlive its messages [event.search]', async (t) => {
  const world = new World(Date.UTC(2026, 10, 1, 12))
  const tenant = makeTenant(world)
  const { serverId } = tenant.test
  acceptedIds(send(world, tenant, { test: true, messages: [makeItem({ lane: 'simulate' })] }))
  const due = world.deliveries().findLast(({ lane }) => !lane.startsWith('post/'))
  const claim = due === undefined ? null : world.claim(prepareAttempt, due)
  if (claim !== null) world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), ADA))
  world.run(removeServer, { accountId: tenant.accountId, serverId, keyHash: ACCOUNT_KEY })
  const ofLog = () => world.keyNames().filter((key) => key.includes('event') && key.includes(serverId))
  t.equal(ofLog().length, 2)
  for (let day = 0; day < 32; day += 1) {
    world.nowMs += DAY_MS
    for (let steps = 0; steps < 5; steps += 1) world.fireTimers()
  }
  t.same(ofLog(), [], 'in the month after, not two months later')
  t.equal(world.counters.get(eventLogOwner(serverId)) ?? null, null)
})

t.test('event-log: a slice ends at 50,000 events [event.search]', async (t) => {
  const world = new World(NOW_MS)
  const place = { shard: world.shard, serverId: makeTenant(world).live.serverId }
  const reference = { kind: 'example', event: 'bounced', madeUpId: '01a1f8d8-8300-7000-8000-0e7faee555a7' } as const
  const id = '01a1f8d8-8300-7017-8000-0e7faee555a7'
  const full = { name: '202611-3', deliveries: 49_999 }
  const { ops, slice } = logEvents(place, full, [
    { id, reference },
    { id, reference },
  ])
  t.same(slice, { name: '202611-4', deliveries: 1 })
  t.same(
    ops.map(({ write }) => write),
    ['XADD', 'ZADD', 'XADD'],
  )
})
