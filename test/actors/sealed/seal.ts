/** seal - closed segments leave Redis whole, are read as before, and nothing written meanwhile is lost. */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { msOf } from '../../../cluster/id.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import type { MessageFilter } from '../../../src/views/message/filter.ts'
import { readStoredMessage } from '../../../src/views/message/message.ts'
import { searchMessages } from '../../../src/views/message/search.ts'
import { Cold } from '../../support/world/cold.ts'
import {
  complain,
  DAY_MS,
  itemOf,
  makeSetting,
  ownerOf,
  PEOPLE,
  type Setting,
  type,
} from '../../support/world/cold-mail.ts'
import { deliverAll, mailTo, openWorld, order } from '../../support/world/erasure.ts'
import { hmacOf, send } from '../../support/world/tenant.ts'
import { readerOf } from '../../support/world/world-reader.ts'

const ANY: MessageFilter = {
  streamId: null,
  broadcastId: null,
  subject: null,
  recipient: null,
  recipientContains: null,
  from: null,
  tag: null,
  metadata: null,
  status: null,
  event: null,
  site: null,
  classification: null,
  source: null,
  fromMs: null,
  toMs: null,
}

/** Where a body lies is not shown. */
function withoutPacks(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (name, value) => (name === 'stored' ? null : value)))
}

/** Everything that views show of a server's log: each message, and searches of each kind, page by page. */
async function shown({ world, tenant, ids }: Setting, read: Cold['read']): Promise<unknown> {
  const owner = ownerOf(tenant)
  const nowMs = (): number => world.nowMs
  const messages = []
  for (const id of ids) messages.push(withoutPacks(await readStoredMessage({ read, nowMs }, owner, id)))
  const filters: Partial<MessageFilter>[] = [
    {},
    ...[...PEOPLE, 'copy@example.net', 'nobody@example.net'].map((one) => ({ recipient: hmacOf(one) })),
    { from: hmacOf('shop@acme.example') },
    ...['tag-0', 'tag-10', 'tag-20'].map((text) => ({ tag: { text, hash: hmacOf(text).slice(0, 8) } })),
    { recipient: hmacOf(PEOPLE[0] as string), tag: { text: 'tag-0', hash: hmacOf('tag-0').slice(0, 8) } },
    { metadata: { name: 'n', value: '3' } },
    { subject: ['order', '12'] },
    { status: 'delivered' },
    { status: 'bounced' },
    { fromMs: msOf(ids[20] as string), toMs: msOf(ids[90] as string) },
  ]
  const found = []
  for (const changes of filters) {
    let after: string | null = null
    const pages: string[] = []
    do {
      const page = await searchMessages({ read, nowMs }, owner, {
        filter: { ...ANY, ...changes },
        page: { limit: 7, after },
      })
      if (typeof page === 'string') throw new Error(page)
      pages.push(...page.messages.map((one) => JSON.stringify(one)))
      after = page.next
    } while (after !== null)
    found.push(pages)
  }
  return { messages, found }
}

t.test('all closed segments leave Redis, and every view shows what it showed before', async (t) => {
  const setting = makeSetting(t)
  const { world, tenant, cold } = setting
  const { serverId } = tenant.live
  const before = await shown(setting, readerOf(world).read)
  world.fireTimers()
  const ended = await cold.settle()
  const segments = cold.segmentsOf(serverId)
  const closed = segments.slice(0, -1)
  t.ok(
    closed.some((name) => !name.endsWith('-1')),
    'some have postings',
  )
  t.same(
    ended,
    closed.map(() => 'seal sealed'),
  )
  for (const segment of closed) {
    t.match(cold.row(serverId, segment), { generation: 1, recalls: 0, next: '' })
    t.same(cold.hotKeys(serverId, segment), [])
    t.ok(cold.hasFilter(serverId, segment))
  }
  t.not(cold.hotKeys(serverId, segments.at(-1) as string).length, 0, 'the open one stays')
  t.equal(cold.objects().length, closed.length)
  t.same(await shown(setting, cold.read), before)
  t.ok(cold.reads.length > 0 && cold.reads.every((one) => one === 'ok'))
  t.notOk(cold.bytes().includes('Order 1'), 'objects are encrypted')
})

