/** groups - whatever happens to messages at six providers, every group equals a count over a ledger kept here. */

import t, { type Test } from 'tap'
import type { StatsBy, StatsGroup, StatsGroupBy } from '../../../schemas/stats.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { unconnectedRoute } from '../../../src/mail/attempt-route.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDeferred, makeDelivered, type Outcome } from '../../../src/mail/outcome.ts'
import { boundMs } from '../../../src/state/message/group-count.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { readGroups } from '../../../src/views/stats/read-groups.ts'
import {
  acceptedIds,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
  type Tenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const NOW_MS = 480_000 * HOUR_MS

/** Providers by a mail server of theirs. */
const SITES: readonly (readonly [host: string | null, site: string])[] = [
  ['gmail-smtp-in.l.google.com', 'google'],
  ['acme-com.mail.protection.outlook.com', 'microsoft'],
  ['mta6.am0.yahoodns.net', 'yahoo'],
  ['mx01.mail.icloud.com', 'apple'],
  ['mx00.emig.gmx.net', 'united-internet'],
  ['mx2.acme.co.uk', 'acme.co.uk'],
  [null, 'none'],
]

/** One of them has the name of the rest. */
const TAGS = ['welcome', 'other', 'invoice', null]

function hashOf(tag: string | null): string | null {
  return tag === null ? null : hmacOf(tag).slice(0, 8)
}

interface Noted {
  readonly atMs: number
  readonly figure: keyof StatsGroup & string
  readonly site: string
  readonly class: string | null
  readonly stream: string
  readonly tag: string | null
  readonly ms: number | null
}

type Counts = Record<string, number>

/** What the ledger says of one kind of group between two instants. */
function countLedger(ledger: readonly Noted[], groupBy: StatsGroupBy, fromMs: number, toMs: number) {
  const groups = new Map<string, Counts & { times: number[] }>()
  for (const noted of ledger) {
    const name = noted[groupBy]
    if (name === null || noted.atMs < fromMs || noted.atMs >= toMs) continue
    const group = groups.get(name) ?? ({ times: [] } as unknown as Counts & { times: number[] })
    group[noted.figure] = (group[noted.figure] ?? 0) + 1
    if (noted.ms !== null && groupBy !== 'class') group.times.push(noted.ms)
    groups.set(name, group)
  }
  return groups
}

/** The bound of the bucket that holds the share of the times, counted without the product's histogram. */
function percentileOf(times: readonly number[], share: number): number | null {
  if (times.length < 20) return null
  const sorted = [...times].sort((one, other) => one - other)
  const ms = sorted[Math.ceil(sorted.length * share) - 1] as number
  let bucket = 0
  while (boundMs(bucket) < ms) bucket += 1
  return boundMs(bucket)
}

const OUTCOMES: readonly (readonly [outcome: Outcome, figure: Noted['figure']])[] = [
  [makeDelivered(250, '250 2.0.0 Ok'), 'delivered'],
  [makeDelivered(250, '250 2.0.0 Ok'), 'delivered'],
  [makeDelivered(250, '250 2.0.0 Ok'), 'delivered'],
  [makeRefused({ phase: 'rcpt', response: '550 5.7.1 Blocked for spam' }), 'softBounced'],
  [makeRefused({ phase: 'rcpt', response: '550 5.1.1 Unknown' }), 'hardBounced'],
]
const LATER = makeRefused({ phase: 'rcpt', response: '451 4.7.0 Slow down' })
const NO_DNS = makeDeferred('dns', 'DNSFailure', '4.4.3 MX lookup failed')

function keyOf({ accountId, live }: Tenant): ServerKey {
  const ids = { accountId, serverId: live.serverId, tokenId: live.serverId, defaultStreamId: live.streamId }
  return { kind: 'server', hash: LIVE_KEY, mode: 'live', ...ids }
}

/** Sends and ends messages at random. Out: the ledger. */
function live(t: Test, world: World, tenant: Tenant, steps: number): Noted[] {
  const ledger: Noted[] = []
  const deferred = new Set<string>()
  const stream = tenant.live.streamId
  for (let step = 0; step < steps; step += 1) {
    const [host, site] = SITES[Math.floor(world.random() * SITES.length)]!
    const address = `p${step}@example.net`
    const tag = TAGS[Math.floor(world.random() * TAGS.length)]!
    const tagHash = hashOf(tag)
    acceptedIds(send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient(address)], tag, tagHash })] }))
    const acceptedAtMs = world.nowMs
    const due = world.deliveries().find(({ lane }) => lane.startsWith('deliver'))!
    const route = host === null ? null : unconnectedRoute(host, null, 3)
    const known = world.random() < 0.5 ? { streamId: stream, tagHash } : {}
    const report = { address, sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf(address), ...known }
    const end = (outcome: Outcome) =>
      world.end(attemptOutcome, { ...due, attempt: due.claims }, reportOutcome({ ...outcome, route }, report))
    const note = (figure: Noted['figure'], of: string | null, ms: number | null) =>
      ledger.push({ atMs: world.nowMs, figure, site, class: of, stream, tag, ms })
    if (world.random() < 0.3) {
      world.nowMs += Math.floor(world.random() * 2_000)
      const later = host === null ? NO_DNS : LATER
      end(later)
      if (!deferred.has(due.item)) note('deferred', later.classification, null)
      deferred.add(due.item)
    }
    world.nowMs += Math.floor(world.random() ** 6 * 20 * 60_000)
    const [outcome, figure] = OUTCOMES[Math.floor(world.random() * OUTCOMES.length)]!
    end(outcome)
    note(figure, outcome.classification, figure === 'delivered' ? world.nowMs - acceptedAtMs : null)
    if (figure === 'delivered' && world.random() < 0.1) {
      const complaint = { kind: 'complaint', feedbackType: 'abuse' } as const
      t.equal(world.run(recordReport, { item: due.item, hmac: hmacOf(address), report: complaint }), 'recorded')
      note('complained', null, null)
    }
    if (world.random() < 0.02) world.nowMs += Math.floor(world.random() * 5 * HOUR_MS)
  }
  return ledger
}

