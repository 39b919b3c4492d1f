/** walk-log - what an erasure makes of sent messages: to the person, from it, those that wait, and no others. */
import t from 'tap'
import { withSum } from '../../../cluster/sum.ts'
import { reportOutcome } from '../../../src/actors/message/attempt-outcome.ts'
import { attemptOutcome } from '../../../src/actors/message/delivery-outcome.ts'
import { type AttemptJob, prepareAttempt } from '../../../src/actors/message/prepare-attempt.ts'
import { recordReport } from '../../../src/actors/message/record-report.ts'
import { unconnectedRoute } from '../../../src/mail/attempt-route.ts'
import { makeRefused } from '../../../src/mail/classify.ts'
import { makeDelivered } from '../../../src/mail/outcome.ts'
import { DAY_MS, MINUTE_MS } from '../../../src/state/calendar.ts'
import { firstPersonsKey, headKey, segmentsKey } from '../../../src/state/keys.ts'
import { SEGMENT_BOUNDS } from '../../../src/state/segment.ts'
import {
  deliverAll,
  eraseNow,
  mailTo,
  messageOf,
  NOW_MS,
  openWorld,
  order,
  PSEUDONYM,
  stateOf,
  textsOf,
  walkOf,
  walkSteps,
} from '../../support/world/erasure.ts'
import { acceptedIds, hmacOf, send } from '../../support/world/tenant.ts'
import { seedWebhook } from '../../support/world/webhook-world.ts'

const ADA = 'Ada.Lovelace@example.net'
const BOB = 'bob@example.org'

t.test('walk-log: a delivered message loses its content and the servers’ replies [erasure.messages]', async (t) => {
  const { world, tenant } = openWorld()
  const [mine = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(ADA)] }))
  const route = unconnectedRoute('lovelace-mx.example.net', null, null)
  deliverAll(world, { ...makeDelivered(250, '250 2.0.0 Ok ada.lovelace has mail'), route })
  const [other = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(BOB)] }))
  deliverAll(world, makeDelivered(250, '250 2.0.0 Ok'))
  t.match(textsOf(world), 'ada.lovelace')
  t.match(textsOf(world), 'lovelace-mx.example.net')
  const erasure = eraseNow(world, tenant, ADA)
  t.match(erasure, { messages: 1, receivedMessages: 0, pseudonym: PSEUDONYM, completedAtMs: NOW_MS })
  const erased = messageOf(world, tenant.live.serverId, mine)
  t.ok(erased.isErased)
  t.match(erased.recipients[0], {
    status: 'delivered',
    sizeBytes: 900,
    events: [{ event: 'delivered', code: 250, response: null }],
  })
  const kept = messageOf(world, tenant.live.serverId, other)
  t.match(kept, { isErased: false, head: { subject: 'Your order' } })
  t.match(kept.recipients[0], { events: [{ response: '250 2.0.0 Ok' }] })
  t.notMatch(textsOf(world), /lovelace/)
  t.match(textsOf(world), /bob@example.org/)
})

t.test(
  'walk-log: the body is removed from every place, and the removal of objects of the content store is ordered',
  async (t) => {
    const { world, tenant } = openWorld()
    const attachment = { name: 'a.txt', contentType: null, contentId: null, size: 3, inline: false }
    const parts = [
      { part: 'body', chunks: 1, blob: 0 },
      { part: 'a0', chunks: 1, blob: 1 },
    ]
    const large = { ...mailTo(ADA), content: { parts: [{ part: 'body', chunks: 1, blob: 0 }], stored: null } }
    const filed = { ...mailTo(ADA), attachments: [attachment], content: { parts, stored: null } }
    const stored = {
      ...mailTo(ADA),
      attachments: [attachment],
      content: { parts: [], stored: { key: 'a sealed key', body: true, files: true } },
    }
    const blobs = [
      Buffer.concat([Buffer.from('\0\0\x01'), Buffer.alloc(5_000, 'secret words ')]),
      Buffer.from('\0\0\x01abc'),
    ]
    for (const item of [large, filed, stored]) send(world, tenant, { messages: [item] }, { blobs })
    const contents = () => world.keyNames().filter((key) => key.includes(':content:'))
    t.equal(contents().length, 3)
    eraseNow(world, tenant, ADA)
    t.same(contents(), [])
    t.notMatch(textsOf(world), /secret words|a sealed key/)
    const unlinks = world.deliveries().filter(({ lane }) => lane === 'unlink')
    t.equal(unlinks.length, 2)
    t.match(unlinks.map(({ job }) => (job as { name: string }).name).sort(), [/\.files$/, /\.body$/])
  },
)

