/**
 * forget-content - text and HTML are removed after the days of stream, server or account, and not while an attempt is
 * left.
 */
import t from 'tap'
import { msOf } from '../../../cluster/id.ts'
import type { SetServerRetentionBody } from '../../../src/actors/retention/set-retention.ts'
import {
  setAccountRetention,
  setServerRetention,
  setStreamRetention,
} from '../../../src/actors/retention/set-retention.ts'
import { createStream } from '../../../src/actors/server/create-stream.ts'
import { makeMailKey } from '../../../src/content/mail-key.ts'
import { makeDeferred, makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS, HOUR_MS } from '../../../src/state/calendar.ts'
import { contentKey } from '../../../src/state/keys.ts'
import { unpackHead } from '../../../src/state/message/head.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import { makeBroadcastStream, pass, people, submit } from '../../support/world/broadcast-world.ts'
import { complain, dropPacks, makeSetting, ownerOf } from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld } from '../../support/world/erasure.ts'
import { ringOf } from '../../support/world/rings.ts'
import { ACCOUNT_KEY, acceptedIds, LIVE_KEY, makeItem, send, type Tenant } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'

const DELIVERED = makeDelivered(250, '250 2.0.0 ok')
const DEFERRED = makeDeferred('conn', 'NoAnswerFromHost', 'connect ETIMEDOUT')

function setAccount(world: World, { accountId }: Tenant, sentContentDays: number | null): void {
  const reply = world.run(setAccountRetention, { accountId, keyHash: ACCOUNT_KEY, changes: { sentContentDays } })
  if (reply.kind !== 'retention') throw new Error(reply.code)
}

function setServer(world: World, { accountId }: Tenant, serverId: string, sentContentDays: number | null): void {
  const body: SetServerRetentionBody = { accountId, serverId, keyHash: ACCOUNT_KEY, changes: { sentContentDays } }
  const reply = world.run(setServerRetention, body)
  if (reply.kind !== 'retention') throw new Error(reply.code)
}

function setStream(world: World, { accountId, live }: Tenant, streamId: string, sentContentDays: number | null): void {
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY, streamId, changes: { sentContentDays } }
  const reply = world.run(setStreamRetention, order)
  if (reply.kind !== 'retention') throw new Error(reply.code)
}

/** How many bodies are left in all. */
function bodies(world: World): number {
  world.fireTimers()
  const slices = world.keyNames().filter((key) => /:bodies:/.test(key))
  return slices.reduce((sum, key) => sum + world.hash(key).size, 0)
}

/** The heads that are in Redis. */
function headsIn(world: World): string[] {
  return world
    .keyNames()
    .filter((key) => key.includes(':head:'))
    .flatMap((key) => [...world.hash(key).values()])
}

/** Lets days pass, six hours at a time, with every timer. */
function passDays(world: World, days: number): void {
  for (let quarters = days * 4; quarters > 0; quarters -= 1) {
    world.nowMs += 6 * HOUR_MS
    world.fireTimers()
  }
}

function sendOne(world: World, tenant: Tenant, changes: { streamId?: string; test?: true } = {}): string {
  const { streamId = null, test = false } = changes
  const item = { ...mailTo('ada@example.net'), streamId, lane: test ? ('simulate' as const) : ('deliver' as const) }
  return acceptedIds(send(world, tenant, { test, messages: [makeItem(item)] }))[0] as string
}

