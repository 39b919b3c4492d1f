/** log retention - with fewer months all that a log holds goes earlier, hot and sealed, and links still work. */
import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { settleClick, undoUnsubscribe, unsubscribe } from '../../../src/actors/message/unsubscribe.ts'
import { setAccountRetention, setInstallationRetention } from '../../../src/actors/retention/set-retention.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { itemPrefix, itemSuffix } from '../../../src/state/message/item.ts'
import { isLeftSegment } from '../../../src/state/segment.ts'
import { findClicker } from '../../../src/views/message/unsubscribe.ts'
import { makeBroadcastStream, pass, people, submit } from '../../support/world/broadcast-world.ts'
import { makeSetting } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld } from '../../support/world/erasure.ts'
import { ACCOUNT_KEY, acceptedIds, BY, hmacOf, makeItem, send, type Tenant } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const DELIVERED = makeDelivered(250, '250 2.0.0 ok')
const MAIL = /:(log|head|status|segments|by-person|by-tag|sealed|recalled|broadcasts|content):/

function setAccount(world: World, { accountId }: Tenant, logRetentionMonths: number | null): void {
  const reply = world.run(setAccountRetention, { accountId, keyHash: ACCOUNT_KEY, changes: { logRetentionMonths } })
  if (reply.kind !== 'retention') throw new Error(reply.code)
}

