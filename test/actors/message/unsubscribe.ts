/** unsubscribe - a click, a second one, its undo, and the result a minute later. */
import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { type ClickBody, undoUnsubscribe, unsubscribe } from '../../../src/actors/message/unsubscribe.ts'
import { addSuppressions } from '../../../src/actors/suppression/add-suppressions.ts'
import { UNDO_MS } from '../../../src/actors/suppression/click.ts'
import { liftSuppression } from '../../../src/actors/suppression/lift-suppression.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { unpackStatus } from '../../../src/state/message/status.ts'
import { entryOf, personOf } from '../../support/world/suppression.ts'
import {
  acceptedIds,
  BY,
  changeState,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { seedWebhook, waiting } from '../../support/world/webhook-world.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ADA = 'ada@example.net'
const BOB = 'bob@example.net'

/** A message to Ada and Bob on a broadcast stream, delivered to both. */
function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  changeState(world, 'stream', tenant.live.streamId, { kind: 'broadcast', isDefault: false })
  return { world, tenant, ...sendTo(world, tenant, [ADA, BOB]) }
}

function sendTo(world: World, tenant: Tenant, addresses: string[], clicks?: true) {
  const { streamId } = tenant.live
  const recipients = addresses.map((address) => makeRecipient(address))
  const [messageId = ''] = acceptedIds(send(world, tenant, { messages: [makeItem({ streamId, recipients })] }))
  const items: string[] = []
  for (const due of world.deliveries()) {
    const claim = world.claim<AttemptJob>(prepareAttempt, due)
    if (claim === null) continue
    items.push(claim.item)
    t.equal(claim.job.message.listName, 'Transactional', 'a performer knows that it is a list')
    const { address } = claim.job.recipient
    const report = {
      address,
      sizeBytes: 900,
      retryAfterMs: null,
      hmac: () => hmacOf(address),
      ...(clicks && { clicks }),
    }
    world.end(attemptOutcome, claim, reportOutcome(makeDelivered(250, '250 Ok'), report))
  }
  const [ada = '', bob = ''] = items
  return { messageId, ada: { item: ada, hmac: hmacOf(ADA) }, bob: { item: bob, hmac: hmacOf(BOB) } }
}

function statusOf(world: World, { live }: Tenant, messageId: string, recipient = 0) {
  const field = recipient === 0 ? shortId(messageId) : `${shortId(messageId)}.${recipient}`
  return unpackStatus(
    world.hash(statusKey(world.shard, live.serverId, '202611-0-1')).get(field) ?? null,
    msOf(messageId),
  )
}

const clicks = (world: World) => [...world.items.values()].filter(({ item }) => item.startsWith('unsubscribe:'))
const click = (world: World, body: ClickBody, source: 'one_click' | 'link' = 'link') =>
  world.run(unsubscribe, { ...body, source })

function later(world: World, ms: number) {
  world.nowMs += ms
  world.fireTimers()
}

t.test(
  'unsubscribe: a minute after the click the person is listed, the status shows it, and the event is announced [unsubscribe.minute]',
  async (t) => {
    const { world, tenant, messageId, ada } = begin()
    seedWebhook(world, tenant)
    t.same(click(world, ada, 'one_click'), { kind: 'clicked' })
    later(world, UNDO_MS - 1)
    t.equal(entryOf(world, tenant, ADA), null, 'not a millisecond before')
    later(world, 1)
    t.match(entryOf(world, tenant, ADA), { reason: 'unsubscribe', messageId, code: null, response: null })
    t.equal(personOf(world, tenant, ADA)?.suppressions, 1)
    const status = statusOf(world, tenant, messageId)
    t.match(status.events.at(-1), { event: 'unsubscribed', occurredAtMs: NOW_MS + UNDO_MS, source: 'one_click' })
    t.equal(status.status, 'delivered')
    t.equal(statusOf(world, tenant, messageId, 1).events.length, 1, 'Bob clicked nothing')
    t.equal(waiting(world).filter((item) => JSON.stringify(item).includes('unsubscribed')).length, 1)
    t.same(clicks(world), [])
    sendTo(world, tenant, [BOB])
    t.equal(
      statusOf(
        world,
        tenant,
        acceptedIds(send(world, tenant, { messages: [makeItem({ streamId: tenant.live.streamId })] }))[0] as string,
      ).status,
      'suppressed',
    )
  },
)

t.test('unsubscribe: a second click, of either kind, changes nothing [unsubscribe.once]', async (t) => {
  const { world, tenant, messageId, ada } = begin()
  click(world, ada, 'one_click')
  const [first] = clicks(world)
  world.nowMs += 30_000
  t.same(click(world, ada, 'link'), { kind: 'clicked' })
  t.same(
    click(world, { ...ada, item: ada.item.replace(/\.2\./, '.2a.') }, 'link'),
    { kind: 'clicked' },
    'however it is written',
  )
  t.same(clicks(world), [first])
  later(world, 30_000)
  t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
  t.same(click(world, ada), { kind: 'listed' })
  t.same(clicks(world), [])
  later(world, UNDO_MS)
  t.equal(statusOf(world, tenant, messageId).events.filter(({ event }) => event === 'unsubscribed').length, 1)
})

