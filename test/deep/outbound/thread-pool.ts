/** thread-pool - real threads: simulated and transmitted jobs, cuts, deaths, the fence. */

import type { Test } from 'tap'
import t from 'tap'
import type { ComposeInput } from '../../../src/mail/compose/compose.ts'
import { composeMessage } from '../../../src/mail/compose/compose.ts'
import { SITE_LIMITS } from '../../../src/mail/site.ts'
import { type MailJob, type SmtpSettings, TOO_LATE } from '../../../src/outbound/thread/thread-job.ts'
import type { Way } from '../../../src/outbound/thread/transmit.ts'
import { createMailThreads } from '../../../src/outbound/thread-pool.ts'
import { openFence } from '../../../src/process/fence.ts'
import { until } from '../../support/machine/until.ts'
import type { MxScript } from '../../support/peers/mx.ts'
import { startMx } from '../../support/peers/mx.ts'
import { SHORT_TIMEOUTS } from '../../support/peers/sender.ts'
import { SMTP_SINK_SKIP, startSmtpSink } from '../../support/peers/smtp-sink.ts'
import { startZone } from '../../support/peers/zone.ts'

const NEVER = new AbortController().signal
const MESSAGE: ComposeInput = {
  messageId: 'm1',
  acceptedAtMs: 0,
  from: { address: 'shop@acme.test', name: null },
  to: [{ address: 'ann@a.test', name: null }],
  cc: [],
  subject: 'Hello',
  text: 'Hello',
  html: '<p>Hello</p>',
  headers: {},
  attachments: [],
  boundarySeed: 'b1',
}
const WAY: Way = {
  site: 'mx.test',
  hosts: ['mx.test'],
  limits: SITE_LIMITS,
  connections: 5,
  isVerified: false,
  secureNames: null,
  isOwn: false,
  mtaSts: null,
  dnsMs: 0,
}
const PASS = { shard: 0, generation: 0 }
const SIZE = composeMessage(MESSAGE).length
const simulate = (address: string, attempt = 1): MailJob => ({ message: MESSAGE, simulate: { address, attempt } })
const transmit = (message: ComposeInput = MESSAGE, way: Way | null = WAY): MailJob => ({
  message,
  transmit: {
    recipient: 'ann@a.test',
    mailFrom: 'bounce@rp.svc.test',
    way,
    keys: [],
    copies: 1,
    sharers: 1,
    pass: PASS,
  },
})

function setUp(t: Test, smtp: Partial<SmtpSettings> = {}, size = 1) {
  const fence = openFence()
  fence.beatAnswered(fence.beatSent() + 60_000)
  const threads = createMailThreads({
    size,
    fence,
    smtp: {
      ehloName: 'out.svc.test',
      relayUrl: null,
      relayConnections: 4,
      ca: null,
      deliveryPort: 25,
      usesIpv6: false,
      dnsServers: [],
      isDnsTrusted: false,
      privateNetworksAllowed: ['127.0.0.0/8'],
      connectionsMax: 64,
      timeouts: SHORT_TIMEOUTS,
      ...smtp,
    },
  })
  t.teardown(() => threads.close(0))
  return { threads, fence }
}

async function setUpMx(t: Test, script: MxScript) {
  const [mx, zone] = await Promise.all([startMx(script), startZone()])
  t.teardown(() => Promise.all([mx.close(), zone.close()]))
  zone.set('a.test', { type: 'MX', exchange: 'mx.test', priority: 10 })
  zone.set('mx.test', { type: 'A', address: '127.0.0.1' })
  return { mx, ...setUp(t, { deliveryPort: mx.port, dnsServers: [zone.server] }) }
}

t.test('thread-pool: simulated jobs, a thousand in one turn over two threads', async (t) => {
  const { threads } = setUp(t, {}, 2)
  const outcomes = await Promise.all(
    Array.from({ length: 1000 }, (_, n) =>
      threads.run(simulate(n % 2 ? 'bounce@simulator.test' : 'ann@a.test'), NEVER),
    ),
  )
  t.equal(outcomes.filter((one) => one.result === 'delivered').length, 500)
  t.ok(outcomes.every((one, n) => (one.result === 'bounced') === (n % 2 === 1) && one.sizeBytes === SIZE))
  t.equal(threads.pending(), 0)
})