t.test('the stream counts before the server, the server before the account [retention.settings]', async (t) => {
  const { world, tenant } = openWorld()
  const { accountId, live } = tenant
  const order = { accountId, serverId: live.serverId, keyHash: LIVE_KEY }
  const made = world.run(createStream, { ...order, streamKind: 'transactional', name: 'Other' })
  const other = made.kind === 'stream' ? made.stream.streamId : ''
  setAccount(world, tenant, 10)
  sendOne(world, tenant)
  sendOne(world, tenant, { streamId: other })
  deliverAll(world, DELIVERED)
  passDays(world, 9)
  t.equal(bodies(world), 2)
  passDays(world, 2)
  t.equal(bodies(world), 0, "by the account's")
  setServer(world, tenant, live.serverId, 4)
  sendOne(world, tenant)
  sendOne(world, tenant, { streamId: other })
  deliverAll(world, DELIVERED)
  setStream(world, tenant, other, 2)
  passDays(world, 1)
  t.equal(bodies(world), 2)
  passDays(world, 2)
  t.equal(bodies(world), 1, "by the stream's")
  passDays(world, 2)
  t.equal(bodies(world), 0, "by the server's")
  setStream(world, tenant, other, 20)
  sendOne(world, tenant)
  sendOne(world, tenant, { streamId: other })
  deliverAll(world, DELIVERED)
  passDays(world, 15)
  t.equal(bodies(world), 1, 'a longer one counts too')
  setStream(world, tenant, other, null)
  passDays(world, 1)
  t.equal(bodies(world), 0, 'and a shorter one for what is there')
})

t.test('with 0 days content goes once no attempt is left [retention.settings]', async (t) => {
  const { world, tenant } = openWorld()
  setServer(world, tenant, tenant.live.serverId, 0)
  sendOne(world, tenant)
  deliverAll(world, DELIVERED)
  sendOne(world, tenant)
  deliverAll(world, DEFERRED)
  t.equal(bodies(world), 2)
  passDays(world, 1)
  t.equal(bodies(world), 1, 'what has an attempt left keeps it')
  passDays(world, 1)
  t.equal(bodies(world), 1)
  deliverAll(world, DELIVERED)
  passDays(world, 0.25)
  t.equal(bodies(world), 0)
  const left = [...world.items.values()].filter(({ item }) => item.startsWith('content-of'))
  t.same(left, [])
})

t.test('on a test server a value only shortens the seven days [retention.settings]', async (t) => {
  const { world, tenant } = openWorld()
  setServer(world, tenant, tenant.test.serverId, 20)
  sendOne(world, tenant, { test: true })
  passDays(world, 6)
  t.equal(bodies(world), 1)
  passDays(world, 2)
  t.equal(bodies(world), 0)
})

t.test('the default leaves no timer and no counters', async (t) => {
  const { world, tenant } = openWorld()
  const { serverId } = tenant.live
  setServer(world, tenant, serverId, 3)
  sendOne(world, tenant)
  deliverAll(world, DELIVERED)
  passDays(world, 1)
  t.ok(world.counters.get(`content:${serverId}`))
  setServer(world, tenant, serverId, null)
  passDays(world, 4)
  t.equal(bodies(world), 1)
  t.notOk(world.counters.get(`content:${serverId}`))
  t.notOk([...world.items.values()].some(({ item }) => item.startsWith('content')))
})

t.test('hundreds of messages of one millisecond and many segments, in steps [retention.settings]', async (t) => {
  const { world, tenant } = makeSetting(t, 150)
  for (let n = 0; n < 250; n += 1) sendOne(world, tenant)
  deliverAll(world, DELIVERED)
  t.equal(bodies(world), 400)
  setAccount(world, tenant, 6)
  passDays(world, 1.25)
  t.equal(bodies(world), 250)
  passDays(world, 6)
  t.equal(bodies(world), 0)
})

t.test('content of sealed segments goes too [retention.settings]', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 150)
  const { serverId } = tenant.live
  world.fireTimers()
  dropPacks(world)
  await cold.settle()
  const sealed = cold.segmentsOf(serverId).filter((name) => (cold.row(serverId, name)?.generation ?? 0) > 0)
  t.ok(sealed.length > 2)
  t.equal(bodies(world), 150)
  // Half of the messages are older than eight days.
  world.nowMs = msOf(ids[75] as string) + 8 * DAY_MS
  setServer(world, tenant, serverId, 8)
  world.fireTimers()
  await cold.settle()
  const half = bodies(world)
  t.ok(half > 60 && half < 90, String(half))
  passDays(world, 0.25)
  await cold.settle()
  t.equal(bodies(world), 0)
})

