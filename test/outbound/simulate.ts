/**
 * simulate - small simulated attempts on the main thread: outcomes, turns, cuts, and the ones that go to a thread
 * instead.
 */

import t from 'tap'
import { type ComposeInput, composeMessage } from '../../src/mail/compose/compose.ts'
import { makeSimulator } from '../../src/outbound/simulate.ts'
import { buildMessage } from '../../src/outbound/thread/build.ts'
import { isSmallSimulation, type SimulateJob } from '../../src/outbound/thread/thread-job.ts'

const NEVER = new AbortController().signal
const MESSAGE: ComposeInput = {
  messageId: 'm1',
  acceptedAtMs: 0,
  from: { address: 'shop@acme.test', name: null },
  to: [{ address: 'ann@a.test', name: null }],
  cc: [],
  subject: 'Hello',
  text: 'Hello – hello',
  html: '<p>Hello</p>',
  headers: {},
  attachments: [],
  boundarySeed: 'b1',
}
const PLAIN = { text: 'Hello' }
const SIZE = composeMessage(MESSAGE).length
const jobOf = (address: string, message: Partial<ComposeInput> = {}, attempt = 1): SimulateJob => ({
  message: { ...MESSAGE, ...message },
  simulate: { address, attempt },
})

t.test('outcomes by address and attempt, with the size as built', async (t) => {
  const { run } = makeSimulator()
  const outcomes = await Promise.all([
    run(jobOf('ann@a.test'), NEVER),
    run(jobOf('bounce@simulator.test'), NEVER),
    run(jobOf('deferred@simulator.test'), NEVER),
    run(jobOf('deferred@simulator.test', {}, 3), NEVER),
  ])
  t.match(
    outcomes,
    ['delivered', 'bounced', 'deferred', 'delivered'].map((result) => ({ result, sizeBytes: SIZE })),
  )
})

t.test('a message that cannot be built, or is too large as built, ends without an attempt', async (t) => {
  const { run } = makeSimulator()
  t.match(await run(jobOf('ann@a.test', { text: 'a\0b' }), NEVER), {
    result: 'bounced',
    phase: 'compose',
    code: null,
    classification: 'Uncategorized',
    sizeBytes: null,
  })
  const large = await run(jobOf('ann@a.test', { text: 'é'.repeat(4_000_000) }), NEVER)
  t.match(large, { result: 'bounced', phase: 'compose', classification: 'ContentRelated' })
  t.ok((large.sizeBytes ?? 0) > 10_485_760)
  t.match(await run(jobOf('ann@a.test'), NEVER), { result: 'delivered' }, 'the next one goes on')
})

t.test('many jobs run in several turns of the loop, in order, and each once', async (t) => {
  const { run } = makeSimulator()
  const order: number[] = []
  let endedAtFirstTurn = -1
  const all = Array.from({ length: 100 }, (_, n) => run(jobOf('ann@a.test'), NEVER).then(() => order.push(n)))
  t.equal(order.length, 0, 'nothing runs in the turn that asks')
  setImmediate(() => {
    endedAtFirstTurn = order.length
  })
  await Promise.all(all)
  t.ok(endedAtFirstTurn > 0 && endedAtFirstTurn < 100, `${endedAtFirstTurn} in the first turn`)
  t.strictSame(
    order,
    Array.from({ length: 100 }, (_, n) => n),
  )
})

t.test('a job that is cut before its turn goes back', async (t) => {
  const { run } = makeSimulator()
  const cut = new AbortController()
  const outcome = run(jobOf('ann@a.test'), cut.signal)
  cut.abort()
  t.match(await outcome, { result: 'returned', phase: 'abort', sizeBytes: null })
})

t.test('a plain message is performed at once, with the same outcome', async (t) => {
  const { run, runAtOnce } = makeSimulator()
  for (const [address, attempt] of [
    ['ann@a.test', 1],
    ['bounce@simulator.test', 1],
    ['deferred@simulator.test', 1],
    ['deferred@simulator.test', 3],
  ] as const) {
    const job = jobOf(address, PLAIN, attempt)
    t.strictSame(runAtOnce(job), await run(job, NEVER), `${address} ${attempt}`)
  }
})

t.test('what is not plain or not short waits, and so does what is too much for a turn of the loop', async (t) => {
  const { runAtOnce } = makeSimulator()
  t.equal(runAtOnce(jobOf('ann@a.test')), undefined)
  t.equal(runAtOnce(jobOf('ann@a.test', { text: 'x y\n'.repeat(2_000) })), undefined)
  const performed = Array.from({ length: 100 }, () => runAtOnce(jobOf('ann@a.test', PLAIN)) !== undefined)
  t.equal(performed.filter((isPerformed) => isPerformed).length, 64)
  await new Promise((resolve) => setImmediate(resolve))
  t.match(runAtOnce(jobOf('ann@a.test', PLAIN)), { result: 'delivered' }, 'the next turn has room again')
})

t.test('small is: simulated, no attachments, 64 K characters at most', (t) => {
  const half = 'x'.repeat(32 * 1024)
  const attachments = [{ name: 'a', contentType: null, contentId: null, content: Buffer.alloc(1) }]
  t.equal(isSmallSimulation(jobOf('a@b.test', { text: half, html: half })), true)
  t.equal(isSmallSimulation(jobOf('a@b.test', { text: half, html: `${half}x` })), false)
  t.equal(isSmallSimulation(jobOf('a@b.test', { attachments })), false)
  t.equal(
    isSmallSimulation({
      message: MESSAGE,
      transmit: {
        recipient: 'a@b.test',
        mailFrom: 'c@d.test',
        way: null,
        keys: [],
        copies: 1,
        sharers: 1,
        pass: { shard: 0, generation: 0 },
      },
    }),
    false,
  )
  t.end()
})

t.test('a raw message is simulated as it would be sent, at once if it is small', async (t) => {
  const { run, runAtOnce } = makeSimulator()
  const { messageId, acceptedAtMs, from } = MESSAGE
  const job = (bytes: number): SimulateJob => {
    const raw = Buffer.from(`From: a@b.co\r\n\r\n${'x'.repeat(bytes)}`)
    const message = { messageId, acceptedAtMs, from, feedbackId: 'f', receivedBy: 'mail.test', raw }
    return { message, simulate: { address: 'ann@a.test', attempt: 1 } }
  }
  const small = job(100)
  const sizeBytes = buildMessage(small.message)?.length ?? 0
  t.match(runAtOnce(small), { result: 'delivered', sizeBytes })
  t.match(await run(small, NEVER), { result: 'delivered', sizeBytes })
  t.equal(runAtOnce(job(5000)), undefined, 'a larger one waits for its turn')
  t.equal(isSmallSimulation(job(64 * 1024 - 100)), true)
  t.equal(isSmallSimulation(job(64 * 1024)), false, 'and a large one goes to a thread')
})