t.test('thread-pool: a transmitted job arrives as composed, attachments with it', async (t) => {
  const { mx, threads } = await setUpMx(t, {})
  const slab = Buffer.alloc(200_000, 'slab')
  const attachments = [
    { name: 'small.txt', contentType: null, contentId: null, content: Buffer.from('pooled') },
    { name: 'slice.bin', contentType: null, contentId: null, content: slab.subarray(1000, 90_000) },
    { name: 'empty', contentType: null, contentId: null, content: Buffer.alloc(0) },
  ]
  const message = { ...MESSAGE, messageId: 'm2', attachments }
  const outcomes = await Promise.all([threads.run(transmit(message), NEVER), threads.run(transmit(message), NEVER)])
  const built = composeMessage(message)
  for (const outcome of outcomes) t.match(outcome, { result: 'delivered', code: 250, sizeBytes: built.length })
  const messages = mx.sessions.flatMap((session) => session.messages)
  t.ok(messages.length === 2 && messages.every((one) => built.equals(Buffer.from(one))))
  t.equal(attachments[0]!.content.toString(), 'pooled', 'the caller keeps its bytes')
})

t.test('thread-pool: a message that cannot be built, or is too large as built', async (t) => {
  const { threads } = setUp(t)
  const bad = await threads.run(
    { message: { ...MESSAGE, text: 'a\0b' }, simulate: { address: 'a@b.test', attempt: 1 } },
    NEVER,
  )
  t.match(bad, {
    result: 'bounced',
    phase: 'compose',
    code: null,
    classification: 'Uncategorized',
    hard: false,
    sizeBytes: null,
  })
  const content = Buffer.alloc(8_000_000)
  const attachments = [{ name: 'big', contentType: null, contentId: null, content }]
  const big = await threads.run(
    { message: { ...MESSAGE, messageId: 'm3', attachments }, simulate: { address: 'a@b.test', attempt: 1 } },
    NEVER,
  )
  t.match(big, { result: 'bounced', phase: 'compose', code: null, classification: 'ContentRelated', hard: false })
  t.ok(big.sizeBytes! > 10_485_760)
  t.match(await threads.run(simulate('ann@a.test'), NEVER), { result: 'delivered' }, 'the thread lives on')
})

t.test('thread-pool: the signal reaches the attempt', async (t) => {
  const { mx, threads } = await setUpMx(t, { dot: 'hang' })
  t.match(await threads.run(transmit(), AbortSignal.abort()), { result: 'returned', phase: 'abort' })
  const atOnce = new AbortController()
  const first = threads.run(transmit(), atOnce.signal)
  atOnce.abort()
  t.match(await first, { result: 'returned', phase: 'abort' }, 'before the job has left')
  const later = new AbortController()
  const second = threads.run(transmit(), later.signal)
  await until(() => mx.sessions.some((one) => one.messages.length === 1), 5000)
  later.abort()
  t.match(await second, { result: 'returned', phase: 'abort' })
})

t.test('thread-pool: too late cuts an attempt before its final dot, and not after it [delivery.attempt]', async (t) => {
  const { mx, threads } = await setUpMx(t, { dot: 'hang' })
  const past = new AbortController()
  const kept = threads.run(transmit(), past.signal)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  past.abort(TOO_LATE)
  mx.script({ rcpt: 'hang', capabilities: [] })
  const before = new AbortController()
  const cut = threads.run(transmit(), before.signal)
  await until(() => mx.sessions[1]?.commands.some((line) => line.startsWith('RCPT')), 5000)
  before.abort(TOO_LATE)
  t.match(await cut, { result: 'returned', phase: 'abort' })
  mx.answer('250 2.0.0 at last')
  t.match(await kept, { result: 'delivered', response: '250 2.0.0 at last' })
})

