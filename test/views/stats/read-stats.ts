/** read-stats - which hours and days an answer holds, and that nothing is counted twice while it moves. */

import t from 'tap'
import type { StatsEntry } from '../../../schemas/stats.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { streamsKey } from '../../../src/state/keys.ts'
import type { Reader, ServerKey } from '../../../src/views/key.ts'
import { readStats, type StatsQuery } from '../../../src/views/stats/read-stats.ts'
import { hmacOf, LIVE_KEY, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** 2026-11-20T00:00:00Z */
const DAY_START_MS = Date.parse('2026-11-20T00:00:00Z')
const ALL: StatsQuery = { fromMs: null, toMs: null, by: 'day', streamId: null }

function begin(nowMs: number) {
  const world = new World(nowMs)
  const tenant = makeTenant(world)
  const { serverId, streamId } = tenant.live
  const { accountId } = tenant
  const key: ServerKey = {
    kind: 'server',
    accountId,
    serverId,
    tokenId: serverId,
    hash: LIVE_KEY,
    mode: 'live',
    defaultStreamId: streamId,
  }
  return { world, tenant, key }
}

function sendAndDeliver(world: World, tenant: Tenant): void {
  const told = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf('ada@example.net') }
  send(world, tenant)
  const [due] = world.deliveries()
  world.end(attemptOutcome, { ...due!, attempt: due!.claims }, reportOutcome(makeDelivered(250, '250 Ok'), told))
}

type Seen = Awaited<ReturnType<typeof readStats>>

const rowsOf = (seen: Seen): StatsEntry[] => (typeof seen === 'object' && 'stats' in seen ? seen.stats : [])
const shortOf = (seen: Seen) =>
  rowsOf(seen).map(({ at, accepted, delivered }) => [at.slice(0, 16), accepted, delivered])

t.test('stats: whole hours and days, those that run among them [stats.read]', async (t) => {
  const { world, tenant, key } = begin(DAY_START_MS - 30 * 60_000)
  for (let n = 0; n < 4; n += 1) {
    sendAndDeliver(world, tenant)
    world.nowMs += HOUR_MS
  }
  const { read } = readerOf(world)
  const ask = async (query: Partial<StatsQuery>) =>
    shortOf(await readStats(read, key, { query: { ...ALL, ...query }, nowMs: world.nowMs }))
  t.same(await ask({}), [
    ['2026-11-19T00:00', 1, 1],
    ['2026-11-20T00:00', 3, 3],
  ])
  const hours = [
    ['2026-11-19T23:00', 1, 1],
    ['2026-11-20T00:00', 1, 1],
    ['2026-11-20T01:00', 1, 1],
    ['2026-11-20T02:00', 1, 1],
  ]
  t.same(await ask({ by: 'hour' }), hours)
  t.same(await ask({ by: 'hour', fromMs: DAY_START_MS + 1, toMs: DAY_START_MS + HOUR_MS + 1 }), hours.slice(1, 3))
  t.same(await ask({ by: 'hour', fromMs: DAY_START_MS, toMs: DAY_START_MS + HOUR_MS }), hours.slice(1, 2))
  t.same(await ask({ fromMs: DAY_START_MS, toMs: DAY_START_MS + DAY_MS }), [['2026-11-20T00:00', 3, 3]])
  t.same(await ask({ streamId: tenant.live.streamId, fromMs: 0 }), await ask({}))
  t.same(await ask({ toMs: DAY_START_MS + 100 * DAY_MS }), [], 'the 30 days before what is still to come')
  const refused = await readStats(read, key, { query: { ...ALL, streamId: tenant.test.streamId }, nowMs: world.nowMs })
  t.equal(refused, 'stream_not_found', 'that of another server')
})

t.test('stats: figures stay 13 months [retention.stats]', async (t) => {
  const { world, tenant, key } = begin(Date.parse('2025-10-20T12:00:00Z'))
  sendAndDeliver(world, tenant)
  world.nowMs += DAY_MS
  sendAndDeliver(world, tenant)
  world.nowMs = DAY_START_MS
  sendAndDeliver(world, tenant)
  const { read } = readerOf(world)
  const ask = async () => shortOf(await readStats(read, key, { query: { ...ALL, fromMs: 0 }, nowMs: world.nowMs }))
  const [today, oldest] = [
    ['2026-11-20T00:00', 1, 1],
    ['2025-10-21T00:00', 1, 1],
  ]
  t.same(await ask(), [['2025-10-20T00:00', 1, 1], oldest, today])
  world.nowMs += HOUR_MS
  t.same(await ask(), [oldest, today], 'a day that is past its age in part is left out')
  const keys = () => world.keyNames().filter((name) => name.includes(':stats:') && world.hash(name).size > 0)
  t.equal(keys().length, 1, 'the hour of today still runs')
  world.nowMs = Date.parse('2026-12-02T00:00:01Z')
  world.expire()
  t.equal(keys().length, 0)
  t.same(await ask(), [today])
})

t.test('stats: an impossible request is refused with its parameter', async (t) => {
  const { world, tenant, key } = begin(DAY_START_MS)
  const { read } = readerOf(world)
  const ask = (query: Partial<StatsQuery>) => readStats(read, key, { query: { ...ALL, ...query }, nowMs: world.nowMs })
  t.match(await ask({ fromMs: DAY_START_MS, toMs: DAY_START_MS }), { path: 'to' })
  t.match(await ask({ by: 'hour', fromMs: DAY_START_MS - 31 * DAY_MS - 1, toMs: DAY_START_MS }), { path: 'from' })
  t.match(await ask({ by: 'hour', fromMs: DAY_START_MS - 31 * DAY_MS, toMs: DAY_START_MS }), { stats: [] })
  const streams = world.keys.get(streamsKey(world.shard, tenant.live.serverId)) as never as {
    scores: Map<string, number>
  }
  for (let n = 0; n < 40; n += 1) streams.scores.set(`01a1f8d8-8300-7017-8000-${String(n).padStart(12, '0')}`, n)
  t.match(await ask({ fromMs: 0 }), { path: 'streamId', message: /10000 rows/ })
  t.match(await ask({ fromMs: 0, streamId: tenant.live.streamId }), { stats: [] })
  t.match(await ask({}), { stats: [] })
})

t.test('stats: an hour that moves during the read is counted once', async (t) => {
  for (let at = 1; at <= 4; at += 1) {
    const { world, tenant, key } = begin(Date.parse('2026-10-31T23:30:00Z'))
    sendAndDeliver(world, tenant)
    world.nowMs += 40 * DAY_MS
    const plain = readerOf(world)
    const read: Reader = async (shard, facts) => {
      if (plain.reads + 1 === at) sendAndDeliver(world, tenant)
      return plain.read(shard, facts)
    }
    const seen = await readStats(read, key, { query: { ...ALL, fromMs: 0 }, nowMs: world.nowMs })
    const [first, second] = shortOf(seen)
    t.same(first, ['2026-10-31T00:00', 1, 1], `before read ${at}`)
    t.same(second, plain.reads < at ? undefined : ['2026-12-10T00:00', 1, 1])
  }
})