t.test('unsubscribe: two concurrent clicks lead to one event [unsubscribe.once]', async (t) => {
  const { world, tenant, messageId, ada } = begin()
  click(world, ada, 'one_click')
  const [first] = clicks(world)
  if (first === undefined) throw new Error('No timer')
  const item = first.item.replace('unsubscribe:o.', 'unsubscribe:l.')
  world.items.set(`timers ${item}`, { ...first, item })
  later(world, UNDO_MS)
  t.equal(statusOf(world, tenant, messageId).events.filter(({ event }) => event === 'unsubscribed').length, 1)
  t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
})

t.test(
  'unsubscribe: a click that is undone in time leaves nothing, and can be repeated [unsubscribe.minute]',
  async (t) => {
    const { world, tenant, messageId, ada, bob } = begin()
    click(world, ada)
    click(world, bob)
    later(world, UNDO_MS - 1)
    t.same(world.run(undoUnsubscribe, ada), { kind: 'undone' })
    t.same(world.run(undoUnsubscribe, ada), { kind: 'undone' }, 'twice')
    later(world, UNDO_MS)
    t.equal(entryOf(world, tenant, ADA), null)
    t.equal(entryOf(world, tenant, BOB)?.reason, 'unsubscribe', "Bob's stands")
    t.equal(statusOf(world, tenant, messageId).events.length, 1)
    click(world, ada)
    later(world, UNDO_MS)
    t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
  },
)

t.test('unsubscribe: after the minute it is too late to undo [unsubscribe.minute]', async (t) => {
  const { world, tenant, ada } = begin()
  click(world, ada)
  later(world, UNDO_MS)
  t.same(world.run(undoUnsubscribe, ada), { kind: 'late' })
  t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
})

t.test('unsubscribe: a lighter reason is replaced, a complaint stays [suppression.worse]', async (t) => {
  const { world, tenant, messageId, ada, bob } = begin()
  const { accountId, live } = tenant
  const order = { accountId, serverId: live.serverId, orderedBy: 'server', keyHash: LIVE_KEY } as const
  world.run(addSuppressions, { ...order, streamId: live.streamId, recipients: [{ address: ADA, hmac: hmacOf(ADA) }] })
  const manual = entryOf(world, tenant, ADA)
  click(world, ada)
  later(world, UNDO_MS)
  t.match(entryOf(world, tenant, ADA), { reason: 'unsubscribe', suppressionId: manual?.suppressionId, messageId })
  t.equal(personOf(world, tenant, ADA)?.suppressions, 1, 'one list')
  click(world, bob)
  world.run(recordReport, { ...bob, report: { kind: 'complaint', feedbackType: 'abuse' } })
  later(world, UNDO_MS)
  t.equal(entryOf(world, tenant, BOB)?.reason, 'spam_complaint')
  t.same(
    statusOf(world, tenant, messageId, 1).events.map(({ event }) => event),
    ['delivered', 'spam_complaint'],
  )
  t.same(click(world, bob), { kind: 'listed' })
})

t.test('unsubscribe: a person whose entry support lifted can use the same link again [unsubscribe.once]', async (t) => {
  const { world, tenant, messageId, ada } = begin()
  click(world, ada)
  later(world, UNDO_MS)
  const { accountId, live } = tenant
  const suppressionId = entryOf(world, tenant, ADA)?.suppressionId ?? ''
  const body = { accountId, serverId: live.serverId, orderedBy: 'operator', keyHash: '', suppressionId } as const
  world.run(liftSuppression, { ...body, by: BY })
  t.same(click(world, ada), { kind: 'clicked' })
  later(world, UNDO_MS)
  t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
  t.equal(statusOf(world, tenant, messageId).events.filter(({ event }) => event === 'unsubscribed').length, 2)
})

t.test('unsubscribe: mail past its age does nothing, and no timer returns for it [unsubscribe.minute]', async (t) => {
  const { world, tenant, ada, bob } = begin()
  click(world, bob)
  world.nowMs += 400 * DAY_MS
  t.same(click(world, ada), { kind: 'gone' })
  t.same(world.run(undoUnsubscribe, ada), { kind: 'gone' })
  world.fireTimers()
  t.equal(entryOf(world, tenant, BOB), null)
  t.same(clicks(world), [])
})

t.test('unsubscribe: no address is in a timer [erasure]', async (t) => {
  const { world, ada } = begin()
  click(world, ada)
  t.notMatch(JSON.stringify(clicks(world)), /@|ada/)
})

t.test(
  'unsubscribe: a simulated click comes with the delivery, and counts a minute later [unsubscribe.simulated]',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    changeState(world, 'stream', tenant.live.streamId, { kind: 'broadcast', isDefault: false })
    sendTo(world, tenant, [ADA], true)
    t.equal(clicks(world).length, 1)
    later(world, UNDO_MS)
    t.equal(entryOf(world, tenant, ADA)?.reason, 'unsubscribe')
  },
)
