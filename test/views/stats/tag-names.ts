/** tag-names - the names of tags come from the messages of the log, with a bounded number of reads. */

import t from 'tap'
import type { StatsBy, StatsGroup } from '../../../schemas/stats.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { erasedHead, unpackHead } from '../../../src/state/message/head.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { readGroups } from '../../../src/views/stats/read-groups.ts'
import { hmacOf, LIVE_KEY, makeItem, makeTenant, send, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const DAY_MS = 86_400_000
const NOW_MS = 20_000 * DAY_MS + DAY_MS / 2

function deliver(world: World, tenant: Tenant, tag: string | null, isCounted = true): void {
  world.nowMs += 1_000
  const tagHash = tag === null ? null : hmacOf(tag).slice(0, 8)
  send(world, tenant, { messages: [makeItem({ tag, tagHash })] })
  const due = world.deliveries().at(-1)!
  const report = { address: 'ada@example.net', sizeBytes: 9, retryAfterMs: null, hmac: () => '' }
  if (isCounted)
    world.end(attemptOutcome, { ...due, attempt: due.claims }, reportOutcome(makeDelivered(250, '250 Ok'), report))
  else world.items.delete(`${due.lane} ${due.item}`)
}

function begin() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { accountId, live } = tenant
  const ids = { accountId, serverId: live.serverId, tokenId: live.serverId, defaultStreamId: live.streamId }
  const key: ServerKey = { kind: 'server', hash: LIVE_KEY, mode: 'live', ...ids }
  const reader = readerOf(world)
  const ask = async (by: StatsBy = 'total', fromMs = NOW_MS - 20 * DAY_MS): Promise<StatsGroup[]> => {
    reader.reads = 0
    reader.entries = 0
    const deps = { read: reader.read, nowMs: () => world.nowMs }
    const seen = await readGroups(deps, key, { groupBy: 'tag', by, fromMs, toMs: null })
    if (typeof seen !== 'object' || !('groups' in seen)) throw new Error(JSON.stringify(seen))
    return seen.groups
  }
  return { world, tenant, reader, ask }
}

/** Erases the heads of all messages with a tag, as an erasure of their recipient does. */
function eraseHeads(world: World, tag: string): void {
  for (const name of world.keyNames().filter((one) => one.includes(':head:')))
    for (const [field, text] of world.hash(name)) {
      const head = unpackHead(text, 1)
      if (head.tag === tag) (world.hash(name) as Map<string, string>).set(field, erasedHead(head))
    }
}

const shortOf = (groups: readonly StatsGroup[]) =>
  groups.map(({ group, other, delivered }) => [group, other, delivered])

t.test(
  'tags: each is named, beyond fifty they are others, and mail without a tag is in no group [stats.groups]',
  async (t) => {
    const { world, tenant, ask, reader } = begin()
    deliver(world, tenant, 'other')
    deliver(world, tenant, null)
    for (let n = 0; n < 60; n += 1) deliver(world, tenant, `tag ${n}`)
    deliver(world, tenant, 'other')
    world.nowMs += DAY_MS
    deliver(world, tenant, 'tag 59')
    const groups = await ask()
    t.equal(
      groups.reduce((sum, { delivered }) => sum + delivered, 0),
      63,
    )
    t.same(
      groups.filter(({ other }) => other).map(({ group }) => group),
      ['other'],
    )
    t.same(shortOf(groups.filter(({ group, other }) => group === 'other' && !other)), [['other', false, 2]])
    t.equal(groups.length, 52, 'fifty of the first day, one that was the rest on it, and the rest')
    t.notOk(groups.some(({ group }) => group === null))
    t.ok(reader.reads < 12, `one walk of two days names all: ${reader.reads} reads`)
  },
)

t.test(
  'tags: an erased tag has counts and no name, and its hash alone is stored [stats.groups] [erasure.messages]',
  async (t) => {
    const { world, tenant, ask } = begin()
    deliver(world, tenant, 'ada lovelace')
    deliver(world, tenant, 'welcome')
    world.nowMs += 3_600_000
    deliver(world, tenant, 'charles')
    t.same(
      shortOf(await ask())
        .map(([name]) => name)
        .sort(),
      ['ada lovelace', 'charles', 'welcome'],
    )
    eraseHeads(world, 'ada lovelace')
    eraseHeads(world, 'charles')
    t.same(shortOf(await ask()), [
      [null, false, 2],
      ['welcome', false, 1],
    ])
    const stored = [
      ...world.keyNames().flatMap((name) => [name, ...world.hash(name).keys(), ...world.hash(name).values()]),
      JSON.stringify([...world.counters]),
    ].join('\n')
    t.match(stored, hmacOf('charles').slice(0, 8))
    t.notMatch(stored, /ada lovelace|charles/)
  },
)

t.test('tags: one that other messages still have is named by them [stats.groups]', async (t) => {
  const { world, tenant, ask } = begin()
  deliver(world, tenant, 'welcome')
  eraseHeads(world, 'welcome')
  t.same(shortOf(await ask()), [[null, false, 1]])
  deliver(world, tenant, 'welcome')
  t.same(shortOf(await ask()), [['welcome', false, 2]])
})

t.test('tags: a name is sought in a thousand messages of its last day [stats.groups]', async (t) => {
  const { world, tenant, ask, reader } = begin()
  deliver(world, tenant, 'digest')
  world.nowMs += 6 * DAY_MS
  deliver(world, tenant, 'hidden')
  for (let n = 0; n < 1_100; n += 1) deliver(world, tenant, null, false)
  t.same(shortOf(await ask('day')), [
    ['digest', false, 1],
    [null, false, 1],
  ])
  t.ok(reader.entries <= 1_010, `${reader.entries} entries read`)
  t.same(shortOf(await ask('hour', NOW_MS)), [
    ['digest', false, 1],
    [null, false, 1],
  ])
})
