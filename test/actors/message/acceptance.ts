/** acceptance - what one commit of an accepted send holds, key by key. */

import t from 'tap'
import { entryIdOf, shortId } from '../../../cluster/id.ts'
import { withSum } from '../../../cluster/sum.ts'
import { makeAccept } from '../../../src/actors/message/accept.ts'
import type { AttemptJob } from '../../../src/actors/message/prepare-attempt.ts'
import { byPersonKey, byTagKey, contentKey, headKey, logKey, segmentsKey, statusKey } from '../../../src/state/keys.ts'
import { bodyPlace } from '../../../src/state/message/content-part.ts'
import { unpackHead } from '../../../src/state/message/head.ts'
import { parseLogEntry } from '../../../src/state/message/log-entry.ts'
import { keyOfNumber } from '../../../src/state/person/buckets.ts'
import { addressOfRow } from '../../../src/state/person/person.ts'
import { acceptedIds, BODY_BLOB, makeItem, makeRecipient, makeTenant, send } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12)
const DAY_MS = 86_400_000

t.test('acceptance: log, head, persons and content of a message for three; no status, no postings', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { shard } = world
  const { serverId } = tenant.live
  const recipients = [
    makeRecipient('ada@example.net', 'to', 'Ada'),
    makeRecipient('bob@example.net', 'cc'),
    makeRecipient('eve@example.org', 'bcc'),
  ]
  const item = makeItem({ recipients, tag: 'order', tagHash: 'abcdefgh', metadata: { k: 'v' } })
  const [id = ''] = acceptedIds(send(world, tenant, { messages: [item] }, { cmdId: 'mwoxfuo00abcdefghi' }))
  const segment = '202611-0-1'
  t.same([...world.sorted(segmentsKey(shard, serverId))], [[segment, NOW_MS]])

  const [logged] = world.stream(logKey(shard, serverId, segment))
  const entry = logged === undefined ? null : parseLogEntry(logged)
  t.equal(logged?.id, entryIdOf(id))
  t.match(entry, { contentId: 'mwoxfuo00abcdefghi-0', streamId: null, tagHash: 'abcdefgh', source: 'a' })
  t.same(entry?.kinds, ['to', 'cc', 'bcc'])
  const numbers = [entry?.sender ?? 0, ...(entry?.recipients ?? [])]
  const addresses = numbers.map((number) => {
    const rows = world.hash(keyOfNumber(shard, tenant.accountId, number))
    return addressOfRow(rows.get(String(number)) ?? '')
  })
  t.same(addresses, ['shop@acme.example', 'ada@example.net', 'bob@example.net', 'eve@example.org'])

  const head = unpackHead(world.hash(headKey(shard, serverId, segment)).get(shortId(id)) ?? '', 3)
  t.match(head, { subject: 'Your order', senderName: 'Acme Shop', tag: 'order', metadata: { k: 'v' } })
  t.same(head.recipientNames, ['Ada', null, null])
  const absent = [statusKey(shard, serverId, segment), byPersonKey(shard, serverId, segment, 0)]
  for (const key of absent) t.notOk(world.keys.has(key), key)
  t.notOk(world.keys.has(byTagKey(shard, serverId, segment, 0)))
  const body = bodyPlace(shard, 'mwoxfuo00abcdefghi-0', false)
  t.same(world.hash(body.key).get(body.field), BODY_BLOB)
  t.ok((world.expiries.get(body.key) ?? 0) > 30 * DAY_MS)
})

