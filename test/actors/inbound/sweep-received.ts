/** sweep-received - content leaves with the days of its stream, references with 13 months, and nothing else. */
import t from 'tap'
import { entryIdAfter, entryIdOf, shortId } from '../../../cluster/id.ts'
import { archiveStream } from '../../../src/actors/server/patch-stream.ts'
import { removeServer } from '../../../src/actors/server/remove-server.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { contentHeadKey } from '../../../src/state/received/content-head.ts'
import { unpackPostings } from '../../../src/state/received/packed-posting.ts'
import { receivedOwner } from '../../../src/state/received/sweep-cursor.ts'
import { makeInboundStream, makeParsed, parseNext, receivedRows, receiveMail } from '../../support/world/inbound.ts'
import { ACCOUNT_KEY, changeState, LIVE_KEY, makeTenant, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)

function open(): { world: World; tenant: Tenant; streamId: string } {
  const world = new World(NOW_MS)
  world.tickMs = 1
  const tenant = makeTenant(world)
  return { world, tenant, streamId: makeInboundStream(world, tenant) }
}

const hasHead = (world: World, { live }: Tenant, id: string) =>
  world.hash(contentHeadKey(world.shard, live.serverId, id)).has(shortId(id))
const segments = (world: World, { live }: Tenant) => [
  ...world.sorted(receivedSegmentsKey(world.shard, live.serverId)).keys(),
]
const unlinked = (world: World) => world.deliveries().filter(({ lane }) => lane === 'unlink').length

/** Lets days pass, with their timers. */
function pass(world: World, days: number): void {
  for (let day = 0; day < days; day += 1) {
    world.nowMs += DAY_MS
    world.fireTimers()
  }
}

t.test(
  'sweep-received: content goes within a day after the days of its stream, raw and parsed [retention.inbound]',
  async (t) => {
    const { world, tenant, streamId } = open()
    changeState(world, 'stream', streamId, { contentRetentionDays: 3 })
    const [first = ''] = receiveMail(world, tenant, { streamId })
    parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    world.nowMs += 0.6 * DAY_MS
    const [second = ''] = receiveMail(world, tenant, { streamId })
    parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    world.nowMs += DAY_MS / 2
    pass(world, 1)
    t.same([hasHead(world, tenant, first), hasHead(world, tenant, second)], [true, true])
    t.equal(unlinked(world), 0)
    pass(world, 1)
    t.same([hasHead(world, tenant, first), hasHead(world, tenant, second)], [false, true])
    t.equal(unlinked(world), 2)
    pass(world, 1)
    t.same([hasHead(world, tenant, first), hasHead(world, tenant, second)], [false, false])
    t.equal(unlinked(world), 4)
    t.equal(
      world.hash(receivedStateKey(world.shard, tenant.live.serverId, segments(world, tenant)[0] ?? '')).size,
      2,
      'the reference stays',
    )
  },
)

t.test(
  'sweep-received: a shorter retention applies to stored mail at the next sweep, a longer one to what is left [stream.patch]',
  async (t) => {
    const { world, tenant, streamId } = open()
    const ids = Array.from({ length: 250 }, () => {
      world.nowMs += 60_000
      return receiveMail(world, tenant, { streamId })[0] as string
    })
    pass(world, 5)
    t.ok(ids.every((id) => hasHead(world, tenant, id)))
    changeState(world, 'stream', streamId, { contentRetentionDays: 1 })
    pass(world, 1)
    t.ok(
      ids.every((id) => !hasHead(world, tenant, id)),
      'all of several steps',
    )
    const { freed } = world.counters.get(`received:${tenant.live.serverId}`) as { freed: string }
    t.equal(freed, entryIdAfter(entryIdOf(ids.at(-1) ?? '')), 'the next walk begins behind them')
    changeState(world, 'stream', streamId, { contentRetentionDays: 30 })
    const [late = ''] = receiveMail(world, tenant, { streamId })
    pass(world, 29)
    t.ok(hasHead(world, tenant, late))
    pass(world, 2)
    t.notOk(hasHead(world, tenant, late))
  },
)