t.test('walk-log: attachments of a scheduled message go as well, however long it has waited [send.at]', async (t) => {
  const { world, tenant } = openWorld()
  const attachments = [{ name: 'a.txt', contentType: null, contentId: null, size: 3, inline: false }]
  const parts = [
    { part: 'body', chunks: 1, blob: 0 },
    { part: 'a0', chunks: 1, blob: 1 },
  ]
  const item = { ...mailTo(ADA), attachments, content: { parts, stored: null }, sendAtMs: NOW_MS + 20 * DAY_MS }
  const blobs = ['body', 'abc'].map((text) => Buffer.from(`\0\0\x01${text}`))
  send(world, tenant, { messages: [item] }, { blobs })
  world.nowMs += 10 * DAY_MS
  const contents = () => world.keyNames().filter((key) => key.includes(':content:'))
  t.equal(contents().length, 1)
  eraseNow(world, tenant, ADA)
  t.same(contents(), [])
})

t.test(
  'walk-log: a waiting recipient ends as cancelled without an event; the others of the message fail [message.states]',
  async (t) => {
    const { world, tenant } = openWorld()
    const [shared = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(BOB, ADA)] }))
    const id = order(world, tenant, ADA)
    const due = world.deliveries()
    for (const one of due) {
      Object.assign(one, { job: undefined })
      t.equal(world.claim(prepareAttempt, one), null, 'nothing goes out from the order on')
    }
    world.fireTimers()
    t.match(stateOf(world, id), { messages: 1 })
    const { recipients } = messageOf(world, tenant.live.serverId, shared)
    t.match(recipients, [
      { status: 'failed', events: [{ event: 'bounced', code: null, classification: 'Uncategorized', hard: false }] },
      { status: 'cancelled', events: [{ event: 'cancelled' }] },
    ])
  },
)

t.test(
  'walk-log: an attempt in flight changes nothing afterwards, and a late bounce does not reveal the person',
  async (t) => {
    const { world, tenant } = openWorld()
    const [waits = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(ADA)] }))
    const [due] = world.deliveries()
    const claim = world.claim<AttemptJob>(prepareAttempt, due as never)
    eraseNow(world, tenant, ADA)
    const outcome = makeRefused({ phase: 'rcpt', response: '550 5.1.1 lovelace is not here' })
    const report = { address: ADA, sizeBytes: 9, retryAfterMs: null, hmac: () => hmacOf(ADA) }
    world.end(attemptOutcome, claim as never, reportOutcome(outcome, report))
    t.match(messageOf(world, tenant.live.serverId, waits).recipients, [{ status: 'cancelled' }])
    const [sent = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(ADA)] }))
    const item = world.deliveries().find(({ lane }) => lane.startsWith('deliver'))?.item ?? ''
    deliverAll(world, makeDelivered(250, '250 Ok'))
    eraseNow(world, tenant, ADA)
    const bounce = {
      kind: 'bounce',
      code: 550,
      response: '550 lovelace has left',
      classification: 'InvalidRecipient',
      hard: true,
      expired: false,
    } as const
    t.equal(world.run(recordReport, { item, hmac: null, report: bounce }), 'recorded')
    t.match(messageOf(world, tenant.live.serverId, sent).recipients, [
      { status: 'bounced', events: [{}, { response: null }] },
    ])
    t.notMatch(textsOf(world), /lovelace/)
  },
)

t.test('walk-log: mail from the person loses its content too and is not counted [erasure.messages]', async (t) => {
  const { world, tenant } = openWorld()
  const from = {
    address: 'Grace@acme.example',
    domain: 'acme.example',
    name: 'Grace',
    hmac: hmacOf('grace@acme.example'),
  }
  const [sent = ''] = acceptedIds(send(world, tenant, { messages: [{ ...mailTo(BOB), from }] }))
  deliverAll(world, makeDelivered(250, '250 Ok from grace'))
  const [waits = ''] = acceptedIds(send(world, tenant, { messages: [{ ...mailTo(BOB), from }] }))
  const [kept = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(BOB)] }))
  t.match(eraseNow(world, tenant, from.address), { messages: 0 })
  t.match(messageOf(world, tenant.live.serverId, sent), {
    isErased: true,
    recipients: [{ status: 'delivered', events: [{ response: null }] }],
  })
  t.match(messageOf(world, tenant.live.serverId, waits), { isErased: true, recipients: [{ status: 'failed' }] })
  t.match(messageOf(world, tenant.live.serverId, kept), { isErased: false })
  t.notMatch(textsOf(world), /grace/)
})