t.test('nothing is sealed before its days are over, nor while a recipient waits', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.nowMs -= 2 * DAY_MS
  world.fireTimers()
  t.same(await cold.settle(), [])
  t.same(cold.objects(), [])
  world.nowMs += 2 * DAY_MS
  const [first] = cold.segmentsOf(serverId)
  // A recipient of the first segment waits for another attempt.
  const rows = world.hash(`{s023}:status:${serverId}:${first}`) as Map<string, string>
  const [field = '', text = ''] = [...rows][3] ?? []
  rows.set(field, '[1,9,["l",1,"450 later"]]')
  world.fireTimers()
  t.same((await cold.settle())[0], 'seal open')
  t.equal(cold.row(serverId, first as string), null)
  rows.set(field, text)
  world.nowMs += DAY_MS
  world.fireTimers()
  await cold.settle()
  t.match(cold.row(serverId, first as string), { generation: 1 })
})

t.test('a write into a frozen segment thaws it, and the reading from before it seals nothing', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  const claim = cold.claim('seal')
  if (claim === null || claim.job.act !== 'seal') throw new Error('Nothing is sealed')
  const { segment, leaf } = claim.job
  t.match(cold.row(serverId, segment), { generation: 0, leaf })
  const outcome = await cold.perform(claim)
  t.match(outcome, { result: 'sealed' })
  t.equal(complain(world, tenant, { id: ids[0] as string, segment }), 'recorded')
  t.equal(cold.row(serverId, segment), null, 'thawed')
  cold.end(claim, outcome)
  t.equal(cold.row(serverId, segment), null, 'the old reading is refused')
  t.not(cold.hotKeys(serverId, segment).length, 0)
  // A second freezing has generation 0 too. The leaf distinguishes them.
  world.nowMs += 6_000
  const second = cold.claim('seal')
  if (second === null) throw new Error('Nothing is sealed')
  cold.end(claim, outcome)
  t.match(cold.row(serverId, segment), { generation: 0 })
  t.not(cold.hotKeys(serverId, segment).length, 0, 'the first reading is refused once more')
  cold.end(second, await cold.perform(second))
  t.match(cold.row(serverId, segment), { generation: 1 })
  t.match(await cold.opened(serverId), /\[\\"c\\"/, 'the complaint is in the object')
})

t.test('an object that is not what was read seals nothing', async (t) => {
  const { world, tenant } = openWorld()
  const broken = { is: true }
  const cold = new Cold(world, {
    contents: (made) => ({
      async put(order) {
        const put = await made.put(order)
        const [name = ''] = order.names
        const path = `${cold.folder}/${name}`
        const bytes = readFileSync(path)
        if (broken.is) writeFileSync(path, bytes.fill(0, bytes.length - 40, bytes.length - 30))
        return put
      },
    }),
  })
  t.teardown(() => cold.close())
  for (let n = 0; n < 45; n += 1) {
    world.nowMs += 1_000
    send(world, tenant, { messages: [mailTo(PEOPLE[0] as string)] }, { type })
  }
  deliverAll(world, makeDelivered(250, '250 ok'))
  world.nowMs += 8 * DAY_MS
  world.fireTimers()
  const [first = ''] = cold.segmentsOf(tenant.live.serverId)
  const claim = cold.claim('seal')
  if (claim === null) throw new Error('Nothing is sealed')
  const outcome = await cold.perform(claim)
  t.match(outcome, { result: 'away' })
  cold.end(claim, outcome)
  t.equal(cold.row(tenant.live.serverId, first), null)
  t.not(cold.hotKeys(tenant.live.serverId, first).length, 0)
  broken.is = false
  world.nowMs += 3_600_000
  await cold.settle()
  t.match(cold.row(tenant.live.serverId, first), { generation: 1 })
})

