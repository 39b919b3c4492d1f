/**
 * listen - what is stored for a subscriber: from the subscription on, ten minutes beyond its end, and nothing
 * otherwise.
 */
import t from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { LISTEN_MS, listen } from '../../../src/actors/webhook/listen.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { heardKey } from '../../../src/state/keys.ts'
import { parseFeedEvent } from '../../../src/state/webhook/event-feed.ts'
import { acceptedIds, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const MINUTE_MS = 60_000
const ADA = { address: 'ada@example.net', sizeBytes: 900, retryAfterMs: null, hmac: () => 'h'.repeat(22) }

function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { serverId } = tenant.live
  const key = heardKey(world.shard, serverId)
  return {
    world,
    serverId,
    written: () => world.stream(key).map(parseFeedEvent),
    exists: () => world.keyNames().includes(key),
    listen: () => world.run(listen, { serverId }),
    /** Sends a message that is delivered. Returns its id. */
    deliver() {
      const [messageId = ''] = acceptedIds(send(world, tenant))
      const due = world.deliveries().findLast(({ lane }) => !lane.startsWith('post/'))
      const claim = due === undefined ? null : world.claim(prepareAttempt, due)
      if (claim === null) throw new Error('Nothing is to be attempted')
      world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 2.0.0 Ok'), ADA))
      return messageId
    },
  }
}

t.test('listen: events are written down from then on and ten minutes beyond, then they go [event.feed]', async (t) => {
  const { world, written, exists, listen, deliver } = setUp()
  deliver()
  t.notOk(exists(), 'nobody listens: nothing is written')
  listen()
  const first = deliver()
  t.match(written(), [{ kind: 'message', event: 'delivered', messageId: first }])
  t.equal(world.signals.length, 1)
  world.nowMs += LISTEN_MS + 9 * MINUTE_MS
  world.fireTimers()
  const second = deliver()
  t.match(written(), [{ messageId: first }, { messageId: second }])
  t.same(world.signals, [], 'nobody hears it now')
  world.nowMs += 2 * MINUTE_MS
  deliver()
  t.equal(written().length, 2)
  world.fireTimers()
  t.notOk(exists())
})

t.test(
  'listen: a continuous subscriber keeps the stored events; after a gap the stream starts from scratch [event.feed]',
  async (t) => {
    const { world, written, listen, deliver } = setUp()
    listen()
    const first = deliver()
    for (let minute = 0; minute < 30; minute += 1) {
      world.nowMs += MINUTE_MS / 2
      world.fireTimers()
      listen()
    }
    const second = deliver()
    t.match(written(), [{ messageId: first }, { messageId: second }])
    // The timer fires late, so the stream would have a gap.
    world.nowMs += LISTEN_MS + 11 * MINUTE_MS
    deliver()
    listen()
    const third = deliver()
    t.match(written(), [{ messageId: third }])
    t.equal(written().length, 1)
    world.fireTimers()
    t.equal(written().length, 1, 'the late timer looks again')
  },
)

t.test('listen: a key that is not live, a server that does not exist [event.feed]', async (t) => {
  const { world, serverId } = setUp()
  t.match(world.run(listen, { serverId, keyHash: 'of another' }), { kind: 'refused', code: 'unauthorized' })
  t.match(world.run(listen, { serverId: 'none' }), { kind: 'refused', code: 'not_found' })
})
