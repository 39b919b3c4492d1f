/**
 * pack-received - received messages of 33 days move to blocks, and neither a reader nor an erasure sees a difference at
 * any step; damage stops nothing.
 */

import t from 'tap'
import { entryIdOf, shortId } from '../../../cluster/id.ts'
import { unlessDamaged, withSum } from '../../../cluster/sum.ts'
import { sweepReceived } from '../../../src/actors/inbound/sweep-received.ts'
import { DAY_MS, HOUR_MS } from '../../../src/state/calendar.ts'
import { receivedBlocksKey, receivedKey, receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { BLOCK_MESSAGES, packReceivedBlock, unpackReceivedBlock } from '../../../src/state/received/block.ts'
import { packPostings, unpackPostings } from '../../../src/state/received/packed-posting.ts'
import { type ReceivedCounters, receivedOwner } from '../../../src/state/received/sweep-cursor.ts'
import { readReceived } from '../../../src/views/inbound/received.ts'
import { type ReceivedFilter, searchReceived } from '../../../src/views/inbound/search.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import { eraseNow, openWorld, textsOf } from '../../support/world/erasure.ts'
import { makeInboundStream, makeParsed, parseNext, receivedRows, receiveMail } from '../../support/world/inbound.ts'
import { hmacOf, LIVE_KEY, type Tenant } from '../../support/world/tenant.ts'
import type { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

/** In October, so that the mail of two months is packed. */
const BEGIN_MS = Date.UTC(2026, 9, 20, 12)
const COUNT = 450
const PERSONS = 7
const ALL: ReceivedFilter = { streamId: null, from: null, recipient: null, mailboxHash: null, fromMs: null, toMs: null }

const addressOf = (n: number) => `person-${n % PERSONS}@example.net`
const personOf = (n: number) => ({ hmac: hmacOf(addressOf(n)), address: addressOf(n) })

/** Mail of three weeks, one message an hour, each from two persons, two of three with a text after the plus sign. */
function setUp({ isBusy = false, count = COUNT } = {}) {
  const { world, tenant } = openWorld(BEGIN_MS)
  const streamId = makeInboundStream(world, tenant)
  const owner = receivedOwner(tenant.live.serverId)
  if (isBusy) {
    const segment = { name: '202609-0-1', bytes: 0, lastMs: 0, recipients: 5_000 }
    world.counters.set(owner, { segment } satisfies ReceivedCounters)
  }
  const ids = Array.from({ length: count }, (_, n) => {
    world.nowMs += HOUR_MS
    const hashes = [n % 3 === 0 ? null : `text-${n % 11}`]
    const [id = ''] = receiveMail(world, tenant, { streamId, hashes, sender: personOf(n) })
    const from = { ...personOf(n + 1), name: 'Name' }
    parseNext(world, { result: 'parsed', parsed: makeParsed(world, { from }) })
    // Of the busy server, November too has postings.
    const { segment } = world.counters.get(owner) as Required<ReceivedCounters>
    if (isBusy)
      world.counters.set(owner, {
        ...(world.counters.get(owner) as object),
        segment: { ...segment, recipients: 5_000 },
      })
    return id
  })
  // The sweep of a server begins with its first segment; here the first one was put in place.
  world.items.set(`timers received:${tenant.live.serverId}`, {
    lane: 'timers',
    item: `received:${tenant.live.serverId}`,
    atMs: world.nowMs,
    claims: 0,
  })
  return { world, tenant, streamId, ids }
}

const ownerOf = ({ accountId, live }: Tenant): ServerKey => ({
  kind: 'server',
  tokenId: '',
  hash: LIVE_KEY,
  accountId,
  serverId: live.serverId,
  mode: 'live',
  defaultStreamId: '',
})

/** Ends content, before messages are packed. */
function endContent(world: World): void {
  world.nowMs += 31.5 * DAY_MS
  world.fireTimers()
}

const dueSweep = (world: World) =>
  [...world.items.values()].find(({ item, atMs }) => item.startsWith('received:') && atMs <= world.nowMs)?.item

/** One step of the sweep; false if none is due. */
function step(world: World): boolean {
  const item = dueSweep(world)
  if (item === undefined) return false
  world.items.delete(`timers ${item}`)
  world.run(sweepReceived, { item })
  return true
}

/** All that the API shows of received messages, page by page with several filters, and one by one, a line each. */
async function shown({ world, tenant, streamId, ids }: ReturnType<typeof setUp>): Promise<string[]> {
  const readParsed = () => Promise.resolve(null)
  const deps = { read: readerOf(world).read, nowMs: () => world.nowMs, inboundDomain: 'inbound.example', readParsed }
  const owner = ownerOf(tenant)
  const filters: [limit: number, filter: Partial<ReceivedFilter>][] = [
    [100, {}],
    [13, { streamId, from: hmacOf(addressOf(2)) }],
    [50, { from: hmacOf(addressOf(0)), fromMs: BEGIN_MS + 5 * DAY_MS, toMs: BEGIN_MS + 12 * DAY_MS }],
    [9, { mailboxHash: { text: 'text-4', hash: hmacOf('text-4').slice(0, 8) } }],
    [100, { recipient: `${streamId}+text-7@inbound.example` }],
  ]
  const lines: unknown[] = []
  for (const [limit, filter] of filters) {
    for (let after: string | null = null, pages = 0; pages < 60; pages += 1) {
      const page = await searchReceived(deps, owner, { filter: { ...ALL, ...filter }, page: { limit, after } })
      if (typeof page === 'string') throw new Error(page)
      lines.push(...page.messages)
      after = page.next
      if (after === null) break
    }
  }
  for (const id of ids) lines.push(await readReceived(deps, owner, id))
  return lines.map((one) => JSON.stringify(one))
}

for (const isBusy of [false, true]) {
  t.test(
    `pack-received: nobody sees a difference at any step${isBusy ? ', with postings' : ''} [inbound.search]`,
    async (t) => {
      const set = setUp({ isBusy })
      const { world, tenant } = set
      const { shard } = world
      const { serverId } = tenant.live
      endContent(world)
      world.nowMs += 40 * DAY_MS
      const before = await shown(set)
      t.ok(before.length > 2 * COUNT)
      t.notOk(before.includes('"not_found"'))
      const segments = [...world.sorted(receivedSegmentsKey(shard, serverId)).keys()]
      t.equal(segments.length, 2)
      let steps = 0
      while (step(world)) {
        steps += 1
        const now = await shown(set)
        const changed = now.find((line, at) => line !== before[at])
        if (changed !== undefined || now.length !== before.length) t.fail(`step ${steps}: ${changed ?? now.length}`)
      }
      t.ok(steps < 100, `${steps} steps`)
      t.ok(receivedRows(world, serverId).every(({ isPacked }) => isPacked))
      const names = world.keyNames().filter((key) => /:received/.test(key) && !key.includes(':received-segments:'))
      const kinds = new Set(names.map((key) => key.split(':')[1]))
      t.same([...kinds].sort(), isBusy ? ['received-blocks', 'received-postings'] : ['received-blocks'])
      for (const segment of segments)
        for (const block of world.sorted(receivedBlocksKey(shard, serverId, segment)).keys())
          t.ok(block.length < 75 * unpackReceivedBlock(block).length, `${block.length} bytes`)
      world.nowMs -= 45 * DAY_MS
      t.same(await shown(set), before, 'with the clock back')
    },
  )
}

t.test('pack-received: full blocks at 33 days, the rest when the month is over, whatever came since', async (t) => {
  const { world, tenant } = setUp({ count: 250 })
  const { serverId } = tenant.live
  const packed = () => receivedRows(world, serverId).filter(({ isPacked }) => isPacked).length
  const firstDay = Math.ceil((BEGIN_MS + 200 * HOUR_MS) / DAY_MS)
  world.nowMs = (firstDay + 32) * DAY_MS
  world.fireTimers()
  t.equal(packed(), 0, 'not before')
  world.nowMs = (firstDay + 34) * DAY_MS
  world.fireTimers()
  t.equal(packed(), BLOCK_MESSAGES)
  // The last message of the month is old, but others could follow it until its end.
  world.nowMs = Date.UTC(2026, 11, 3)
  world.fireTimers()
  t.equal(packed(), BLOCK_MESSAGES)
  world.nowMs = Date.UTC(2026, 11, 5)
  world.fireTimers()
  t.equal(packed(), 250, 'no mail came since')
})

t.test('pack-received: damaged rows move as they are, and stop neither the sweep nor retention', async (t) => {
  const { world, tenant, ids } = setUp({ count: 260 })
  const { shard } = world
  const { serverId } = tenant.live
  const [segment = ''] = world.sorted(receivedSegmentsKey(shard, serverId)).keys()
  const states = world.hash(receivedStateKey(shard, serverId, segment)) as Map<string, string>
  const damaged =
    states
      .get(shortId(ids[3] ?? ''))
      ?.replace('1', '2')
      .concat('\n') ?? ''
  states.set(shortId(ids[3] ?? ''), damaged)
  const entry = world.stream(receivedKey(shard, serverId, segment))[5] as { fields: readonly string[] }
  entry.fields = [entry.fields[0] ?? '', `${entry.fields[1]?.replace('[', '(')}`]
  endContent(world)
  world.nowMs += 40 * DAY_MS
  world.fireTimers()
  const rows = receivedRows(world, serverId)
  t.equal(rows.length, 260)
  t.ok(rows.every(({ isPacked }) => isPacked))
  t.equal(rows[3]?.standing, damaged.replace('\n', '\ufffd'))
  t.equal(rows[5]?.entry, entry.fields[1])
  world.nowMs += 395 * DAY_MS
  world.fireTimers()
  t.notOk(world.keyNames().some((key) => key.includes(':received')))
})

t.test(
  'pack-received: an expired block that is damaged leaves with its messages, even if it is no UTF-8',
  async (t) => {
    const { world, tenant } = setUp()
    const { shard } = world
    const { serverId } = tenant.live
    endContent(world)
    world.nowMs += 40 * DAY_MS
    world.fireTimers()
    const [segment = ''] = world.sorted(receivedSegmentsKey(shard, serverId)).keys()
    const key = receivedBlocksKey(shard, serverId, segment)
    const damage = (): void => {
      const blocks = world.sorted(key) as Map<string, number>
      const [[block, score] = ['', 0]] = blocks
      blocks.delete(block)
      blocks.set(`${block.slice(0, 40)}\ufffd${block.slice(41)}`, score)
    }
    damage()
    t.equal(world.sorted(key).size, 2)
    // A removal by the member finds nothing, as in a store that holds other bytes.
    const apply = world.apply.bind(world)
    world.apply = (op) => {
      if (op.write !== 'ZREM' || !op.args.some((one) => String(one).includes('\ufffd'))) apply(op)
    }
    world.nowMs = Date.UTC(2027, 10, 29, 2)
    world.fireTimers()
    t.equal(world.sorted(key).size, 1)
    t.ok(receivedRows(world, serverId).length > 0)
  },
)

t.test('pack-received: an erasure takes texts out of blocks, and no other one [erasure.received]', async (t) => {
  for (const isBusy of [false, true]) {
    const { world, tenant, streamId } = setUp({ isBusy })
    endContent(world)
    const rows = () => receivedRows(world, tenant.live.serverId)
    const hasText = () => rows().filter(({ standing }) => standing?.includes('text-')).length
    world.nowMs += 40 * DAY_MS
    world.fireTimers()
    t.equal(hasText(), 300)
    const before = rows()
    const mine = Array.from({ length: COUNT }, (_, n) => n).filter((n) => n % PERSONS === 2 || (n + 1) % PERSONS === 2)
    t.match(eraseNow(world, tenant, addressOf(2)), { receivedMessages: 0 })
    const after = rows()
    t.equal(after.length, COUNT, 'the references stay')
    const changed = after.flatMap(({ standing }, n) => (standing === before[n]?.standing ? [] : [n]))
    t.same(
      changed,
      mine.filter((n) => n % 3 !== 0),
    )
    const mailbox = { streamId, plusHash: hmacOf('text-4').slice(0, 8) }
    t.match(textsOf(world), /text-4/)
    eraseNow(world, tenant, `${streamId}+text-4@inbound.example`, { mailbox })
    t.notMatch(textsOf(world), /text-4/)
    t.match(textsOf(world), /text-5/)
  }
})

t.test('pack-received: damage stops no erasure, and nothing of the person is left in it', async (t) => {
  for (const isBusy of [false, true]) {
    const { world, tenant, ids } = setUp({ isBusy })
    const { shard } = world
    const { serverId } = tenant.live
    endContent(world)
    world.nowMs += 40 * DAY_MS
    world.fireTimers()
    const [segment = '', next = ''] = world.sorted(receivedSegmentsKey(shard, serverId)).keys()
    // One block cannot be opened, and another one has rows that were damaged before.
    const blocks = world.sorted(receivedBlocksKey(shard, serverId, segment)) as Map<string, number>
    const [[block, score] = ['', 0]] = blocks
    blocks.delete(block)
    blocks.set(block.replace(/^.{9}/, 'text-7...'), score)
    const others = world.sorted(receivedBlocksKey(shard, serverId, next)) as Map<string, number>
    const [[sound, end] = ['', 0]] = others
    const withText = unpackReceivedBlock(sound).findIndex(({ standing }) => standing?.includes('text-'))
    const rows = unpackReceivedBlock(sound).map((row, at) => {
      if (at === withText) return { ...row, standing: `${row.standing?.replace('text-', 'text+')}` }
      return at === 9 ? { ...row, entry: row.entry.replace('"', "'") } : row
    })
    others.delete(sound)
    others.set(packReceivedBlock(rows), end)
    const postings = world.keyNames().filter((key) => key.includes(':received-postings:'))
    for (const key of postings) {
      const fields = world.hash(key) as Map<string, string>
      for (const [field, text] of fields) fields.set(field, `x${text}`)
    }
    t.equal(postings.length, isBusy ? 2 : 0)
    eraseNow(world, tenant, addressOf(2))
    const left = receivedRows(world, serverId)
    t.equal(left.length, COUNT - unpackReceivedBlock(block).length - 2)
    t.notMatch(textsOf(world), /text\+/)
    t.notOk(world.sorted(receivedBlocksKey(shard, serverId, segment)).has(block))
    t.equal(
      [...world.sorted(receivedBlocksKey(shard, serverId, segment)).keys()].filter((one) => one.startsWith('text-7'))
        .length,
      0,
    )
    t.ok(left.some(({ entryId }) => entryId === entryIdOf(ids.at(-1) ?? '')))
  }
})

t.test('pack-received: damaged rows of the log stop no erasure either', async (t) => {
  const { world, tenant, ids } = setUp({ count: 30 })
  const { shard } = world
  const { serverId } = tenant.live
  const [segment = ''] = world.sorted(receivedSegmentsKey(shard, serverId)).keys()
  const states = world.hash(receivedStateKey(shard, serverId, segment)) as Map<string, string>
  states.set(shortId(ids[3] ?? ''), `x${states.get(shortId(ids[3] ?? ''))}`)
  const entry = world.stream(receivedKey(shard, serverId, segment))[5] as { fields: readonly string[] }
  entry.fields = [entry.fields[0] ?? '', `x${entry.fields[1]}`]
  const { completedAtMs, receivedMessages } = eraseNow(world, tenant, addressOf(2))
  t.ok(completedAtMs)
  t.equal(receivedMessages, 9 + 2, 'those that no one can read are gone too')
  t.notOk(states.has(shortId(ids[3] ?? '')))
  t.notOk(states.has(shortId(ids[5] ?? '')))
})

t.test('received-block: another text than was packed is damaged', async (t) => {
  const row = { entryId: '1764000000000-81064793292668928', entry: withSum('["a"]'), standing: withSum('[1]') }
  const rows = [row, { ...row, entryId: '1764000000000-81064793292668929', standing: null }]
  const packed = packReceivedBlock(rows)
  t.same(unpackReceivedBlock(packed), rows)
  for (let at = 0; at < packed.length; at += 1) {
    const changed = `${packed.slice(0, at)}${packed[at] === 'A' ? 'B' : 'A'}${packed.slice(at + 1)}`
    if (unlessDamaged(() => unpackReceivedBlock(changed)) !== null) t.fail(`another character at ${at}`)
  }
  for (const text of ['', 'a', 'not/base64', Buffer.from('a').toString('base64')])
    t.equal(
      unlessDamaged(() => unpackReceivedBlock(text)),
      null,
      text,
    )
})

t.test('packed-posting: of very many postings a mark is kept', async (t) => {
  const entries = Array.from({ length: 5_001 }, (_, n) => ({
    id: `${1_764_000_000_000 + n}-${n % 3}`,
    fields: ['p', `${n % 9}`],
  }))
  t.same(unpackPostings(packPostings(entries.slice(1))), entries.slice(1))
  t.equal(unpackPostings(packPostings(entries)), 'many')
  t.equal(unpackPostings(`x${packPostings(entries.slice(1))}`), 'many')
})