t.test('a late outcome, and an item that was left, do nothing for a sealed message', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  const item = itemOf(serverId, { id: ids[0] as string, segment })
  const lane = 'deliver/example.net'
  world.items.set(`${lane} ${item}`, { lane, item, atMs: world.nowMs, claims: 1 })
  const bounce = { code: 550, response: '550 no', result: 'bounced', classification: 'x', hard: true, expired: false }
  const report = { address: PEOPLE[0] as string, sizeBytes: 1, retryAfterMs: null, hmac: () => hmacOf('x') }
  const outcome = reportOutcome({ ...bounce, phase: 'rcpt' } as never, report)
  world.end(attemptOutcome, { lane, item, attempt: 1 }, outcome)
  t.same(cold.hotKeys(serverId, segment), [], 'no row came back')
  const due = { lane, item, atMs: world.nowMs }
  world.items.set(`${lane} ${item}`, { ...due, claims: 1 })
  t.equal(world.claim<AttemptJob>(prepareAttempt, due), null, 'nothing is sent once more')
})

t.test('a complaint about a sealed message recalls it, and is shown', async (t) => {
  const setting = makeSetting(t, 60)
  const { world, tenant, cold, ids } = setting
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  const id = ids[5] as string
  world.fireTimers()
  await cold.settle()
  t.equal(complain(world, tenant, { id, segment }), 'sealed')
  t.same(await cold.settle(), ['recall found'])
  t.equal(cold.recalled(serverId, segment), 1)
  t.equal(complain(world, tenant, { id, segment }), 'recorded')
  t.equal(complain(world, tenant, { id, segment }), 'ignored', 'once')
  const nowMs = (): number => world.nowMs
  const seen = await readStoredMessage({ read: cold.read, nowMs }, ownerOf(tenant), id)
  if (typeof seen === 'string') throw new Error(seen)
  t.same(
    seen.recipients[0]?.events.map(({ event }) => event),
    ['delivered', 'spam_complaint'],
  )
  const other = await readStoredMessage({ read: cold.read, nowMs }, ownerOf(tenant), ids[6] as string)
  t.match(other, { head: { subject: 'Order 6' } }, 'its neighbours are read from the object')
})

t.test('an object that cannot be read is an answer of its own, never a missing message', async (t) => {
  const { world, tenant, cold, ids } = makeSetting(t, 60)
  const { serverId } = tenant.live
  const [segment = ''] = cold.segmentsOf(serverId)
  world.fireTimers()
  await cold.settle()
  const path = cold.fileOf(cold.row(serverId, segment)!)
  const good = readFileSync(path)
  const read = () => readStoredMessage({ read: cold.read, nowMs: () => world.nowMs }, ownerOf(tenant), ids[0] as string)
  t.match(await read(), { head: { subject: 'Order 0' } })
  // The opened block is kept for seconds.
  world.nowMs += 6_000
  const changed = Buffer.from(good)
  changed[300]! ^= 1
  for (const bytes of [good.subarray(0, 300), Buffer.alloc(good.length, 1), changed]) {
    writeFileSync(path, bytes)
    await t.rejects(read(), { message: 'A stored value is damaged' })
  }
  t.match(cold.reads.slice(-3), ['broken', 'broken', 'broken'])
  writeFileSync(path, good)
  t.match(await read(), { head: { subject: 'Order 0' } })
})

t.test('an outcome that comes twice leaves the object in use', async (t) => {
  const { world, tenant, cold } = makeSetting(t, 60)
  const { serverId } = tenant.live
  world.fireTimers()
  const claim = cold.claim('seal')
  if (claim === null || claim.job.act !== 'seal') throw new Error('Nothing is sealed')
  const outcome = await cold.perform(claim)
  cold.end(claim, outcome)
  cold.end(claim, outcome)
  t.match(cold.row(serverId, claim.job.segment), { generation: 1, leaf: claim.job.leaf })
  const unlinks = () => world.deliveries().filter(({ lane }) => lane === 'unlink')
  t.same(unlinks(), [])
  await cold.settle()
  order(world, tenant, PEOPLE[2] as string)
  world.fireTimers()
  const erase = cold.claim('erase')
  if (erase === null) throw new Error('Nothing is erased')
  const swapped = await cold.perform(erase)
  cold.end(erase, swapped)
  cold.end(erase, swapped)
  const leaves = cold.segmentsOf(serverId).flatMap((name) => cold.row(serverId, name)?.leaf ?? [])
  t.ok(unlinks().length > 0)
  t.notOk(unlinks().some(({ item }) => leaves.some((leaf) => item.endsWith(leaf))))
})
