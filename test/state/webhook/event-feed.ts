/** event-feed - the stream of a feed holds at least the last 10,000 events, and never many more. */
import t from 'tap'
import { makeIds } from '../../../cluster/id.ts'
import { heardKey } from '../../../src/state/keys.ts'
import { type FeedCounters, parseFeedEvent, writeToFeed } from '../../../src/state/webhook/event-feed.ts'
import { KeySpace } from '../../support/world/key-space.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const PLACE = { shard: 23, serverId: 'server' }

t.test('event-feed: the last 10,000 stay, in their order, and at most a thousand more [event.feed]', async (t) => {
  const space = new KeySpace(NOW_MS, PLACE.shard)
  const ids = makeIds({ shard: PLACE.shard, last: '', random: () => 0.5 })
  let before: FeedCounters | null = null
  let written = 0
  let most = 0
  for (let turn = 0; turn < 350; turn += 1) {
    const events = Array.from({ length: 1 + (turn % 150) }, () => ({
      id: ids.next(NOW_MS + turn),
      reference: {
        kind: 'cap',
        event: 'cap_warning',
        scope: 'test',
        cap: written++,
        used: 1,
        occurredAtMs: 1,
      } as const,
    }))
    const { ops, counters } = writeToFeed(PLACE, before, events)
    for (const op of ops) space.apply(op)
    before = counters
    const entries = space.stream(heardKey(PLACE.shard, PLACE.serverId))
    most = Math.max(most, entries.length)
    const caps = entries.map((entry) => (parseFeedEvent(entry) as { cap: number }).cap)
    const least = Math.min(written, 10_000)
    if (caps.length < least || caps.at(-1) !== written - 1 || caps[0] !== written - caps.length)
      t.fail(`after ${written}: ${caps.length} from ${caps[0]}`)
  }
  t.ok(written > 20_000 && most > 10_000)
  t.ok(most <= 11_000, String(most))
  t.ok(JSON.stringify(before).length < 600)
})