t.test('thread-pool: the fence is read in the thread, right before the dot', async (t) => {
  const { mx, threads, fence } = await setUpMx(t, {})
  const messages = () => mx.sessions.flatMap((one) => one.messages).length
  t.match(await threads.run(transmit(), NEVER), { result: 'delivered' })
  fence.disconnected()
  const held = threads.run(transmit(), NEVER)
  await until(() => mx.sessions.flatMap((one) => one.commands).filter((line) => line === 'DATA').length === 2, 5000)
  t.equal(messages(), 1, 'the end of the message waits')
  fence.beatAnswered(fence.beatSent())
  t.match(await held, { result: 'delivered' })
  fence.disconnected()
  const lost = threads.run(transmit(), NEVER)
  await until(() => mx.sessions.flatMap((one) => one.commands).filter((line) => line === 'DATA').length === 3, 5000)
  fence.lost(PASS.shard)
  fence.beatAnswered(fence.beatSent())
  t.match(await lost, { result: 'returned', phase: 'fence' })
  t.match(await threads.run(transmit(), NEVER), { result: 'returned', phase: 'fence' })
  t.equal(messages(), 2)
})

t.test('thread-pool: a thread that dies: its jobs go back, the next one runs in a new thread', async (t) => {
  const { mx, threads } = await setUpMx(t, { dot: 'hang' })
  const held = threads.run(transmit(), NEVER)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  // An invalid job throws in the thread, outside of every attempt.
  const fatal = threads.run({ message: MESSAGE } as unknown as MailJob, NEVER)
  t.match(await fatal, { result: 'returned', response: /mail thread ended/, sizeBytes: null })
  t.match(await held, { result: 'returned', code: null })
  t.match(await threads.run(simulate('ann@a.test'), NEVER), { result: 'delivered' })
  for (let n = 0; n < 6; n += 1) await threads.run({ message: MESSAGE } as unknown as MailJob, NEVER)
  t.match(
    await threads.run(simulate('ann@a.test'), NEVER),
    { result: 'returned', response: /no mail thread/ },
    'not for ever',
  )
})

t.test('thread-pool: close waits for jobs in progress, then gives the rest back', async (t) => {
  const { mx, threads } = await setUpMx(t, { dot: 'hang' })
  const held = threads.run(transmit(), NEVER)
  await until(() => mx.sessions[0]?.messages.length === 1, 5000)
  const done = threads.run(simulate('ann@a.test'), NEVER)
  await threads.close(2_000)
  t.match(await done, { result: 'delivered' })
  t.match(await held, { result: 'returned', response: /mail thread ended/ })
  t.match(await threads.run(simulate('ann@a.test'), NEVER), { result: 'returned' })
})

for (const relayConnections of [1, 2, 3, 5])
  t.test(`thread-pool: ${relayConnections} connections to the relay are not exceeded by four threads`, async (t) => {
    const mx = await startMx({})
    t.teardown(() => mx.close())
    const { threads } = setUp(t, { relayUrl: `smtp://127.0.0.1:${mx.port}`, relayConnections }, 4)
    const outcomes = await Promise.all(Array.from({ length: 60 }, () => threads.run(transmit(MESSAGE, null), NEVER)))
    t.ok(outcomes.every((one) => one.result === 'delivered'))
    t.equal(mx.open.most, relayConnections)
  })

t.test('thread-pool: a wrong relay URL stops the start', async (t) => {
  t.throws(() => setUp(t, { relayUrl: 'http://relay.test' }), /relay URL/)
})

t.test("thread-pool: through a relay to Postfix's smtp-sink", { skip: SMTP_SINK_SKIP }, async (t) => {
  const sink = await startSmtpSink()
  const { threads } = setUp(t, { relayUrl: `smtp://127.0.0.1:${sink.port}` })
  t.teardown(() => sink.close())
  const outcomes = await Promise.all(Array.from({ length: 200 }, () => threads.run(transmit(MESSAGE, null), NEVER)))
  t.ok(outcomes.every((one) => one.result === 'delivered' && one.code === 250 && one.sizeBytes === SIZE))
})
