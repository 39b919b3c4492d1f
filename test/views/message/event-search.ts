/** event-search - a walk over slices of the log of events that end within a millisecond. */

import t from 'tap'
import { entryIdOf, makeIds } from '../../../cluster/id.ts'
import { eventSlicesKey, eventsKey } from '../../../src/state/keys.ts'
import { logEvents } from '../../../src/state/webhook/event-log.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { type EventFilter, searchEvents } from '../../../src/views/message/event-search.ts'
import { LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const EVENTS = 40
const EVERYTHING: EventFilter = {
  ...{ events: null, streamId: null, tag: null, metadata: null, messageId: null, recipient: null },
  ...{ fromMs: null, toMs: null },
}

t.test('event-search: no event is left out if a slice ends within a millisecond [event.search]', async (t) => {
  const world = new World(NOW_MS)
  const { accountId, live } = makeTenant(world)
  const { serverId } = live
  const ids = makeIds({ shard: world.shard, last: '', random: () => 0.5 })
  const nextId = () => ids.next(NOW_MS)
  const logged = Array.from({ length: EVENTS }, nextId)
  const reference = {
    kind: 'cap',
    event: 'cap_reached',
    scope: 'server',
    cap: 5,
    used: 5,
    occurredAtMs: NOW_MS,
  } as const
  const full = { name: '202611-8', deliveries: 49_975 }
  const place = { shard: world.shard, serverId }
  world.apply({ key: eventSlicesKey(world.shard, serverId), write: 'ZADD', args: [String(NOW_MS - 1), full.name] })
  const { ops, slice } = logEvents(
    place,
    full,
    logged.map((id) => ({ id, reference })),
  )
  for (const op of ops) world.apply(op)
  // The clock did not advance: the next slice opens in the same millisecond too.
  const last = nextId()
  for (const op of logEvents(place, { name: slice?.name ?? '', deliveries: 50_000 }, [{ id: last, reference }]).ops)
    world.apply(op)
  t.same(
    ['202611-8', '202611-9', '202611-10'].map((name) => world.stream(eventsKey(world.shard, serverId, name)).length),
    [25, 15, 1],
  )
  t.equal(new Set([...logged, last].map((id) => entryIdOf(id).split('-')[0])).size, 1, 'one millisecond')
  const owner: ServerKey = {
    ...{ kind: 'server', accountId, serverId, tokenId: 't', mode: 'live' },
    ...{ defaultStreamId: live.streamId, hash: LIVE_KEY },
  }
  const { read } = readerOf(world)
  const readEvent = async () => ({ event: 'cap_reached', occurredAt: '', streamId: null }) as never
  const deps = { read, readEvent, nowMs: () => NOW_MS }
  const found: string[] = []
  for (let after: string | null = null; found.length <= EVENTS; ) {
    const page = await searchEvents(deps, owner, { filter: EVERYTHING, page: { limit: 10, after } })
    if (typeof page === 'string') throw new Error(page)
    found.push(...page.events.map(({ id }) => id))
    after = page.next
    if (after === null) break
  }
  t.same(found, [...logged, last])
  const since = { ...EVERYTHING, fromMs: NOW_MS }
  const whole = await searchEvents(deps, owner, { filter: since, page: { limit: 100, after: null } })
  t.equal(typeof whole === 'string' ? whole : whole.events.length, EVENTS + 1)
})