t.test('bodies that are in packs lose their keys [retention.settings]', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const heads = () => headsIn(world)
  const packed = () => heads().filter((text) => unpackHead(text, 1).stored !== null).length
  world.nowMs -= 4 * DAY_MS
  world.fireTimers()
  await cold.settle()
  t.equal(packed(), 60)
  t.equal(bodies(world), 0)
  setServer(world, tenant, tenant.live.serverId, 2)
  passDays(world, 0.25)
  t.equal(packed(), 0)
  t.equal(heads().length, 60)
  t.ok(heads().every((text) => unpackHead(text, 1).subject !== null))
  setServer(world, tenant, tenant.live.serverId, 20)
  sendOne(world, tenant)
  deliverAll(world, DELIVERED)
  world.nowMs += 2 * DAY_MS
  world.fireTimers()
  await cold.settle()
  t.equal(bodies(world), 1, 'no pack is written for such a server')
})

t.test('keys of packed bodies leave sealed segments, recalled messages too [retention.settings]', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.nowMs -= 7 * DAY_MS
  world.fireTimers()
  await cold.settle()
  world.nowMs += 8 * DAY_MS
  world.fireTimers()
  await cold.settle()
  const sealed = cold.segmentsOf(serverId).filter((name) => (cold.row(serverId, name)?.generation ?? 0) > 0)
  t.ok(sealed.length > 0)
  const segment = sealed[0] as string
  // Twice, because the first finds the message in its object and has it recalled.
  for (const _ of [1, 2]) {
    complain(world, tenant, { id: ids[1] as string, segment })
    await cold.settle()
  }
  t.equal(cold.recalled(serverId, segment), 1)
  const before = sealed.map((name) => cold.row(serverId, name))
  const keys = async () => (await cold.opened(serverId)).match(/\d{8}\/[\w-]+/g)?.length ?? 0
  t.ok((await keys()) > 0, 'every object that a row names was opened')
  setServer(world, tenant, serverId, 5)
  // The claims of a process that dies return, and a second performer does the work again.
  world.fireTimers()
  for (let claim = cold.claim('forget'); claim !== null; claim = cold.claim('forget'))
    cold.end(claim, await cold.perform(claim))
  world.nowMs += 60_000
  const lost = cold.claim('strip')
  if (lost === null) throw new Error('Nothing is stripped')
  const outcome = await cold.perform(lost)
  world.items.set(`${lost.lane} ${lost.item}`, { lane: lost.lane, item: lost.item, atMs: world.nowMs, claims: 1 })
  const again = cold.claim('strip')
  if (again === null) throw new Error('The claim did not return')
  cold.end(lost, outcome)
  t.equal(
    cold.row(serverId, again.job.act === 'strip' ? again.job.segment : '')?.generation,
    1,
    'the first is too late',
  )
  cold.end(again, await cold.perform(again))
  await cold.settle()
  t.equal(await keys(), 0)
  for (const [at, name] of sealed.entries()) {
    const row = cold.row(serverId, name)
    t.match(row, { generation: 2, next: '', messages: before[at]?.messages })
    t.not(row?.key, before[at]?.key, 'the object before has no key any more')
  }
  t.ok(headsIn(world).length > 0)
  t.ok(
    headsIn(world).every((text) => unpackHead(text, 1).stored === null),
    'of the recalled message',
  )
  const read = (id: string) => readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), id)
  for (const [at, id] of ids.entries())
    t.match(await read(id), { messageId: id, head: { subject: `Order ${at}`, stored: null } })
  passDays(world, 0.5)
  t.notOk(
    (await cold.settle()).some((end) => end.startsWith('strip')),
    'once',
  )
})

