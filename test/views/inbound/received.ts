/**
 * received - what is shown of a message at each moment, also while nothing has been swept yet; and a search against a
 * look at everything.
 */
import t from 'tap'
import type { Due } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { parseOutcome, prepareParse } from '../../../src/actors/inbound/parsed.ts'
import { DAY_MS } from '../../../src/state/calendar.ts'
import { receivedSegmentsKey } from '../../../src/state/keys.ts'
import { type ReceivedCounters, receivedOwner } from '../../../src/state/received/sweep-cursor.ts'
import { hasPostings } from '../../../src/state/segment.ts'
import { readInboundEvent, readReceived } from '../../../src/views/inbound/received.ts'
import { type ReceivedFilter, searchReceived } from '../../../src/views/inbound/search.ts'
import type { KeyOwner } from '../../../src/views/key.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail, SENDER } from '../../support/world/inbound.ts'
import { changeState, hmacOf, LIVE_KEY, makeTenant } from '../../support/world/tenant.ts'
import { type Claimed, World } from '../../support/world/turn.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const ALL: ReceivedFilter = { streamId: null, from: null, recipient: null, mailboxHash: null, fromMs: null, toMs: null }

function setUp() {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const streamId = makeInboundStream(world, tenant)
  const owner: KeyOwner = {
    kind: 'server',
    accountId: tenant.accountId,
    serverId: tenant.live.serverId,
    tokenId: 'token',
    mode: 'live',
    defaultStreamId: tenant.live.streamId,
    hash: LIVE_KEY,
  }
  const deps = {
    read: readerOf(world).read,
    readParsed: async () =>
      ({
        text: 'Text',
        to: [],
        toCount: 0,
        cc: [],
        ccCount: 0,
        replyTo: [],
        references: [],
        headers: [],
        attachments: [],
      }) as never,
    nowMs: () => world.nowMs,
    inboundDomain: 'in.example',
  }
  return { world, tenant, streamId, owner, deps }
}

t.test(
  'received: mail past its stream’s days is invisible at once, before the sweep [retention.inbound]',
  async (t) => {
    const { world, tenant, streamId, owner, deps } = setUp()
    const [id = ''] = receiveMail(world, tenant, { streamId })
    t.match(
      await readReceived(deps, owner, id),
      { contentAvailable: true, from: null, authentication: { spf: 'unchecked' }, envelope: { sender: SENDER } },
      'before it is parsed',
    )
    parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
    const reference = { kind: 'inbound', event: 'inbound', segment: '202611-0-1', messageId: id } as const
    const told = () => readInboundEvent(deps, { serverId: tenant.live.serverId, inboundContent: 'full' }, reference)
    const found = async () => {
      const page = await searchReceived(deps, owner, { filter: ALL, page: { limit: 10, after: null } })
      return typeof page === 'string' ? page : page.messages[0]
    }
    changeState(world, 'stream', streamId, { contentRetentionDays: 2 })
    world.nowMs += 2 * DAY_MS - 1
    for (const shown of [await readReceived(deps, owner, id), await found()])
      t.match(shown, { contentAvailable: true, subject: 'Hello' })
    t.match(await told(), { text: 'Text', contentOmitted: null })
    world.nowMs += 1
    for (const shown of [await readReceived(deps, owner, id), await found()])
      t.match(shown, { contentAvailable: false, subject: null, from: null, date: null, hasText: true })
    t.match(await told(), { text: null, contentOmitted: 'expired', envelope: null, from: null })
    changeState(world, 'stream', streamId, { contentRetentionDays: 3 })
    t.match(await found(), { contentAvailable: true }, 'what is stored still is shown again')
    changeState(world, 'stream', streamId, { contentRetentionDays: null })
    world.nowMs = NOW_MS + 400 * DAY_MS
    t.equal(await readReceived(deps, owner, id), 'not_found')
    t.equal(await found(), undefined)
  },
)

/**
 * Sixty days of mail, of which every fourth is parsed later than the next three. Returns each message, newest first.
 */
function receiveMonths(
  { world, tenant, streamId }: ReturnType<typeof setUp>,
  isBusy: boolean,
): { id: string; from: string; hash: string | null }[] {
  const all: { id: string; from: string; hash: string | null }[] = []
  const late: (() => void)[] = []
  const { serverId } = tenant.live
  for (let n = 0; n < 60; n += 1) {
    // Months end meanwhile, so there are several segments.
    world.nowMs += DAY_MS
    const { segment = { name: '202611-0-1', lastMs: NOW_MS } } = (world.counters.get(receivedOwner(serverId)) ??
      {}) as ReceivedCounters
    if (isBusy) world.counters.set(receivedOwner(serverId), { segment: { ...segment, recipients: 5_000, bytes: 0 } })
    const address = `sender${n % 3}@example.net`
    const hash = [null, 'a', 'b'][n % 4 === 3 ? 0 : n % 4] ?? null
    const [id = ''] = receiveMail(world, tenant, {
      streamId,
      hashes: [hash],
      sender: { hmac: hmacOf(address), address },
    })
    const header = n % 7 === 0 ? address : `header${n % 5}@example.org`
    const parsed = makeParsed(world, { from: { hmac: hmacOf(header), address: header, name: null } })
    const due = world.deliveries().find(({ item }) => item.endsWith(shortId(id))) as Due
    const claim = world.claim(prepareParse, due) as Claimed<unknown>
    const end = () => world.end(parseOutcome, claim, { result: 'parsed', parsed })
    if (n % 4 === 0) late.push(end)
    else end()
    if (n % 4 === 3) late.pop()?.()
    all.unshift({ id, from: `${address} ${header}`, hash })
  }
  return all
}

