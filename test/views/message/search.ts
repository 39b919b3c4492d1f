/**
 * search - random messages in many small segments, searched by random filters, page by page. The result equals that of
 * a check of every message.
 */

import t from 'tap'
import { msOf, shortId } from '../../../cluster/id.ts'
import { type Outcomes, sumOutcomes } from '../../../schemas/counts/outcomes.ts'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import { contentExpiresAtMs } from '../../../src/state/age.ts'
import { statusKey } from '../../../src/state/keys.ts'
import { packStatus, type RecipientStatus, type StatusEvent, statusField } from '../../../src/state/message/status.ts'
import { streamRef } from '../../../src/state/stream.ts'
import type { ServerKey } from '../../../src/views/key.ts'
import type { MessageFilter } from '../../../src/views/message/filter.ts'
import { searchMessages } from '../../../src/views/message/search.ts'
import { tallyMessages } from '../../../src/views/message/tally.ts'
import {
  acceptedIds,
  BODY_BLOB,
  hmacOf,
  LIVE_KEY,
  makeItem,
  makeRecipient,
  makeSend,
  makeTenant,
} from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const START_MS = Date.UTC(2026, 9, 20)
const MESSAGES = 250
const SEED = Number(process.env.SEED ?? 5)
const EVERYTHING: MessageFilter = {
  ...{
    streamId: null,
    broadcastId: null,
    recipient: null,
    recipientContains: null,
    from: null,
    tag: null,
    metadata: null,
    subject: null,
  },
  ...{ status: null, event: null, site: null, classification: null, source: null, fromMs: null, toMs: null },
}
const ADDRESSES = Array.from({ length: 12 }, (_, n) => `person${n}@example.net`)
const SENDERS = ['shop', 'news', 'bills'].map((name) => `${name}@acme.example`)
const TAGS = ['welcome', 'order', 'invoice']
const BOUNCE_CLASS = 'SpamBlock'
const STATUSES = ['accepted', 'delivered', 'bounced', 'deferred'] as const

interface Sent {
  readonly messageId: string
  readonly streamId: string
  readonly from: string
  readonly to: readonly string[]
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly source: 'a' | 's'
  readonly statuses: readonly RecipientStatus[]
}

function makeRandom(seed: number) {
  let state = seed
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  return { next, pick: <Item>(list: readonly Item[]): Item => list[next(list.length)] as Item }
}

/** A world with messages in segments of twenty recipients, with and without postings. */
function fill(seed: number) {
  const random = makeRandom(seed)
  const world = new World(START_MS)
  const tenant = makeTenant(world)
  const { serverId, streamId: usual } = tenant.live
  const other = '0193b2a4-6c00-7017-8000-0123456789ab'
  world.seedState(streamRef(other), {
    ...(world.states.get(`stream:${usual}`) as object),
    streamId: other,
    isDefault: false,
  })
  const accept = makeAccept({
    recipientsMax: 20,
    bytesMax: 1e6,
    busyRecipients: 10,
    fullRecipients: 18,
    busyBuckets: 64,
    fullBuckets: 256,
  })
  const sent: Sent[] = []
  while (sent.length < MESSAGES) {
    world.nowMs += random.next(3) === 0 ? 0 : random.next(9_000_000)
    const from = random.pick(SENDERS)
    const to = [...new Set(Array.from({ length: 1 + random.next(4) }, () => random.pick(ADDRESSES)))]
    const tag = random.next(2) === 0 ? null : random.pick(TAGS)
    const metadata = random.next(2) === 0 ? {} : { order: String(random.next(3)) }
    const streamId = random.pick([usual, other])
    const source = random.pick(['a', 's'] as const)
    const item = makeItem({
      ...{ from: { address: from, domain: 'acme.example', name: null, hmac: hmacOf(from) }, streamId, tag, metadata },
      recipients: to.map((address) => makeRecipient(address)),
      tagHash: tag === null ? null : hashOf(tag),
    })
    const reply = world.run(accept, { ...makeSend(tenant, { source }), messages: [item] }, { blobs: [BODY_BLOB] })
    const [messageId = ''] = acceptedIds(reply)
    const statuses = to.map((_, index) => setStatus(world, { serverId, messageId, index }, random.pick(STATUSES)))
    sent.push({ messageId, streamId, from, to, tag, metadata, source, statuses })
  }
  return { world, tenant, sent: sent.reverse(), random, other }
}

/** Tags share a hash here now and then, as they may in the store. */
function hashOf(tag: string): string {
  return tag === 'order' ? hashOf('invoice') : hmacOf(tag).slice(0, 8)
}

