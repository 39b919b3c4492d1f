/** schedule - the bounds of a new time, and the remains of a cancelled message. */
import t from 'tap'
import { SCHEDULED_MAX } from '../../../schemas/limits.ts'
import { accept } from '../../../src/actors/message/accept.ts'
import { type OrderScheduledBody, orderScheduled } from '../../../src/actors/message/schedule.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { parseAttemptItem } from '../../../src/state/message/item.ts'
import { countScheduled } from '../../../src/state/scheduled.ts'
import type { ServerCounters } from '../../../src/state/server.ts'
import { LIVE_KEY, makeItem, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { messages: [makeItem({ sendAtMs: NOW_MS + DAY_MS })] }, { type: accept })
  return { world, tenant }
}

/** The order for the one message that waits. */
function orderOf(world: World, { accountId, live }: Tenant, sendAtMs: number | null): OrderScheduledBody {
  const [due] = world.deliveries()
  if (due === undefined) throw new Error('Nothing waits')
  const { segment, messageId, sendAtMs: before } = parseAttemptItem(due.item)
  return {
    accountId,
    serverId: live.serverId,
    orderedBy: 'server',
    keyHash: LIVE_KEY,
    test: false,
    sendAtMs,
    message: {
      messageId,
      segment,
      contentId: '',
      hasAttachments: false,
      broadcastStreamId: null,
      sendAtMs: before ?? 0,
      lanes: [[due.lane]],
    },
  }
}

t.test('schedule: a server has at most 100,000 scheduled recipients [send.at]', async (t) => {
  const { world, tenant } = begin()
  const owner = `server:${tenant.live.serverId}`
  const counters = world.counters.get(owner) as ServerCounters
  const sendAtMs = NOW_MS + DAY_MS
  const fill = (recipients: number) =>
    world.counters.set(owner, { ...counters, scheduled: [[Math.floor(sendAtMs / DAY_MS), recipients]] })
  const reply = () => send(world, tenant, { messages: [makeItem({ sendAtMs })] }, { type: accept })
  fill(SCHEDULED_MAX)
  t.match(reply(), { kind: 'refused', code: 'scheduled_limit', extra: { max: SCHEDULED_MAX } })
  t.equal(send(world, tenant, { messages: [makeItem()] }, { type: accept }).kind, 'accepted', 'others are accepted')
  fill(SCHEDULED_MAX - 1)
  t.equal(reply().kind, 'accepted')
  t.match(reply(), { code: 'scheduled_limit' })
})

t.test('schedule: no number of new times exceeds the retention of the text [message.reschedule]', async (t) => {
  const { world, tenant } = begin()
  for (const day of [10, 20, 27]) {
    const moved = world.run(orderScheduled, orderOf(world, tenant, NOW_MS + day * DAY_MS))
    t.same(moved, { kind: 'ordered' }, `day ${day}`)
    world.nowMs = NOW_MS + (day - 1) * DAY_MS
  }
  const late = world.run(orderScheduled, orderOf(world, tenant, world.nowMs + 2 * DAY_MS))
  t.match(late, { kind: 'refused', code: 'invalid_request', extra: { sendAt: 'late' } })
  const [due] = world.deliveries()
  t.equal(due?.atMs, NOW_MS + 27 * DAY_MS, 'the last time holds')
})

t.test(
  'schedule: a cancelled message has no item and no place among the scheduled ones [message.cancel]',
  async (t) => {
    const { world, tenant } = begin()
    const scheduled = () => {
      const counters = world.counters.get(`server:${tenant.live.serverId}`) as ServerCounters
      return countScheduled(counters.scheduled)
    }
    t.equal(scheduled(), 1)
    const cancel = orderOf(world, tenant, null)
    t.same(world.run(orderScheduled, cancel), { kind: 'ordered' })
    t.equal(scheduled(), 0)
    t.same(world.deliveries(), [])
    t.same(world.run(orderScheduled, cancel), { kind: 'ordered' }, 'twice')
    t.equal(scheduled(), 0)
  },
)