t.test('the key goes too if attachments had it as well [retention.settings]', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 1)
  world.nowMs -= 8 * DAY_MS
  const { sealed: key } = makeMailKey(ringOf('cold'))
  const content = { ...makeItem().content, stored: { key, body: false, files: true } }
  const file = { name: 'a.pdf', contentType: null, contentId: null, size: 90_000, inline: false }
  const item = { ...mailTo('ada@example.net'), content, attachments: [file] }
  send(world, tenant, { messages: [item] })
  deliverAll(world, DELIVERED)
  world.nowMs += 3 * DAY_MS
  world.fireTimers()
  await cold.settle()
  t.ok(headsIn(world).every((text) => unpackHead(text, 1).stored?.packed !== undefined))
  t.ok(headsIn(world).some((text) => text.includes(key)))
  setServer(world, tenant, tenant.live.serverId, 2)
  passDays(world, 0.25)
  t.equal(headsIn(world).length, 2)
  t.notOk(headsIn(world).some((text) => text.includes(key)))
})

t.test('keys do not return with a segment that was being read out [retention.settings]', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  for (let claim = cold.claim('pack'); claim !== null; claim = cold.claim('pack')) {
    cold.end(claim, await cold.perform(claim))
    world.nowMs += 1_000
  }
  t.equal(headsIn(world).filter((text) => unpackHead(text, 1).stored?.packed !== undefined).length, 60)
  const seal = cold.claim('seal')
  if (seal === null || seal.job.act !== 'seal') throw new Error('Nothing is sealed')
  const read = await cold.perform(seal)
  t.match(read, { result: 'sealed' })
  setServer(world, tenant, serverId, 2)
  world.fireTimers()
  cold.end(seal, read)
  await cold.settle()
  t.ok(cold.objects().length > 0)
  t.notMatch(await cold.opened(serverId), /\/[\w-]{22}\\?",\d/)
  t.ok(headsIn(world).every((text) => unpackHead(text, 1).stored === null))
})

t.test('what the messages of a broadcast share goes as well [retention.settings]', async (t) => {
  const { world, tenant } = openWorld()
  const streamId = makeBroadcastStream(world, tenant, { pacePerMinute: 60_000 })
  const broadcast = submit(world, tenant, people(60))
  pass(world, 10_000, 1_000)
  const shared = contentKey(world.shard, broadcast.contentId, 'body', 0)
  const has = () => world.keyNames().includes(shared)
  const [first] = world.deliveries().filter(({ lane }) => lane.startsWith('deliver'))
  if (first === undefined) throw new Error('Nothing was released')
  world.items.delete(`${first.lane} ${first.item}`)
  deliverAll(world, DELIVERED)
  setStream(world, tenant, streamId, 1)
  passDays(world, 2)
  t.equal(bodies(world), 1, 'of each its own, but of one that has an attempt left')
  passDays(world, 5)
  t.ok(has(), 'and what they share, for that one')
  world.items.set(`${first.lane} ${first.item}`, { ...first, atMs: 0 })
  deliverAll(world, DELIVERED)
  passDays(world, 3)
  t.equal(bodies(world), 0)
  t.notOk(has())
})

t.test('on a test server attachments go with the text [retention.settings] [retention.attachments]', async (t) => {
  const { world, tenant } = openWorld()
  const parts = ['body', 'a0'].map((part, blob) => ({ part, chunks: 1, blob }))
  const attachments = [{ name: 'f', contentType: null, contentId: null, inline: false, size: 3 }]
  const item = {
    ...mailTo('ada@example.net'),
    attachments,
    content: { parts, stored: null },
  }
  send(world, tenant, { test: true, messages: [makeItem(item)] }, { blobs: [Buffer.from('x'), Buffer.from('y')] })
  const files = () => world.keyNames().filter((key) => /:content:/.test(key)).length
  deliverAll(world, DELIVERED)
  passDays(world, 2)
  t.equal(files(), 1, 'they stay behind the last recipient')
  setServer(world, tenant, tenant.test.serverId, 1)
  passDays(world, 1)
  t.equal(bodies(world), 0)
  t.equal(files(), 0)
})
