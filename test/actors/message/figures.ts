/** figures - whatever happens to messages, in any order, the statistics count it exactly. */

import t from 'tap'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered, type Outcome } from '../../../src/mail/outcome.ts'
import { MAIL_FIGURES } from '../../../src/state/message/hour-count.ts'
import { parseAttemptItem } from '../../../src/state/message/item.ts'
import { unpackStatsDay } from '../../../src/state/message/stats-rows.ts'
import type { HourCounters, ServerCounters } from '../../../src/state/server.ts'
import { readLastDay } from '../../../src/views/stats/read-stats.ts'
import {
  acceptedIds,
  changeState,
  hmacOf,
  makeItem,
  makeRecipient,
  makeTenant,
  send,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const HOUR_MS = 3_600_000
const NOW_MS = 480_000 * HOUR_MS

type Counts = Record<string, number>

/** Sums of everything stored for a server in the order of `MAIL_FIGURES`, read without the product's views. */
function storedOf(world: World, serverId: string): { all: number[]; told: number[] } {
  const all = MAIL_FIGURES.map(() => 0)
  const told = MAIL_FIGURES.map(() => 0)
  const add = (sum: number[], row: readonly number[]) => {
    for (const [place, n] of row.entries()) sum[place] = (sum[place] ?? 0) + n
  }
  const server = world.counters.get(`server:${serverId}`) as ServerCounters | undefined
  const hour = world.counters.get(`hour:${serverId}`) as HourCounters | undefined
  for (const one of [server?.hour, hour])
    for (const row of Object.values(one?.[1] ?? {})) {
      add(all, row)
      add(told, row)
    }
  for (const key of world.keyNames().filter((name) => name.includes(`:stats:${serverId}:`)))
    for (const [field, text] of world.hash(key))
      for (const row of unpackStatsDay(text).values()) add(field.startsWith('*') ? all : told, row)
  return { all, told }
}

t.test(
  'figures: a long run of sends, outcomes, reports and hours is counted without an error [stats.count]',
  async (t) => {
    const world = new World(NOW_MS)
    const tenant = makeTenant(world)
    const { serverId } = tenant.live
    const want: Counts = Object.fromEntries(MAIL_FIGURES.map((name) => [name, 0]))
    const note = (name: (typeof MAIL_FIGURES)[number]) => {
      want[name] = (want[name] ?? 0) + 1
    }
    const told = (address: string) => ({ address, sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf(address) })
    const ends: readonly (readonly [outcome: Outcome, figure: (typeof MAIL_FIGURES)[number]])[] = [
      [makeDelivered(250, '250 2.0.0 Ok'), 'delivered'],
      [makeRefused({ phase: 'rcpt', response: '550 5.7.1 Blocked' }), 'softBounced'],
      [makeRefused({ phase: 'rcpt', response: '550 5.1.1 Unknown' }), 'hardBounced'],
    ]
    const deferred = new Set<string>()
    let refused = 0
    for (let step = 0; step < 1_500; step += 1) {
      const chance = world.random()
      if (chance < 0.3) {
        const addresses = [0, 1].map(() => `p${Math.floor(world.random() * 400)}@example.net`)
        const recipients = [...new Set(addresses)].map((address) => makeRecipient(address))
        const before = world.deliveries().length
        acceptedIds(send(world, tenant, { messages: [makeItem({ recipients })] }))
        const suppressed = recipients.length - (world.deliveries().length - before)
        for (const _ of recipients) note('accepted')
        for (let n = 0; n < suppressed; n += 1) note('suppressed')
      } else if (chance < 0.9) {
        const [due] = world.deliveries()
        if (due === undefined) continue
        const { address } = (due.job as { recipient: { address: string } } | undefined)?.recipient ?? {
          address: 'x@y.zz',
        }
        if (chance < 0.45) {
          const later = makeRefused({ phase: 'rcpt', response: '451 4.3.0 Try later' })
          world.end(attemptOutcome, { ...due, attempt: due.claims }, reportOutcome(later, told(address)))
          if (!deferred.has(due.item)) note('deferred')
          deferred.add(due.item)
        }
        if (world.random() < 0.8) {
          const [outcome, figure] = ends[Math.floor(world.random() * ends.length)]!
          const { streamId } = tenant.live
          const known = world.random() < 0.5 ? { streamId } : {}
          world.end(
            attemptOutcome,
            { ...due, attempt: due.claims },
            reportOutcome(outcome, { ...told(address), ...known }),
          )
          note(figure)
          if (figure === 'delivered' && world.random() < 0.3) {
            const report = { kind: 'complaint', feedbackType: 'abuse' } as const
            t.equal(world.run(recordReport, { item: due.item, hmac: hmacOf(address), report }), 'recorded')
            note('complained')
          }
        }
      } else if (chance < 0.95) world.nowMs += Math.floor(world.random() * 3 * HOUR_MS)
      else world.nowMs -= Math.floor(world.random() * HOUR_MS)
      if (world.rounds > 3) refused += 1
    }
    const { all, told: sum } = storedOf(world, serverId)
    t.same(Object.fromEntries(MAIL_FIGURES.map((name, place) => [name, sum[place]])), want)
    t.same(all, sum, 'and so are all streams together')
    t.equal(refused, 0, 'no turn reads more than three times')
    t.ok((want.suppressed ?? 0) > 10 && (want.complained ?? 0) > 10 && (want.deferred ?? 0) > 50)
  },
)

t.test('figures: each stream counts for itself, even if the reporter does not know it', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const other = tenant.test.streamId
  // A stream of the live server instead of a created one.
  changeState(world, 'stream', other, { serverId: tenant.live.serverId, isDefault: false, kind: 'transactional' })
  const told = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf('ada@example.net') }
  const delivered = makeDelivered(250, '250 2.0.0 Ok')
  for (const known of [{}, { streamId: other }]) {
    send(world, tenant, { messages: [makeItem({ streamId: other })] })
    const [due] = world.deliveries()
    world.end(attemptOutcome, { ...due!, attempt: due!.claims }, reportOutcome(delivered, { ...told, ...known }))
  }
  send(world, tenant)
  const { serverId } = tenant.live
  const short = Object.keys((world.counters.get(`hour:${serverId}`) as HourCounters)[1])
  t.equal(short.length, 1)
  t.same(world.counters.get(`hour:${serverId}`), [480_000, { [short[0]!]: [0, 2] }])
  t.same((world.counters.get(`server:${serverId}`) as ServerCounters).hour, [480_000, { [short[0]!]: [2], 0: [1] }])
  t.equal(parseAttemptItem(world.deliveries()[0]!.item).serverId, serverId)
})

t.test('figures: the last 24 hours of an account are those of its live servers [account.detail]', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const told = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf('ada@example.net') }
  const { read } = readerOf(world)
  const serverIds = [tenant.live.serverId, tenant.test.serverId]
  const last = () => readLastDay(read, { shard: world.shard, serverIds, nowMs: world.nowMs })
  for (let hour = 0; hour < 3; hour += 1) {
    for (const test of [false, true]) {
      send(world, tenant, { test })
      const [due] = world.deliveries()
      world.end(attemptOutcome, { ...due!, attempt: due!.claims }, reportOutcome(makeDelivered(250, '250 Ok'), told))
    }
    world.nowMs += HOUR_MS
  }
  t.same(await last(), { delivered: 3, bounced: 0, complained: 0 })
  world.nowMs += 21 * HOUR_MS
  t.same(await last(), { delivered: 2, bounced: 0, complained: 0 }, 'what is past its hour is left out')
  world.nowMs += 3 * HOUR_MS
  t.same(await last(), { delivered: 0, bounced: 0, complained: 0 })
})