t.test('groups: thousands of outcomes at six providers are counted without an error [stats.groups]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const ledger = live(t, world, tenant, 3_000)
  const { read } = readerOf(world)
  const ask = async (groupBy: StatsGroupBy, by: StatsBy, fromMs: number) => {
    const query = { groupBy, by, fromMs, toMs: null }
    const seen = await readGroups({ read, nowMs: () => world.nowMs }, keyOf(tenant), query)
    return typeof seen === 'object' && 'groups' in seen ? seen.groups : t.fail(JSON.stringify(seen))
  }
  for (const groupBy of ['site', 'class', 'stream', 'tag'] as const)
    for (const [by, unitMs, fromMs] of [
      ['total', Number.POSITIVE_INFINITY, NOW_MS - DAY_MS],
      ['day', DAY_MS, Math.floor(NOW_MS / DAY_MS) * DAY_MS],
      ['hour', HOUR_MS, Math.floor(world.nowMs / HOUR_MS - 150) * HOUR_MS],
    ] as const) {
      const groups = (await ask(groupBy, by, fromMs)) as StatsGroup[]
      const begins = [...new Set(groups.map(({ at }) => Date.parse(at)))]
      let sum = 0
      for (const begin of begins) {
        const wanted = countLedger(ledger, groupBy, begin, begin + unitMs)
        const rows = groups.filter(({ at }) => Date.parse(at) === begin)
        t.equal(rows.length, wanted.size)
        for (const { group, at: _at, handOver, other, ...counts } of rows) {
          t.equal(other, false)
          const { times = [], ...want } = wanted.get(group ?? '') ?? {}
          const some = Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0))
          sum += Object.values(some).reduce((all, count) => all + count, 0)
          if (JSON.stringify(sorted(some)) !== JSON.stringify(sorted(want as Counts))) t.same(some, want, group ?? '')
          const p = { p50Ms: percentileOf(times as number[], 0.5), p95Ms: percentileOf(times as number[], 0.95) }
          if (JSON.stringify(handOver) !== JSON.stringify(p)) t.same(handOver, p, `${group} ${by}`)
        }
      }
      const all = [...countLedger(ledger, groupBy, fromMs, Number.POSITIVE_INFINITY).values()]
      t.equal(
        sum,
        all.flatMap(({ times: _times, ...counts }) => Object.values(counts as Counts)).reduce((one, n) => one + n, 0),
        `nothing is left out: ${groupBy} by ${by}`,
      )
      t.ok(sum > 300)
    }
})

function sorted(counts: Counts): [string, number][] {
  return Object.entries(counts).sort()
}

t.test('groups: beyond the bounds everything is counted as other [stats.groups]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  for (let n = 0; n < 120; n += 1) {
    send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient(`p${n}@example.net`)] })] })
    const [due] = world.deliveries()
    const host = n < 100 ? `mx.site-${n}.example` : 'aspmx.l.google.com'
    const outcome = { ...makeDelivered(250, '250 Ok'), route: unconnectedRoute(host, null, null) }
    const report = { address: 'x@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => '' }
    world.end(attemptOutcome, { ...due!, attempt: due!.claims }, reportOutcome(outcome, report))
  }
  world.nowMs += 2 * HOUR_MS
  send(world, tenant)
  const [due] = world.deliveries()
  const report = { address: 'x@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => '' }
  world.end(attemptOutcome, { ...due!, attempt: due!.claims }, reportOutcome(makeDelivered(250, '250 Ok'), report))
  const { read } = readerOf(world)
  const ask = async (groupBy: StatsGroupBy) => {
    const query = { groupBy, by: 'total', fromMs: null, toMs: null } as const
    const seen = await readGroups({ read, nowMs: () => world.nowMs }, keyOf(tenant), query)
    return typeof seen === 'object' && 'groups' in seen ? seen.groups : []
  }
  const sites = await ask('site')
  t.equal(sites.find(({ group }) => group === 'other')?.delivered, 80, 'twenty domains have a name')
  t.equal(sites.find(({ group }) => group === 'google')?.delivered, 20, 'a provider keeps its room')
  t.equal(sites.length, 23)
  const bytes = [...world.keyNames()]
    .filter((name) => name.includes(':group-days:'))
    .flatMap((name) => [...world.hash(name).values()])
    .reduce((sum, text) => sum + text.length, 0)
  t.ok(bytes < 4096, `${bytes} bytes for the fullest day`)
})

t.test('groups: hours are told for eight days, days for longer [stats.groups]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { read } = readerOf(world)
  const ask = (by: StatsBy, days: number) =>
    readGroups({ read, nowMs: () => world.nowMs }, keyOf(tenant), {
      ...{ groupBy: 'site', by, fromMs: world.nowMs - days * DAY_MS, toMs: null },
    })
  t.match(await ask('hour', 8), { groups: [] })
  t.match(await ask('hour', 9), { path: 'from' })
  t.match(await ask('day', 300), { groups: [] })
})
