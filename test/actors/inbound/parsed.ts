/**
 * parsed - the effect of an outcome on a message: once, for outcomes that come twice, late, never, or after the
 * content is gone.
 */
import t from 'tap'
import { shortId } from '../../../cluster/id.ts'
import { parseOutcome, prepareParse } from '../../../src/actors/inbound/parsed.ts'
import { createWebhook } from '../../../src/actors/webhook/create.ts'
import { receivedSegmentsKey, receivedStateKey } from '../../../src/state/keys.ts'
import { contentHeadKey, unpackContentHead } from '../../../src/state/received/content-head.ts'
import { unpackStanding } from '../../../src/state/received/standing.ts'
import { parseDeliveryItem } from '../../../src/state/webhook/item.ts'
import { makeInboundStream, makeParsed, parseNext, receiveMail } from '../../support/world/inbound.ts'
import { LIVE_KEY, makeTenant, type Tenant } from '../../support/world/tenant.ts'
import { World } from '../../support/world/turn.ts'

const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 30)

function open(): { world: World; tenant: Tenant; streamId: string } {
  const world = new World(NOW_MS)
  const tenant = makeTenant(world)
  return { world, tenant, streamId: makeInboundStream(world, tenant) }
}

function rows(world: World, { live }: Tenant, id: string) {
  const [segment = ''] = [...world.sorted(receivedSegmentsKey(world.shard, live.serverId)).keys()]
  const standing = world.hash(receivedStateKey(world.shard, live.serverId, segment)).get(shortId(id))
  const head = world.hash(contentHeadKey(world.shard, live.serverId, id)).get(shortId(id))
  return {
    standing: standing === undefined ? null : unpackStanding(standing, NOW_MS),
    head: head === undefined ? null : unpackContentHead(head),
  }
}

const posts = (world: World) => world.deliveries().filter(({ lane }) => lane.startsWith('post/'))

function hook(world: World, { accountId, live }: Tenant, streamId: string | null = null): void {
  const url = `https://hooks.example/${streamId ?? 'all'}`
  world.run(createWebhook, {
    accountId,
    serverId: live.serverId,
    keyHash: LIVE_KEY,
    url,
    urlHash: url,
    events: ['inbound'],
    streamId,
    inboundContent: 'full',
    sealedSecret: 'sealed',
  })
}

t.test('parsed: the result is in the rows, and the event is announced once [inbound.event]', async (t) => {
  const { world, tenant, streamId } = open()
  hook(world, tenant)
  hook(world, tenant, streamId)
  hook(world, tenant, tenant.live.streamId)
  const [id = ''] = receiveMail(world, tenant, { streamId })
  const parsed = makeParsed(world)
  parseNext(world, { result: 'parsed', parsed })
  const { standing, head } = rows(world, tenant, id)
  t.match(standing, { isParsed: true, hasText: true, hasHtml: false, attachmentCount: 2, parseIssue: null, from: 2 })
  t.match(head, {
    parsedId: parsed.parsedId,
    fromAddress: 'header@example.org',
    fromName: 'Header',
    subject: 'Hello',
    dateMs: 0,
    session: null,
  })
  t.equal(posts(world).length, 2, 'of the server and of the stream, not of another stream')
  t.match(parseDeliveryItem(posts(world)[0]?.item ?? '').reference, {
    kind: 'inbound',
    event: 'inbound',
    messageId: id,
  })
})

t.test('parsed: a repeated outcome changes nothing, and its object is removed [inbound.event]', async (t) => {
  const { world, tenant, streamId } = open()
  hook(world, tenant)
  const [id = ''] = receiveMail(world, tenant, { streamId })
  const first = makeParsed(world)
  const item = parseNext(world, { result: 'parsed', parsed: first })
  const lane = `parse/${tenant.accountId}`
  const again = makeParsed(world, { subject: 'Another' })
  world.run(parseOutcome, { lane, item, attempt: 1, current: false, outcome: { result: 'parsed', parsed: again } })
  t.equal(rows(world, tenant, id).head?.subject, 'Hello')
  t.equal(posts(world).length, 1)
  const unlinks = world.deliveries().filter(({ lane }) => lane === 'unlink')
  t.equal(unlinks.length, 1)
  t.ok(unlinks[0]?.item.endsWith(again.parsedId ?? '-'))
  t.equal(world.run(prepareParse, { lane, item }), null, 'nothing is left to parse')
})

t.test('parsed: an unreachable store defers it, twice as long each time [inbound.parse]', async (t) => {
  const { world, tenant, streamId } = open()
  const [id = ''] = receiveMail(world, tenant, { streamId })
  for (const waitMs of [60_000, 120_000, 240_000]) {
    parseNext(world, { result: 'later' })
    const due = world.deliveries().find(({ lane }) => lane.startsWith('parse/'))
    t.equal((due?.atMs ?? 0) - world.nowMs, waitMs)
    world.nowMs += waitMs
  }
  t.equal(rows(world, tenant, id).standing?.isParsed, false)
  parseNext(world, { result: 'parsed', parsed: makeParsed(world) })
  t.equal(rows(world, tenant, id).standing?.isParsed, true)
})

t.test('parsed: five claims without an outcome are reported as parser_error [inbound.parse]', async (t) => {
  const { world, tenant, streamId } = open()
  hook(world, tenant)
  const [id = ''] = receiveMail(world, tenant, { streamId })
  parseNext(world, null)
  t.match(rows(world, tenant, id).standing, { isParsed: true, parseIssue: 'parser_error', checkedAtMs: null })
  t.equal(posts(world).length, 1)
})

t.test('parsed: a message whose head is gone does not come back [retention.inbound]', async (t) => {
  const { world, tenant, streamId } = open()
  const [id = ''] = receiveMail(world, tenant, { streamId })
  world.keys.delete(contentHeadKey(world.shard, tenant.live.serverId, id))
  const due = world.deliveries().find(({ lane }) => lane.startsWith('parse/'))
  const parsed = makeParsed(world)
  world.run(parseOutcome, {
    lane: due?.lane ?? '',
    item: due?.item ?? '',
    attempt: 1,
    current: true,
    outcome: { result: 'parsed', parsed },
  })
  t.equal(rows(world, tenant, id).head, null)
  t.ok(world.deliveries().some(({ lane, item }) => lane === 'unlink' && item.endsWith(parsed.parsedId ?? '-')))
})

t.test('parsed: the sending host is kept for as long as the DNS may have more [inbound.authentication]', async (t) => {
  const { world, tenant, streamId } = open()
  const [id = ''] = receiveMail(world, tenant, { streamId })
  const verdicts = {
    spf: 'temperror',
    spfHelo: 'none',
    dkim: 'pass',
    dmarc: 'fail',
    dmarcPolicy: 'reject',
    arc: 'none',
  } as const
  const check = { authentication: verdicts, checkedAtMs: NOW_MS + 5, isTemporary: true }
  parseNext(world, { result: 'parsed', parsed: makeParsed(world, { check }) })
  t.same(rows(world, tenant, id).head?.session, { ip: '192.0.2.1', helo: 'mail.example.net' })
  t.match(rows(world, tenant, id).standing, { authentication: verdicts, checkedAtMs: NOW_MS + 5 })
})
