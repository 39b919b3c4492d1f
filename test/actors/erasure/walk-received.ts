/**
 * walk-received - received mail from the person, mail that names the person, mail to its address; and addresses only
 * in headers.
 */
import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { type LookJob, type LookOutcome, lookOutcome, prepareLook } from '../../../src/actors/erasure/look.ts'
import { DAY_MS, MINUTE_MS } from '../../../src/state/calendar.ts'
import type { WalkPlace } from '../../../src/state/erasure.ts'
import { receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { contentHeadKey } from '../../../src/state/received/content-head.ts'
import { unpackStanding } from '../../../src/state/received/standing.ts'
import { type ReceivedCounters, receivedOwner } from '../../../src/state/received/sweep-cursor.ts'
import {
  eraseNow,
  lookAll,
  NOW_MS,
  openWorld,
  order,
  stateOf,
  stepOnce,
  textsOf,
  walkOf,
} from '../../support/world/erasure.ts'
import {
  makeInboundStream,
  makeParsed,
  parseNext,
  receivedRows,
  receiveMail,
  SENDER,
} from '../../support/world/inbound.ts'
import { hmacOf, type Tenant } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'

const OTHER = 'carl@example.org'

function open(nowMs?: number): ReturnType<typeof openWorld> & { streamId: string } {
  const opened = openWorld(nowMs)
  return { ...opened, streamId: makeInboundStream(opened.world, opened.tenant) }
}

const named = (...addresses: string[]) => ({
  hashes: addresses.map((one) => hmacOf(one).slice(0, 8)).join(''),
  isWhole: true,
})
const from = (address: string) => ({ hmac: hmacOf(address), address, name: 'Name' })
const sender = (address: string) => ({ hmac: hmacOf(address), address })
const hasHead = (world: World, { live }: Tenant, id = '') =>
  world.hash(contentHeadKey(world.shard, live.serverId, id)).has(shortId(id))
const unlinked = (world: World) => world.deliveries().filter(({ lane }) => lane === 'unlink').length

function receive(
  world: World,
  tenant: Tenant,
  of: Parameters<typeof receiveMail>[2],
  parsed: Parameters<typeof makeParsed>[1] | null = {},
): string {
  const [id = ''] = receiveMail(world, tenant, of)
  if (parsed !== null) parseNext(world, { result: 'parsed', parsed: makeParsed(world, parsed) })
  return id
}

t.test('walk-received: sender, From, whom it names, and the address it came to [erasure.received]', async (t) => {
  const { world, tenant, streamId } = open()
  const sent = receive(world, tenant, { streamId, hashes: ['ticket-7'] })
  const written = receive(world, tenant, { streamId, sender: sender(OTHER) }, { from: from(SENDER) })
  const naming = receive(
    world,
    tenant,
    { streamId, sender: null },
    { from: from(OTHER), named: named(OTHER, 'dora@example.org', SENDER) },
  )
  const kept = receive(world, tenant, { streamId, sender: sender(OTHER) }, { from: from(OTHER), named: named(OTHER) })
  const own = receive(world, tenant, { streamId, hashes: ['order-7'], sender: sender(OTHER) }, { from: from(OTHER) })
  t.match(eraseNow(world, tenant, SENDER), { messages: 0, receivedMessages: 3 })
  t.same(
    [sent, written, naming, kept, own].map((id) => hasHead(world, tenant, id)),
    [false, false, false, true, true],
  )
  t.equal(unlinked(world), 6, 'raw and parsed')
  t.notMatch(textsOf(world), /ada@example|ticket-7/)
  const mailbox = { streamId, plusHash: hmacOf('order-7').slice(0, 8) }
  t.match(eraseNow(world, tenant, `${streamId}+order-7@inbound.example`, { mailbox }), { receivedMessages: 1 })
  t.same(
    [kept, own].map((id) => hasHead(world, tenant, id)),
    [true, false],
  )
  t.notMatch(textsOf(world), /order-7/)
})

t.test(
  'walk-received: the header of a mail that is not parsed yet, or names more addresses than are kept, is read',
  async (t) => {
    const { world, tenant, streamId } = open()
    const fresh = receive(world, tenant, { streamId, sender: sender(OTHER) }, null)
    const many = [...Array(3)].map(() => receive(world, tenant, { streamId, sender: sender(OTHER) }, null))
    for (const _ of many)
      parseNext(world, { result: 'parsed', parsed: makeParsed(world, { named: { hashes: '', isWhole: false } }) })
    const id = order(world, tenant, SENDER)
    world.fireTimers()
    t.match(stateOf(world, id), { completedAtMs: null }, 'nobody knows yet')
    t.equal(lookAll(world, { result: 'away' }).length, 4)
    t.match(stateOf(world, id), { completedAtMs: null }, 'it waits while the content store is away')
    world.nowMs += 1_000
    const jobs = lookAll(world, { result: 'named' })
    t.match(jobs[0], { accountId: tenant.accountId, hmac: hmacOf(SENDER), head: { key: 'a sealed key' } })
    t.match(stateOf(world, id), { receivedMessages: 4, completedAtMs: world.nowMs })
    t.same(
      [fresh, ...many].map((one) => hasHead(world, tenant, one)),
      [false, false, false, false],
    )
  },
)

t.test('walk-received: a readable mail that names other people stays, an unreadable one is removed', async (t) => {
  const { world, tenant, streamId } = open()
  const mine = [...Array(2)].map(() => receive(world, tenant, { streamId, sender: sender(OTHER) }, null))
  const id = order(world, tenant, SENDER)
  world.fireTimers()
  const [first] = world.deliveries().filter(({ lane }) => lane.startsWith('look/'))
  const claim = world.claim<LookJob>(prepareLook, first as never)
  world.end(lookOutcome, claim as never, { result: 'not named' } satisfies LookOutcome)
  lookAll(world, null)
  t.match(stateOf(world, id), { receivedMessages: 1 })
  t.equal(mine.filter((one) => hasHead(world, tenant, one)).length, 1)
})

t.test('walk-received: a mail whose content leaves before it is read does not hold the erasure up', async (t) => {
  const { world, tenant, streamId } = open()
  receive(world, tenant, { streamId, sender: sender(OTHER) }, null)
  const id = order(world, tenant, SENDER)
  world.fireTimers()
  world.nowMs += 32 * DAY_MS
  lookAll(world, { result: 'named' })
  world.fireTimers()
  t.match(stateOf(world, id), { receivedMessages: 0, completedAtMs: world.nowMs })
})

t.test(
  'walk-received: mail that comes after the order is later mail; a parse that ends after it brings nothing back',
  async (t) => {
    const { world, tenant, streamId } = open()
    const early = receive(world, tenant, { streamId }, null)
    order(world, tenant, SENDER)
    const later = receive(world, tenant, { streamId }, null)
    world.fireTimers()
    t.same(
      [early, later].map((id) => hasHead(world, tenant, id)),
      [false, true],
    )
    const waits = world.deliveries().find(({ lane }) => lane.startsWith('parse/'))
    t.ok(waits)
    const { live } = tenant
    const [segment = ''] = world.sorted(receivedSegmentsKey(world.shard, live.serverId)).keys()
    const state = world.hash(receivedStateKey(world.shard, live.serverId, segment)).get(shortId(early)) ?? ''
    t.match(unpackStanding(state, msOf(early)), { isParsed: false })
  },
)

t.test('walk-received: all days for which content is kept are walked, and none before', async (t) => {
  const { world, tenant, streamId } = open(NOW_MS - 60 * DAY_MS)
  for (let day = 0; day <= 60; day += 1) {
    for (let n = 0; n < 7; n += 1)
      receive(world, tenant, { streamId, sender: sender(n === 3 ? SENDER : OTHER) }, { from: from(OTHER) })
    world.nowMs += DAY_MS
    world.fireTimers()
  }
  const { receivedMessages } = eraseNow(world, tenant, SENDER)
  t.ok(Number(receivedMessages) >= 30 && Number(receivedMessages) <= 31, String(receivedMessages))
  const heads = world
    .keyNames()
    .filter((key) => key.includes(':received-head:'))
    .flatMap((key) => [...world.hash(key).values()])
  t.ok(heads.length > 150)
  t.same(
    heads.filter((row) => row.includes(SENDER)),
    [],
  )
})

t.test('walk-received: the part after the plus sign is removed even if the content is long gone', async (t) => {
  const { world, tenant, streamId } = open(NOW_MS - 100 * DAY_MS)
  const { live } = tenant
  const own = `${streamId}+order-7@inbound.example`
  for (let n = 0; n < 1_100; n += 1) {
    const hashes = n === 3 || n === 1_050 ? ['ticket-7'] : n === 4 ? ['order-7'] : [null]
    receive(world, tenant, { streamId, hashes, sender: sender(n < 3 || n === 4 ? OTHER : SENDER) }, null)
    if (n % 100 === 0) world.nowMs += MINUTE_MS
  }
  world.nowMs = NOW_MS
  world.fireTimers()
  t.match(eraseNow(world, tenant, SENDER), { receivedMessages: 0 })
  t.notMatch(textsOf(world), /ticket-7/)
  t.match(textsOf(world), /order-7/)
  const mailbox = { streamId, plusHash: hmacOf('order-7').slice(0, 8) }
  t.match(eraseNow(world, tenant, own, { mailbox }), { receivedMessages: 0 })
  t.notMatch(textsOf(world), /order-7/)
  const rows = receivedRows(world, live.serverId)
  t.equal(rows.length, 1_100, 'the references stay')
  t.ok(
    rows.every(({ isPacked }) => isPacked),
    'in blocks',
  )
})

/** From the next message on a server has a segment with postings, as after a busy one. */
function makeBusy(world: World, { live }: Tenant): void {
  const owner = receivedOwner(live.serverId)
  const before = world.counters.get(owner) as ReceivedCounters | undefined
  const segment = { name: '202601-0-1', bytes: 0, lastMs: 0, ...before?.segment, recipients: 5_000 }
  world.counters.set(owner, { ...before, segment })
}

t.test(
  'walk-received: on a busy server postings find old mail of the person, and the log of kept days the rest',
  async (t) => {
    const { world, tenant, streamId } = open(NOW_MS - 100 * DAY_MS)
    const { live } = tenant
    makeBusy(world, tenant)
    const own = `${streamId}+order-7@inbound.example`
    const mailbox = { streamId, plusHash: hmacOf('order-7').slice(0, 8) }
    for (let n = 0; n < 130; n += 1) receive(world, tenant, { streamId, hashes: [`ticket-${n}`] }, null)
    for (let n = 0; n < 40; n += 1)
      receive(world, tenant, { streamId, hashes: [n === 7 ? 'order-7' : `other-${n}`], sender: sender(OTHER) }, null)
    receive(world, tenant, { streamId, hashes: ['mine-7'], sender: sender(own) }, null)
    world.nowMs += MINUTE_MS
    receive(world, tenant, { streamId, hashes: ['header-7'], sender: sender(OTHER) }, null)
    const waits = () => world.deliveries().some(({ lane }) => lane.startsWith('parse/'))
    while (waits())
      parseNext(world, {
        result: 'parsed',
        parsed: makeParsed(world, { from: from(world.deliveries().length > 1 ? OTHER : SENDER) }),
      })
    // October: before the days for which content is kept, and in them.
    world.nowMs = NOW_MS - 40 * DAY_MS
    world.fireTimers()
    makeBusy(world, tenant)
    receive(world, tenant, { streamId, hashes: ['october-7'] })
    world.nowMs = NOW_MS - 25 * DAY_MS
    world.fireTimers()
    const naming = receive(
      world,
      tenant,
      { streamId, sender: sender(OTHER) },
      { from: from(OTHER), named: named(SENDER) },
    )
    world.nowMs = NOW_MS
    world.fireTimers()
    const [first = ''] = world.sorted(receivedSegmentsKey(world.shard, live.serverId)).keys()
    t.match(first, /^202608-0-32$/)
    t.match(textsOf(world), /ticket-129.*header-7.*october-7/s)
    const id = order(world, tenant, SENDER)
    const places: WalkPlace[] = []
    while (stateOf(world, id).completedAtMs === null) {
      const place = walkOf(world, id)?.place
      if (place?.phase === 'received') places.push(place)
      stepOnce(world)
    }
    t.notMatch(textsOf(world), /ticket-|header-7|october-7/)
    t.match(textsOf(world), /order-7/)
    t.notOk(hasHead(world, tenant, naming))
    t.same(
      places.filter(({ segment }) => segment === first).map(({ posted }) => posted?.[1]),
      [undefined, 0, 0, 0, 0, 0, 0],
      '25 postings at a step, an empty one at the end, and no log of August',
    )
    t.match(eraseNow(world, tenant, own, { mailbox }), { receivedMessages: 0 })
    t.notMatch(textsOf(world), /order-7|mine-7/)
    t.match(textsOf(world), /other-39/)
  },
)