/** Lets days pass with every timer. */
function passDays(world: World, days: number): void {
  for (let day = 0; day < days; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
}

const mailKeys = (world: World) => world.keyNames().filter((key) => MAIL.test(key))
const persons = (world: World) => world.keyNames().filter((key) => /:person:/.test(key))

for (const by of ['account', 'installation'] as const)
  t.test(`the months of the ${by} count for what is there, addresses included [retention.settings]`, async (t) => {
    const { world, tenant } = openWorld()
    const clean = world.keyNames()
    acceptedIds(send(world, tenant, { messages: [mailTo('ada@example.net')] }))
    acceptedIds(send(world, tenant, { test: true, messages: [makeItem({ lane: 'simulate' })] }))
    deliverAll(world, DELIVERED)
    passDays(world, 50)
    t.ok(mailKeys(world).length > 3, 'by default it stays')
    if (by === 'account') setAccount(world, tenant, 2)
    else world.run(setInstallationRetention, { logRetentionMonths: 2, by: BY })
    passDays(world, 5)
    t.ok(mailKeys(world).length > 3, 'two months are not over')
    passDays(world, 9)
    t.same(mailKeys(world), [])
    passDays(world, 60)
    t.same(persons(world), [])
    if (by === 'account') setAccount(world, tenant, null)
    else world.run(setInstallationRetention, { logRetentionMonths: null, by: null })
    passDays(world, 2)
    t.same(
      world.keyNames().filter((key) => !/:audit:/.test(key)),
      clean,
    )
    t.notOk(JSON.stringify([...world.counters]).includes('months'))
  })

t.test('the shorter of account and installation counts, and a month is 31 days at least', async (t) => {
  const { world, tenant } = openWorld()
  setAccount(world, tenant, 1)
  world.run(setInstallationRetention, { logRetentionMonths: 5, by: BY })
  send(world, tenant, { messages: [mailTo('ada@example.net')] })
  deliverAll(world, DELIVERED)
  passDays(world, 30)
  t.ok(mailKeys(world).length > 2)
  passDays(world, 2)
  t.same(mailKeys(world), [])
})

t.test('sealed segments go as well [retention.settings]', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  await cold.settle()
  t.ok(cold.objects().length > 0)
  setAccount(world, tenant, 1)
  // Half of the messages are past their age.
  while (world.nowMs < msOf(ids[30] as string) + 31 * DAY_MS) world.nowMs += 20_000
  world.fireTimers()
  await cold.settle()
  const opened = await cold.opened(serverId)
  t.notMatch(opened, /Order 9\\"/)
  for (let day = 0; day < 3; day += 1) {
    passDays(world, 1)
    await cold.settle()
  }
  t.same(mailKeys(world), [])
})

t.test('a broadcast leaves with its messages [retention.settings]', async (t) => {
  const { world, tenant } = openWorld()
  makeBroadcastStream(world, tenant, { pacePerMinute: 60_000 })
  const { broadcastId } = submit(world, tenant, people(20))
  pass(world, 10_000, 1_000)
  deliverAll(world, DELIVERED)
  setAccount(world, tenant, 1)
  passDays(world, 30)
  t.ok(world.states.get(`broadcast:${broadcastId}`))
  passDays(world, 4)
  t.same(mailKeys(world), [])
  const broadcast = world.keyNames().filter((key) => key.includes(broadcastId))
  t.same(broadcast, [])
})

t.test('links work for 60 days, whether or not the message is in the log [unsubscribe.days]', async (t) => {
  const { world, tenant } = openWorld()
  const streamId = makeBroadcastStream(world, tenant)
  const { serverId } = tenant.live
  setAccount(world, tenant, 1)
  const [messageId = ''] = acceptedIds(send(world, tenant, { messages: [{ ...mailTo('ada@example.net'), streamId }] }))
  deliverAll(world, DELIVERED)
  const hmac = hmacOf('ada@example.net')
  const target = { messageId, recipient: 0, serverId, streamId, hmac }
  const { read } = readerOf(world)
  const find = () => findClicker(read, target, world.nowMs)
  const listed = () => world.keyNames().filter((key) => key.includes(`:suppressed:${streamId}`)).length
  const inLog = await find()
  if (typeof inLog === 'string') throw new Error(inLog)
  t.notOk(isLeftSegment(inLog.item.split('.')[1] as string))
  passDays(world, 40)
  t.same(mailKeys(world), [])
  const left = await find()
  if (typeof left === 'string') throw new Error(left)
  t.ok(isLeftSegment(left.item.split('.')[1] as string))
  t.same(left.from, { address: '', name: null })
  const click = { item: left.item, hmac, source: 'link' } as const
  t.same(world.run(unsubscribe, click), { kind: 'clicked' })
  t.same(world.run(unsubscribe, click), { kind: 'clicked' })
  t.same(world.run(undoUnsubscribe, click), { kind: 'undone' })
  t.same(world.run(unsubscribe, { ...click, hmac: hmacOf('nobody@example.net') }), { kind: 'gone' })
  passDays(world, 1)
  t.equal(listed(), 0)
  t.same(world.run(unsubscribe, { ...click, item: inLog.item }), { kind: 'clicked' }, 'a page opened before')
  world.run(undoUnsubscribe, { ...click, item: inLog.item })
  passDays(world, 19)
  t.same(world.run(unsubscribe, click), { kind: 'clicked' })
  world.nowMs += 61_000
  world.fireTimers()
  t.equal(listed(), 1)
  t.same(world.run(unsubscribe, click), { kind: 'listed' })
  t.same(mailKeys(world), [], 'nothing of the message comes back')
  passDays(world, 31)
  t.equal(await find(), 'gone')
  t.same(world.run(unsubscribe, click), { kind: 'gone' })
})

t.test('links in a scheduled message work for 60 days after it was sent [unsubscribe.days]', async (t) => {
  const { world, tenant } = openWorld()
  const streamId = makeBroadcastStream(world, tenant)
  const { serverId } = tenant.live
  setAccount(world, tenant, 1)
  const item = { ...mailTo('ada@example.net'), streamId, sendAtMs: world.nowMs + 27 * DAY_MS }
  const [messageId = ''] = acceptedIds(send(world, tenant, { messages: [item] }))
  passDays(world, 27)
  deliverAll(world, DELIVERED)
  passDays(world, 59)
  t.same(mailKeys(world), [])
  const hmac = hmacOf('ada@example.net')
  const { read } = readerOf(world)
  const found = await findClicker(read, { messageId, recipient: 0, serverId, streamId, hmac }, world.nowMs)
  if (typeof found === 'string') throw new Error(found)
  t.same(world.run(unsubscribe, { item: found.item, hmac, source: 'link' }), { kind: 'clicked' })
  world.nowMs += 61_000
  world.fireTimers()
  t.equal(world.keyNames().filter((key) => key.includes(`:suppressed:${streamId}`)).length, 1)
})

t.test(
  'a click and a report of a message that leaves meanwhile write nothing of it [retention.settings]',
  async (t) => {
    const { world, tenant } = openWorld()
    const streamId = makeBroadcastStream(world, tenant)
    const { serverId } = tenant.live
    const [messageId = ''] = acceptedIds(
      send(world, tenant, { messages: [{ ...mailTo('ada@example.net'), streamId }] }),
    )
    deliverAll(world, DELIVERED)
    const [segment = ''] = [...world.sorted(world.keyNames().find((key) => /:segments:/.test(key)) as string).keys()]
    const of = { recipients: 1, hasAttachments: false, broadcastStreamId: streamId }
    const item = itemPrefix(serverId, segment, shortId(messageId)) + itemSuffix(0, of)
    passDays(world, 35)
    const hmac = hmacOf('ada@example.net')
    t.same(world.run(unsubscribe, { item, hmac, source: 'link' }), { kind: 'clicked' })
    const timer = [...world.items.values()].find(({ item: name }) => name.startsWith('unsubscribe:'))
    if (timer === undefined) throw new Error('No click waits')
    setAccount(world, tenant, 1)
    world.items.delete(`${timer.lane} ${timer.item}`)
    passDays(world, 1)
    t.same(mailKeys(world), [])
    world.run(settleClick, { item: timer.item })
    const report = { kind: 'complaint', feedbackType: 'abuse' } as const
    t.equal(world.run(recordReport, { item, hmac, report }), 'ignored')
    t.same(mailKeys(world), [])
    t.equal(world.keyNames().filter((key) => key.includes(`:suppressed:${streamId}`)).length, 1, 'but the click counts')
  },
)