t.test('acceptance: an item for each recipient in its lane, with the job of a first attempt', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const recipients = [makeRecipient('ada@example.net', 'to', 'Ada'), makeRecipient('eve@example.org', 'bcc')]
  const attachments = [{ name: 'a.txt', contentType: 'text/plain', contentId: null, size: 3, inline: false }]
  const messages = [makeItem({ recipients, attachments, headers: { 'X-A': '1' } })]
  const [id = ''] = acceptedIds(send(world, tenant, { messages }, { cmdId: 'mwoxfuo00abcdefghi' }))
  const prefix = `${shortId(tenant.live.serverId)}.202611-0-1.${shortId(id)}.`
  const items = world.deliveries().map(({ lane, item, atMs }) => ({ lane, item, atMs }))
  t.same(items, [
    { lane: 'deliver/example.net', item: `${prefix}0.2a`, atMs: NOW_MS },
    { lane: 'deliver/example.org', item: `${prefix}1.2a`, atMs: NOW_MS },
  ])
  const jobs = world.deliveries().map(({ job }) => job as AttemptJob)
  t.same(jobs[1]?.recipient, { address: 'eve@example.org', index: 1 })
  t.equal(jobs[0]?.message, jobs[1]?.message)
  t.same(jobs[0]?.message, {
    messageId: id,
    accountId: tenant.accountId,
    serverId: tenant.live.serverId,
    acceptedAtMs: NOW_MS,
    isScheduled: false,
    test: false,
    hasReturnPath: true,
    keySinceMs: 1,
    from: { address: 'shop@acme.example', name: 'Acme Shop' },
    to: [{ address: 'ada@example.net', name: 'Ada' }],
    cc: [],
    subject: 'Your order',
    headers: { 'X-A': '1' },
    streamId: tenant.live.streamId,
    tagHash: null,
    attachments,
    contentId: 'mwoxfuo00abcdefghi-0',
    stored: null,
    listName: null,
    broadcast: null,
    raw: null,
    content: [{ part: 'body', chunks: [BODY_BLOB] }],
  })
})

t.test('acceptance: content that was written before stays, and is not carried along', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const key = contentKey(world.shard, 'mwoxfuo00abcdefghi-0', 'body', 0)
  const parts = [{ part: 'body', chunks: 1, blob: null }]
  const body = { test: true, messages: [makeItem({ lane: 'simulate', content: { parts, stored: null } })] }
  t.throws(() => send(world, tenant, body, { cmdId: 'mwoxfuo00abcdefghi' }), /PEXPIREAT of a key that is not there/)
  world.keys.set(key, { type: 'string', bytes: BODY_BLOB })
  send(world, tenant, body, { cmdId: 'mwoxfuo00abcdefghi' })
  t.equal(world.expiries.get(key), NOW_MS + 7 * DAY_MS)
  const [job] = world.deliveries().map(({ job }) => job as AttemptJob)
  t.equal(job?.message.content, null)
})

t.test('acceptance: a stream of one’s own is in the log, the default is not', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const own = { ...(world.states.get(`stream:${tenant.live.streamId}`) as object), isDefault: false }
  const streamId = '0193b2a4-6c00-7017-8000-0123456789ab'
  world.seedState({ kind: 'stream', id: streamId }, { ...own, streamId })
  send(world, tenant, { messages: [makeItem({ streamId }), makeItem({ streamId: tenant.live.streamId })] })
  const entries = world.stream(logKey(world.shard, tenant.live.serverId, '202611-0-1')).map(parseLogEntry)
  t.same(
    entries.map((entry) => entry?.streamId),
    [streamId, null],
  )
})

t.test('acceptance: sender and recipient may be one person', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { messages: [makeItem({ recipients: [makeRecipient('shop@acme.example')] })] })
  const [entry] = world.stream(logKey(world.shard, tenant.live.serverId, '202611-0-1')).map(parseLogEntry)
  t.same(entry?.recipients, [entry?.sender])
})

t.test('acceptance: in a busy segment recipients and tag are posted, the sender not', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const { shard } = world
  const { serverId } = tenant.live
  const type = makeAccept({
    recipientsMax: 1,
    bytesMax: 1e6,
    busyRecipients: 1,
    fullRecipients: 50,
    busyBuckets: 64,
    fullBuckets: 256,
  })
  acceptedIds(send(world, tenant, {}, { type }))
  world.nowMs += 1
  const recipients = [makeRecipient('ann@example.net'), makeRecipient('bob@example.net')]
  const messages = [makeItem({ recipients, tag: 'order', tagHash: 'abcdefgh' })]
  const [id = ''] = acceptedIds(send(world, tenant, { messages }, { type }))
  const segment = '202611-1-64'
  const [entry] = world.stream(logKey(shard, serverId, segment)).map(parseLogEntry)
  const numbers = new Set(entry?.recipients ?? [])
  t.equal(numbers.size, 2)
  t.notOk(numbers.has(entry?.sender ?? 0))
  const posted = Array.from({ length: 64 }, (_, bucket) => world.stream(byPersonKey(shard, serverId, segment, bucket)))
  const entries = posted.flat()
  t.ok(entries.every((one) => one.id === entryIdOf(id)))
  t.same(new Set(entries.flatMap(({ fields }) => (fields[1] ?? '').split(' ').map(Number))), numbers)
  const tags = Array.from({ length: 64 }, (_, bucket) => world.stream(byTagKey(shard, serverId, segment, bucket)))
  t.same(tags.flat(), [{ id: entryIdOf(id), fields: ['t', 'abcdefgh'] }])
})

