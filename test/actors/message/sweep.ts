/** sweep - what is past its age goes within a day, in bounded steps, and leaves no key. */

import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { cutoffMs } from '../../../src/state/age.ts'
import { byPersonKey, byTagKey, headKey, logKey, segmentsKey, statusKey } from '../../../src/state/keys.ts'
import { hasPostings } from '../../../src/state/segment.ts'
import { acceptedIds, hmacOf, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const DAY_MS = 86_400_000
const NOW_MS = Date.UTC(2026, 0, 1)
const MAIL = /:(log|head|status|segments|by-person|by-tag|person|content|idempotency):/

/** Lets the clock run to `toMs`, a day at a time, firing every timer; answers what was left of mail each day. */
function walk(world: World, toMs: number, each: (world: World) => void = () => undefined): void {
  while (world.nowMs < toMs) {
    world.nowMs = Math.min(world.nowMs + DAY_MS, toMs)
    world.fireTimers()
    each(world)
  }
}

/** Delivers all that is due. */
function deliverAll(world: World): void {
  const outcome = reportOutcome(makeDelivered(250, '250 OK'), {
    address: 'x',
    sizeBytes: 1,
    retryAfterMs: null,
    hmac: () => '',
  })
  for (const due of world.deliveries()) {
    const claim = world.claim(prepareAttempt, due)
    if (claim !== null) world.end(attemptOutcome, claim, outcome)
  }
}

for (const test of [false, true]) {
  t.test(
    `sweep: after ${test ? '14 months on a test' : '14 months on a live'} server no key of a message is left`,
    async (t) => {
      const world = new World(NOW_MS)
      const tenant = makeTenant(world)
      const clean = world.keyNames()
      const recipients = [makeRecipient('ada@example.net'), makeRecipient('bob@example.net')]
      const message = makeItem({ recipients, tag: 't', tagHash: 'abcdefgh', lane: test ? 'simulate' : 'relay' })
      const idempotency = { hash: hmacOf('key'), fingerprint: 'f'.repeat(64) }
      acceptedIds(send(world, tenant, { test, messages: [message], idempotency }))
      deliverAll(world)
      t.ok(world.keyNames().some((key) => MAIL.test(key)))
      const goneMs = test ? NOW_MS + 31 * DAY_MS : Date.UTC(2027, 1, 2)
      walk(world, goneMs - 2 * DAY_MS)
      const { serverId } = test ? tenant.test : tenant.live
      t.equal(
        world.stream(logKey(world.shard, serverId, test ? '20260101-0-1' : '202601-0-1')).length,
        1,
        'until its age',
      )
      walk(world, goneMs)
      t.same(
        world.keyNames().filter((key) => MAIL.test(key) && !key.includes(':person:')),
        [],
      )
      walk(world, Date.UTC(2027, 2, 2))
      t.same(world.keyNames(), clean)
      // Nothing performs what the sweep orders of the content store here.
      t.same(
        world.deliveries().filter(({ lane }) => !lane.startsWith('cold/')),
        [],
      )
      const counters = [...world.counters].map(([, value]) => JSON.stringify(value)).join()
      t.notOk(counters.includes('segment'), counters)
    },
  )
}

t.test('sweep: a year of daily mail: never more than its age, and the rest is whole', async (t) => {
  const world = new World(NOW_MS)
  world.tickMs = 1
  const tenant = makeTenant(world)
  const type = makeAccept({
    recipientsMax: 7,
    bytesMax: 1e6,
    busyRecipients: 6,
    fullRecipients: 50,
    busyBuckets: 64,
    fullBuckets: 256,
  })
  const { serverId } = tenant.live
  const sent: { id: string; atMs: number }[] = []
  let day = 0
  walk(world, Date.UTC(2027, 5, 15), () => {
    day += 1
    const oldest = cutoffMs(world.nowMs - DAY_MS, false)
    const logged = [...world.sorted(segmentsKey(world.shard, serverId)).keys()].flatMap((segment) =>
      world.stream(logKey(world.shard, serverId, segment)),
    )
    const firstMs = Number(logged[0]?.id.split('-')[0] ?? Number.POSITIVE_INFINITY)
    if (firstMs < oldest) t.fail(`day ${day}: a message a day past its age`)
    if (day % 4 !== 0) return
    const recipients = [makeRecipient(`r${day}@example.net`), makeRecipient('same@example.net')]
    const message = makeItem({ recipients, tag: 't', tagHash: 'abcdefgh' })
    const [id = ''] = acceptedIds(send(world, tenant, { messages: [message] }, { type }))
    deliverAll(world)
    world.items.clear()
    world.items.set(`timers sweep:${serverId}`, {
      lane: 'timers',
      item: `sweep:${serverId}`,
      atMs: world.nowMs,
      claims: 0,
    })
    sent.push({ id, atMs: world.nowMs })
  })
  const kept = sent
    .filter(({ atMs }) => atMs >= cutoffMs(world.nowMs - (world.nowMs % 60_000), false))
    .map(({ id }) => shortId(id))
  const segments = [...world.sorted(segmentsKey(world.shard, serverId)).keys()]
  const of = (name: (shard: number, serverId: string, segment: string) => string) =>
    segments.flatMap((segment) => [...world.hash(name(world.shard, serverId, segment)).keys()])
  t.same(of(headKey), kept)
  t.same(
    of(statusKey),
    kept.flatMap((short) => [short, `${short}.1`]),
  )
  const entries = (name: (shard: number, serverId: string, segment: string, bucket: number) => string) =>
    segments.flatMap((segment) =>
      Array.from({ length: 64 }, (_, bucket) => world.stream(name(world.shard, serverId, segment, bucket))).flat(),
    )
  const posted = segments
    .filter(hasPostings)
    .flatMap((segment) => world.stream(logKey(world.shard, serverId, segment)).map(({ id }) => id))
  t.same([...new Set(entries(byPersonKey).map(({ id }) => id))].sort(), posted)
  t.same(
    entries(byTagKey).map(({ id }) => id),
    posted,
  )
  t.ok(kept.length > 80 && kept.length < sent.length, `${kept.length} of ${sent.length}`)
  t.ok(posted.length > 20 && posted.length < kept.length, `${posted.length} posted`)
  const names = () => world.keyNames().filter((key) => MAIL.test(key) && !key.includes(':person:'))
  t.ok(names().some((key) => key.includes(':by-tag:')))
  walk(world, Date.UTC(2028, 7, 1))
  t.same(names(), [], 'and once no more comes, no key is left of either kind of segment')
})

t.test('sweep: a step takes at most 200 messages, the next is due at once', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { serverId } = tenant.live
  for (let index = 0; index < 45; index += 1)
    acceptedIds(send(world, tenant, { messages: Array.from({ length: 5 }, () => makeItem()) }))
  world.nowMs += 5 * DAY_MS
  acceptedIds(send(world, tenant))
  for (const due of world.deliveries()) world.items.delete(`${due.lane} ${due.item}`)
  world.nowMs = Date.UTC(2027, 1, 1, 0, 1, 1)
  for (const name of [...world.items.keys()]) if (!name.includes(serverId)) world.items.delete(name)
  const log = () => world.stream(logKey(world.shard, serverId, '202601-0-1')).length
  t.equal(log(), 226)
  t.equal(world.fireTimers(), 2)
  t.equal(log(), 1)
  t.equal(world.hash(headKey(world.shard, serverId, '202601-0-1')).size, 1)
  t.equal([...world.items.values()][0]?.atMs, world.nowMs + DAY_MS)
})

t.test('sweep: the timer of a server that is not there leaves', async (t) => {
  const world = new World(NOW_MS)
  world.items.set('timers sweep:nobody', { lane: 'timers', item: 'sweep:nobody', atMs: 0, claims: 0 })
  t.equal(world.fireTimers(), 1)
  t.equal(world.items.size, 0)
})