t.test('walk-log: mail accepted after the order is later mail, also while the walk runs [erasure.cut]', async (t) => {
  const { world, tenant } = openWorld()
  send(world, tenant, { messages: [mailTo(ADA)] })
  const id = order(world, tenant, ADA)
  const [later = ''] = acceptedIds(send(world, tenant, { messages: [mailTo(ADA)] }))
  world.fireTimers()
  t.match(stateOf(world, id), { messages: 1 })
  t.match(messageOf(world, tenant.live.serverId, later), { isErased: false, recipients: [{ status: 'accepted' }] })
  for (const due of world.deliveries()) Object.assign(due, { job: undefined })
  const claimed = world.deliveries().map((due) => world.claim<AttemptJob>(prepareAttempt, due))
  t.same(
    claimed.filter((one) => one !== null).map(({ job }) => job.recipient.address.toLowerCase()),
    [ADA.toLowerCase()],
  )
  t.match(eraseNow(world, tenant, ADA), { messages: 1, pseudonym: PSEUDONYM })
  t.match(messageOf(world, tenant.live.serverId, later), { isErased: true })
  t.match(eraseNow(world, tenant, ADA), { messages: 0 }, 'nothing is left to count')
  const rows = [...world.hash(firstPersonsKey(world.shard, tenant.accountId)).values()]
  t.equal(
    rows.filter((row) => row === withSum(`202611 ${PSEUDONYM}@erased.invalid`)).length,
    2,
    'both of its numbers lead to the pseudonym',
  )
})

t.test('walk-log: each message of many segments counts once, by postings and by the log', async (t) => {
  const { world, tenant } = openWorld()
  const before = { ...SEGMENT_BOUNDS }
  Object.assign(SEGMENT_BOUNDS, { recipientsMax: 700, busyRecipients: 300, fullRecipients: 600 })
  t.teardown(() => Object.assign(SEGMENT_BOUNDS, before))
  for (let n = 0; n < 30; n += 1) {
    world.nowMs += DAY_MS / 100
    send(world, tenant, {
      messages: Array.from({ length: 100 }, (_, at) => mailTo(at % 3 === 0 ? ADA : `p${at}@example.org`)),
    })
  }
  const segments = [...world.sorted(segmentsKey(world.shard, tenant.live.serverId)).keys()]
  t.ok(segments.some((name) => name.endsWith('-1')) && segments.some((name) => name.endsWith('-64')), segments.join())
  t.match(eraseNow(world, tenant, ADA), { messages: 30 * 34 })
  const heads = segments.flatMap((name) => [...world.hash(headKey(world.shard, tenant.live.serverId, name)).values()])
  t.equal(heads.filter((head) => head === withSum('[0]')).length, 30 * 34)
  t.notMatch(textsOf(world), /lovelace/)
})

t.test('walk-log: a test server has no postings', async (t) => {
  const { world, tenant } = openWorld()
  send(world, tenant, { test: true, messages: [{ ...mailTo(ADA), lane: 'simulate' }] })
  t.match(eraseNow(world, tenant, ADA), { messages: 1 })
  t.notMatch(textsOf(world), /lovelace/)
})

t.test('walk-log: who has no row is not looked for in the log', async (t) => {
  const { world, tenant } = openWorld()
  send(world, tenant)
  const id = order(world, tenant, ADA)
  t.equal(walkOf(world, id)?.number, 0)
  world.fireTimers()
  t.match(stateOf(world, id), { messages: 0, receivedMessages: 0, completedAtMs: NOW_MS })
})

t.test('walk-log: a step stays small, whatever waits for the person and whatever webhooks there are', async (t) => {
  const others = Array.from({ length: 49 }, (_, n) => `p${n}@example.org`)
  for (const webhooks of [0, 2]) {
    const { world, tenant } = openWorld()
    for (let n = 0; n < webhooks; n += 1) seedWebhook(world, tenant)
    send(world, tenant, { messages: Array.from({ length: 60 }, () => mailTo(ADA)) })
    const ids = Array.from({ length: 30 }, () => {
      world.nowMs += MINUTE_MS
      return acceptedIds(send(world, tenant, { messages: [mailTo(ADA, ...others)] }))[0] ?? ''
    })
    const id = order(world, tenant, ADA)
    const steps = walkSteps(world)
    t.match(stateOf(world, id), { messages: 90 })
    t.ok(Math.max(...steps.map(({ writes }) => writes)) < 1_300, JSON.stringify(steps))
    // Events for webhooks are stored apart from heads and statuses.
    const values = Math.max(...steps.map((step) => step.values - (webhooks * step.writes) / 2))
    t.ok(values < 1_300, JSON.stringify(steps))
    for (const messageId of ids) {
      const { recipients } = messageOf(world, tenant.live.serverId, messageId)
      t.same(
        recipients.map(({ events }) => events.map(({ event }) => event).join()),
        ['cancelled', ...others.map(() => 'bounced')],
      )
    }
  }
})