t.test('acceptance: known persons, one recipient: three writes, and a head that holds only its subject', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  const messages = [makeItem({ from: { ...makeItem().from, name: null } })]
  send(world, tenant, { messages })
  send(world, tenant, { messages })
  t.same(
    world.ops.map(({ key, write }) => [write, key.split(':')[1]]),
    [
      ['HSET', 'head'],
      ['XADD', 'log'],
      ['HSET', 'bodies'],
      ['PEXPIREAT', 'bodies'],
    ],
    'the runtime adds counters and the item in its lane',
  )
  t.equal(world.ops[0]?.args[1], withSum('["Your order"]'))
})

t.test('acceptance: segments roll with the month, with recipients and with bytes', async (t) => {
  const world = new World(Date.UTC(2026, 10, 30, 23, 59))
  const tenant = makeTenant(world)
  const type = makeAccept({
    recipientsMax: 3,
    bytesMax: 400,
    busyRecipients: 3,
    fullRecipients: 50,
    busyBuckets: 64,
    fullBuckets: 256,
  })
  const subject = 'x'.repeat(330)
  const sends: readonly (readonly [afterMs: number, subject: string])[] = [
    [0, 'a'],
    [0, 'a'],
    [1, 'a'],
    [0, 'a'],
    [1, 'a'],
    [1, subject],
    [1, subject],
    [60_000, 'a'],
  ]
  for (const [afterMs, text] of sends) {
    world.nowMs += afterMs
    acceptedIds(send(world, tenant, { messages: [makeItem({ subject: text })] }, { type }))
  }
  t.same(
    [...world.sorted(segmentsKey(world.shard, tenant.live.serverId)).keys()],
    ['202611-0-1', '202611-1-64', '202611-2-1', '202611-3-1', '202612-0-1'],
  )
  const counts = ['202611-0-1', '202611-1-64', '202611-2-1', '202611-3-1', '202612-0-1'].map(
    (segment) => world.stream(logKey(world.shard, tenant.live.serverId, segment)).length,
  )
  t.same(counts, [4, 1, 1, 1, 1])
})

t.test('acceptance: with the clock back a month ids continue in the later segment, and so do persons', async (t) => {
  const world = new World(Date.UTC(2026, 11, 1))
  const tenant = makeTenant(world)
  send(world, tenant)
  world.nowMs -= 5000
  const messages = [makeItem({ recipients: [makeRecipient('new@example.net')] })]
  const [id = ''] = acceptedIds(send(world, tenant, { messages }))
  t.same([...world.sorted(segmentsKey(world.shard, tenant.live.serverId)).keys()], ['202612-0-1'])
  t.equal(world.stream(logKey(world.shard, tenant.live.serverId, '202612-0-1')).at(-1)?.id, entryIdOf(id))
  const persons = world.keyNames().filter((key) => key.includes(':person:'))
  const stamps = persons.flatMap((key) => [...world.hash(key).values()].filter((value) => value.endsWith(' 202611')))
  t.same(stamps, [])
})

t.test('acceptance: account and server count live mail, the account alone test mail', async (t) => {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  send(world, tenant, { messages: [makeItem(), makeItem()] })
  send(world, tenant, { test: true })
  const minute = NOW_MS / 60_000
  const month = 2026 * 12 + 10
  t.same(world.counters.get(`account:${tenant.accountId}`), {
    minute: [minute, 2],
    month: [month, 2],
    testMinute: [minute, 1],
    testMonth: [month, 1],
  })
  t.match(world.counters.get(`server:${tenant.live.serverId}`), { minute: [minute, 2], month: [month, 2] })
  const { segment, ...counted } = world.counters.get(`server:${tenant.test.serverId}`) as Record<string, unknown>
  t.match(segment, { name: '20261120-0-1', recipients: 1, lastMs: NOW_MS })
  t.same(counted, { hour: [Math.floor(NOW_MS / 3_600_000), { 0: [1] }] })
})