function setStatus(
  world: World,
  { serverId, messageId, index }: { serverId: string; messageId: string; index: number },
  status: (typeof STATUSES)[number],
): RecipientStatus {
  if (status === 'accepted') return status
  const submittedAtMs = msOf(messageId)
  const short = shortId(messageId)
  const reply = { occurredAtMs: submittedAtMs + 5, code: 250, response: '250 ok' }
  const event: StatusEvent =
    status === 'bounced'
      ? { event: 'bounced', ...reply, classification: BOUNCE_CLASS, hard: false, expired: false, status }
      : { event: status, ...reply }
  const packed = packStatus({ attempts: 1, nextAttemptAtMs: null, events: [event], sizeBytes: null }, submittedAtMs)
  const key = world.keyNames().find((name) => name.includes(':head:') && world.hash(name).has(short)) as string
  const segment = key.slice(key.lastIndexOf(':') + 1)
  world.apply({
    key: statusKey(world.shard, serverId, segment),
    write: 'HSET',
    args: [statusField(short, index), packed],
  })
  return status
}

function holds(filter: MessageFilter, one: Sent): boolean {
  const ms = msOf(one.messageId)
  const isMixed = one.statuses.some((status) => status !== one.statuses[0])
  return (
    (filter.streamId === null || one.streamId === filter.streamId) &&
    (filter.recipient === null || one.to.some((address) => hmacOf(address) === filter.recipient)) &&
    (filter.from === null || hmacOf(one.from) === filter.from) &&
    (filter.recipientContains === null || one.to.some((address) => address.includes(filter.recipientContains ?? ''))) &&
    (filter.tag === null || one.tag === filter.tag.text) &&
    (filter.metadata === null || one.metadata[filter.metadata.name] === filter.metadata.value) &&
    (filter.source === null || one.source === filter.source) &&
    (filter.fromMs === null || ms >= filter.fromMs) &&
    (filter.toMs === null || ms < filter.toMs) &&
    (filter.status !== 'mixed' || isMixed) &&
    one.statuses.some((status) => recipientHolds(filter, status))
  )
}

/** Status, event and class of one recipient, whose only event has the name of its status. */
function recipientHolds({ status, event, classification }: MessageFilter, of: RecipientStatus): boolean {
  if (status !== null && status !== 'mixed' && status !== of) return false
  if (event !== null && event !== of) return false
  return classification === null || (of === 'bounced' && classification === BOUNCE_CLASS)
}

const { world, tenant, sent, random, other } = fill(SEED)
const owner: ServerKey = {
  ...{ kind: 'server', accountId: tenant.accountId, serverId: tenant.live.serverId, tokenId: 't', mode: 'live' },
  ...{ defaultStreamId: tenant.live.streamId, hash: LIVE_KEY },
}

async function searchAll(filter: MessageFilter, { limit, lookedAtMax }: { limit: number; lookedAtMax: number }) {
  const reader = readerOf(world)
  const ids: string[] = []
  let after: string | null = null
  let pages = 0
  do {
    reader.entries = 0
    const deps = { read: reader.read, nowMs: () => world.nowMs, lookedAtMax }
    const page = await searchMessages(deps, owner, { filter, page: { limit, after } })
    if (typeof page === 'string') throw new Error(page)
    if (page.messages.length > limit) throw new Error('A page is too long')
    // One round may read each of its segments as far as the bound goes; entries of found messages are read once more.
    if (reader.entries > lookedAtMax * 9 + limit) throw new Error(`${reader.entries} entries were read`)
    if (page.next !== null && after !== null && page.next >= after) throw new Error('The next page does not go on')
    ids.push(...page.messages.map(({ messageId }) => messageId))
    after = page.next
    pages += 1
  } while (after !== null && pages < 3 * MESSAGES)
  return { ids, pages }
}

function randomFilter(): MessageFilter {
  const tag = random.pick(TAGS)
  const some = <Value>(value: Value): Value | null => (random.next(3) === 0 ? value : null)
  const at = () => msOf(random.pick(sent).messageId) + random.next(2)
  return {
    ...EVERYTHING,
    streamId: some(random.pick([other, tenant.live.streamId])),
    recipient: some(hmacOf(random.pick(ADDRESSES))),
    from: some(hmacOf(random.pick(SENDERS))),
    recipientContains: some(random.pick(['person1', 'n7@', 'example.net', 'nobody'])),
    tag: some({ text: tag, hash: hashOf(tag) }),
    metadata: some({ name: 'order', value: String(random.next(3)) }),
    status: some(random.pick([...STATUSES, 'mixed'] as const)),
    event: some(random.pick(['delivered', 'bounced', 'deferred'] as const)),
    classification: some(random.pick([BOUNCE_CLASS, BOUNCE_CLASS, 'Other'])),
    source: some(random.pick(['a', 's'] as const)),
    fromMs: some(at()),
    toMs: some(at()),
  }
}

t.test(
  `message-search: pages of random filters hold what every message was looked at for (seed ${SEED}) [message.search]`,
  async (t) => {
    const segments = new Set(world.keyNames().flatMap((key) => /:log:[^:]+:(.*)$/.exec(key)?.slice(1) ?? []))
    t.ok([...segments].some((name) => name.endsWith('-1')) && [...segments].some((name) => !name.endsWith('-1')))
    t.ok(segments.size > 20)
    for (let round = 0; round < 150; round += 1) {
      const filter = round === 0 ? EVERYTHING : randomFilter()
      const lookedAtMax = random.pick([7, 40, 10_000])
      const limit = 1 + random.next(20)
      const expected = sent.filter((one) => holds(filter, one)).map(({ messageId }) => messageId)
      const { ids } = await searchAll(filter, { limit, lookedAtMax })
      t.strictSame(ids, expected, JSON.stringify({ filter, limit, lookedAtMax }))
    }
  },
)