t.test(
  'sweep-received: two streams have their own retention, and neither delays the other [retention.inbound]',
  async (t) => {
    const { world, tenant, streamId } = open()
    const [long = ''] = receiveMail(world, tenant, { streamId })
    world.run(archiveStream, {
      accountId: tenant.accountId,
      serverId: tenant.live.serverId,
      keyHash: LIVE_KEY,
      streamId,
    })
    const other = makeInboundStream(world, tenant, 'Other')
    changeState(world, 'stream', other, { contentRetentionDays: 2 })
    const [short = ''] = receiveMail(world, tenant, { streamId: other })
    pass(world, 3)
    t.same([hasHead(world, tenant, long), hasHead(world, tenant, short)], [true, false])
  },
)

t.test(
  'sweep-received: references go after 13 months, in part and then whole, and the sweep ends [retention.inbound]',
  async (t) => {
    const { world, tenant, streamId } = open()
    const [first = ''] = receiveMail(world, tenant, { streamId })
    world.nowMs += 2 * DAY_MS
    receiveMail(world, tenant, { streamId })
    const { serverId } = tenant.live
    pass(world, 392)
    const [one, other] = receivedRows(world, serverId)
    t.match([one, other], [{ entryId: entryIdOf(first), isPacked: true }, { isPacked: true }])
    pass(world, 2)
    t.same(receivedRows(world, serverId), [other])
    pass(world, 40)
    t.same(segments(world, tenant), [])
    t.notOk(
      [...world.items.values()].some(({ item }) => item.startsWith('received:')),
      'no sweep without a segment',
    )
    t.notOk(
      [...world.keys.keys()].some((key) => key.includes(':received')),
      'nothing is left',
    )
    receiveMail(world, tenant, { streamId })
    t.ok(
      [...world.items.values()].some(({ item }) => item === `received:${serverId}`),
      'it begins anew',
    )
  },
)

t.test(
  'sweep-received: postings of a busy segment go with their messages, in part and then whole [retention.inbound]',
  async (t) => {
    const { world, tenant, streamId } = open()
    const { serverId } = tenant.live
    const segment = { name: '202611-0-1', recipients: 5_000, bytes: 0, lastMs: NOW_MS - 1 }
    world.counters.set(receivedOwner(serverId), { segment })
    const receive = () => {
      receiveMail(world, tenant, { streamId, hashes: ['a'] })
      parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    }
    const postings = () =>
      [...world.keys.keys()].filter((key) => /:received-by-/.test(key)).flatMap((key) => world.stream(key)).length
    const packed = () =>
      [...world.keys.keys()]
        .filter((key) => key.includes(':received-postings:'))
        .flatMap((key) => [...world.hash(key).values()].map(unpackPostings))
        .filter((some) => some !== 'many')
        .flat().length
    receive()
    world.items.set(`timers received:${serverId}`, {
      lane: 'timers',
      item: `received:${serverId}`,
      atMs: world.nowMs,
      claims: 0,
    })
    world.nowMs += 2 * DAY_MS
    receive()
    t.match(segments(world, tenant), [/-32$/])
    t.equal(postings(), 6, 'sender, hash and From of each')
    pass(world, 31)
    t.equal(postings(), 6)
    pass(world, 14)
    t.equal(postings(), 0)
    t.equal(packed(), 6)
    pass(world, 347)
    t.equal(packed(), 6)
    pass(world, 2)
    t.equal(packed(), 0, 'the blocks are read from now on')
    t.equal(receivedRows(world, serverId).length, 1)
    pass(world, 40)
    t.same(segments(world, tenant), [])
    t.notOk(
      [...world.keys.keys()].some((key) => key.includes(':received')),
      'nothing is left',
    )
  },
)

t.test('sweep-received: a removed server is deleted after its received mail [server.remove]', async (t) => {
  const { world, tenant, streamId } = open()
  receiveMail(world, tenant, { streamId })
  const { serverId } = tenant.live
  world.run(removeServer, { accountId: tenant.accountId, keyHash: ACCOUNT_KEY, serverId, by: null } as never)
  pass(world, 300)
  t.equal(segments(world, tenant).length, 1)
  t.ok(world.sorted(`{s023}:streams:${serverId}`).size > 0, 'its streams are there')
  pass(world, 140)
  t.same(segments(world, tenant), [])
  t.equal(world.sorted(`{s023}:streams:${serverId}`).size, 0)
})