const LOGS = { name: 'logs', isBusy: false, postingsMax: 5_000 }
const POSTINGS = { name: 'postings', isBusy: true, postingsMax: 5_000 }
const CROWDED = { name: 'logs of busy segments, where a bucket is long', isBusy: true, postingsMax: 3 }

for (const { name, isBusy, postingsMax } of [LOGS, POSTINGS, CROWDED]) {
  t.test(
    `received: pages hold what every filter holds for, each message once, newest first: ${name} [inbound.search]`,
    async (t) => {
      const scene = setUp()
      const { world, tenant, streamId, owner, deps } = scene
      const all = receiveMonths(scene, isBusy)
      const names = [...world.sorted(receivedSegmentsKey(world.shard, tenant.live.serverId)).keys()]
      t.ok(names.length >= 3)
      t.ok(names.every((segment) => hasPostings(segment) === isBusy))
      const walk = async (filter: Partial<ReceivedFilter>, limit: number, lookedAtMax = 10_000): Promise<string[]> => {
        const ids: string[] = []
        for (let after: string | null = null, pages = 0; pages < 200; pages += 1) {
          const page = await searchReceived({ ...deps, lookedAtMax, postingsMax }, owner, {
            filter: { ...ALL, ...filter },
            page: { limit, after },
          })
          if (typeof page === 'string') throw new Error(page)
          t.ok(page.messages.length <= limit)
          ids.push(...page.messages.map(({ inboundMessageId }) => inboundMessageId))
          if (page.next === null) return ids
          after = page.next
        }
        throw new Error('Pages without end')
      }
      const idsOf = (holds: (one: (typeof all)[number]) => boolean) => all.filter(holds).map(({ id }) => id)
      const mailboxHash = { text: 'a', hash: hmacOf('a').slice(0, 8) }
      for (const limit of [1, 7, 60, 100]) {
        t.same(
          await walk({}, limit),
          idsOf(() => true),
        )
        for (const lookedAtMax of [10_000, 5, 1]) {
          t.same(
            await walk({ from: hmacOf('sender1@example.net') }, limit, lookedAtMax),
            idsOf(({ from }) => from.includes('sender1')),
          )
          t.same(
            await walk({ from: hmacOf('header4@example.org') }, limit, lookedAtMax),
            idsOf(({ from }) => from.includes('header4')),
          )
          t.same(
            await walk({ mailboxHash }, limit, lookedAtMax),
            idsOf(({ hash }) => hash === 'a'),
          )
          t.same(
            await walk({ mailboxHash, from: hmacOf('sender2@example.net') }, limit, lookedAtMax),
            idsOf(({ hash, from }) => hash === 'a' && from.includes('sender2')),
          )
        }
        t.same(
          await walk({ recipient: `${streamId}+b@in.example` }, limit),
          idsOf(({ hash }) => hash === 'b'),
        )
        t.same(
          await walk({ recipient: `${streamId}@in.example` }, limit),
          idsOf(({ hash }) => hash === null),
        )
      }
      t.same(await walk({ from: hmacOf('nobody@example.net') }, 10), [])
      const [first, last] = [NOW_MS + 20 * DAY_MS, NOW_MS + 40 * DAY_MS]
      t.equal((await walk({ fromMs: first, toMs: last }, 6)).length, 20)
      const within = all.slice(20, 40)
      t.same(
        await walk({ fromMs: first, toMs: last, mailboxHash }, 6),
        within.filter(({ hash }) => hash === 'a').map(({ id }) => id),
      )
    },
  )
}

t.test('received: a rare sender among very many is found with few reads [inbound.search]', async (t) => {
  const scene = setUp()
  const { world, tenant, streamId, owner, deps } = scene
  const { serverId } = tenant.live
  const receive = (n: number) => {
    const segment = { name: '202611-0-1', lastMs: NOW_MS, recipients: 5_000, bytes: 0 }
    if (n === 0) world.counters.set(receivedOwner(serverId), { segment })
    world.nowMs += 1_000
    const address = n === 0 || n === 700 ? 'rare@example.net' : `sender${n % 40}@example.net`
    return receiveMail(world, tenant, { streamId, sender: { hmac: hmacOf(address), address } })[0]
  }
  const ids = Array.from({ length: 1_000 }, (_, n) => receive(n))
  const seen = readerOf(world)
  const filter = { ...ALL, from: hmacOf('rare@example.net') }
  const page = await searchReceived({ ...deps, read: seen.read }, owner, { filter, page: { limit: 50, after: null } })
  t.match(page, { messages: [{ inboundMessageId: ids[700] }, { inboundMessageId: ids[0] }], next: null })
  t.ok(seen.entries < 150, `${seen.entries} entries of a thousand were read`)
})