t.test(
  'message-search: counts of random filters, in calls of any size, equal a look at each message [message.outcomes]',
  async (t) => {
    const { read } = readerOf(world)
    for (let round = 0; round < 60; round += 1) {
      const filter = round === 0 ? EVERYTHING : randomFilter()
      const lookedAtMax = random.pick([7, 40, 10_000])
      const pages: Outcomes[] = []
      do {
        const deps = { read, nowMs: () => world.nowMs, lookedAtMax }
        const page = await tallyMessages(deps, owner, { filter, after: pages.at(-1)?.next ?? null })
        if (typeof page === 'string') throw new Error(page)
        pages.push(page)
      } while (pages.at(-1)?.next !== null && pages.length < 3 * MESSAGES)
      const found = sumOutcomes(pages)
      const expected = sent.filter((one) => holds(filter, one))
      const count = (status: string) =>
        expected.flatMap(({ statuses }) => statuses).filter((one) => one === status).length
      t.equal(found.messages, expected.length, JSON.stringify({ filter, lookedAtMax }))
      for (const status of STATUSES) t.equal(found.recipients[status], count(status), status)
      t.equal(found.classifications[BOUNCE_CLASS] ?? 0, count('bounced'))
    }
  },
)

t.test('message-search: a page without filters costs few reads, however long the log is', async (t) => {
  const reader = readerOf(world)
  const deps = { read: reader.read, nowMs: () => world.nowMs }
  await searchMessages(deps, owner, { filter: EVERYTHING, page: { limit: 5, after: null } })
  t.ok(reader.reads <= 7, `${reader.reads} reads`)
})

t.test('message-search: no person, no result, a stream of another server, a revoked key', async (t) => {
  const { read } = readerOf(world)
  const deps = { read, nowMs: () => world.nowMs }
  const page = { limit: 10, after: null }
  const search = (filter: Partial<MessageFilter>, by = owner) =>
    searchMessages(deps, by, { filter: { ...EVERYTHING, ...filter }, page })
  const nothing = { messages: [], next: null }
  t.same(await search({ recipient: hmacOf('nobody@example.net') }), nothing)
  t.same(await search({ recipient: hmacOf(ADDRESSES[0] as string), from: hmacOf('nobody@example.net') }), nothing)
  t.same(await search({ broadcastId: other }), nothing, 'no message is of a broadcast')
  t.equal(await search({ streamId: tenant.test.streamId }), 'stream_not_found')
  t.equal(await search({ streamId: '01a1f8d8-8300-7001-8000-0e7faee555a7' }), 'stream_not_found')
  t.equal(await search({}, { ...owner, hash: 'unknown' }), 'unauthorized')
  const lost = { read: async () => null, nowMs: () => 0 }
  t.equal(await searchMessages(lost, owner, { filter: EVERYTHING, page }), 'unavailable')
})

t.test('message-search: messages past their age are invisible at once [retention.message]', async (t) => {
  const late = fill(SEED + 1)
  const { read } = readerOf(late.world)
  const by = { ...owner, accountId: late.tenant.accountId, serverId: late.tenant.live.serverId }
  const newest = late.sent[0] as Sent
  const at = new Date(msOf(newest.messageId))
  const search = async (nowMs: number) => {
    const filter = { ...EVERYTHING, fromMs: 0 }
    const page = await searchMessages({ read, nowMs: () => nowMs }, by, { filter, page: { limit: 100, after: null } })
    return typeof page === 'string' ? page : page.messages.map(({ messageId }) => messageId)
  }
  const end = Date.UTC(at.getUTCFullYear() + 1, at.getUTCMonth() + 1, at.getUTCDate()) + (at.getTime() % 86_400_000)
  t.ok((await search(end)).includes(newest.messageId))
  t.same(await search(end + 1), [])
})

t.test('message-search: a subject is searched as long as content is kept [message.search]', async (t) => {
  const { world, tenant, sent } = fill(SEED + 2)
  const { read } = readerOf(world)
  const by = { ...owner, accountId: tenant.accountId, serverId: tenant.live.serverId }
  const newest = sent[0] as Sent
  const search = async (subject: readonly string[], nowMs: number) => {
    const filter = { ...EVERYTHING, subject }
    const page = await searchMessages({ read, nowMs: () => nowMs }, by, { filter, page: { limit: 1, after: null } })
    return typeof page === 'string' ? page : page.messages.map(({ messageId }) => messageId)
  }
  const endMs = contentExpiresAtMs(msOf(newest.messageId), false)
  t.same(await search(['order', 'your'], endMs - 1), [newest.messageId])
  t.same(await search(['orders'], endMs - 1), [])
  t.same(await search(['order'], endMs), [])
})
