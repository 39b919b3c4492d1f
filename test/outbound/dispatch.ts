/** dispatch - from an address to its outcome: the decisions before a thread has any work. */

import t from 'tap'
import type { MxRoute } from '../../src/dns/mx-route.ts'
import { makeUnasked } from '../../src/mail/classify.ts'
import type { ComposeInput } from '../../src/mail/compose/compose.ts'
import { makeDelivered, makeReturned } from '../../src/mail/outcome.ts'
import { SITE_LIMITS } from '../../src/mail/site.ts'
import { BYTES_MAX } from '../../src/outbound/byte-budget.ts'
import { makeDispatch } from '../../src/outbound/dispatch.ts'
import { Sites } from '../../src/outbound/sites.ts'
import { type MailJob, type MailOutcome, TOO_LATE } from '../../src/outbound/thread/thread-job.ts'
import { egressOf, egressPlan } from '../support/world/egress.ts'

const NEVER = new AbortController().signal
const DELIVERED: MailOutcome = { ...makeDelivered(250, '250 ok'), sizeBytes: 1, contact: 'answered' }
const ROUTE: MxRoute = {
  site: 'mx.a.test',
  hosts: ['mx.a.test'],
  limits: SITE_LIMITS,
  sts: null,
  isNamed: true,
  isOwn: false,
  isRelay: false,
  secureNames: null,
}
const message = (text: string): ComposeInput => ({
  messageId: '0',
  acceptedAtMs: 0,
  from: { address: 'shop@acme.test', name: null },
  to: [],
  cc: [],
  subject: 'x',
  text,
  html: null,
  headers: {},
  attachments: [],
  boundarySeed: '0',
})
const prepared = async (text = 'x') => ({
  message: message(text),
  transmit: { mailFrom: 'b@rp.test', keys: [], copies: 1 },
})

function setUp(
  findRoute: ((domain: string) => Promise<MxRoute | ReturnType<typeof makeUnasked>>) | null,
  plan = egressPlan({}, findRoute === null),
) {
  const sites = new Sites({ nowMs: () => 0, random: () => 0.5, after: () => () => undefined, sharers: () => 1 })
  const jobs: { job: MailJob; signal: AbortSignal; end(outcome: MailOutcome): void }[] = []
  const run = (job: MailJob, signal: AbortSignal) => new Promise<MailOutcome>((end) => jobs.push({ job, signal, end }))
  /** Timers that run; `pass` lets the time of all those of one length be over. */
  const timers = new Set<{ ms: number; run: () => void }>()
  const after = (ms: number, go: () => void) => {
    const timer = { ms, run: go }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const pass = (minutes: number) => {
    for (const one of [...timers]) if (one.ms === minutes * 60_000 && timers.delete(one)) one.run()
  }
  const egress = egressOf(plan)
  const find = findRoute ?? (async () => makeUnasked('no-domain'))
  return { dispatch: makeDispatch({ sites, findRoute: find, egress, run, after }), jobs, pass, timers }
}

const order = (address: string, bytes = 0) => ({
  address,
  destination: 'a.test',
  bytes,
  signal: NEVER,
  pass: { shard: 0, generation: 0 },
})
const settled = () => new Promise((resolve) => setImmediate(resolve))

t.test('dispatch: no job for an address that cannot be written to, or a domain that takes no mail', async (t) => {
  const { dispatch, jobs } = setUp(async () => makeUnasked('null-mx'))
  t.match(await dispatch.send(order('no address'), () => prepared()), { result: 'bounced', sizeBytes: null })
  t.match(await dispatch.send(order('ann@a.test'), () => prepared()), { classification: 'BadDomain', hard: true })
  t.equal(jobs.length, 0)
})

t.test(
  'dispatch: the envelope and the route go to the thread, its outcome comes back [delivery.attempt]',
  async (t) => {
    for (const [findRoute, way] of [
      [async () => ROUTE, { site: 'mx.a.test', connections: 5, isVerified: false }],
      [null, null],
    ] as const) {
      const { dispatch, jobs } = setUp(findRoute)
      const outcome = dispatch.send(order('Ann@A.Test'), () => prepared())
      await settled()
      t.match(jobs[0]?.job, { transmit: { recipient: 'Ann@a.test', mailFrom: 'b@rp.test', way } })
      jobs[0]?.end(DELIVERED)
      t.equal(await outcome, DELIVERED)
    }
  },
)

t.test('dispatch: mail for a relay needs no domain in the DNS, also with rules for sites [egress.rule]', async (t) => {
  const pools = [{ name: 'own', sources: [{ source: 'a' }] }]
  const body = { sources: [{ name: 'a', address: '192.0.2.1' }], pools, rules: [{ site: 'mx.test', pool: 'own' }] }
  const noDomain = async () => makeUnasked('no-domain')
  const { dispatch, jobs } = setUp(noDomain, egressPlan(body, true))
  const outcome = dispatch.send(order('ann@corp.internal'), () => prepared())
  await settled()
  t.match(jobs[0]?.job, { transmit: { way: null } })
  jobs[0]?.end(DELIVERED)
  t.equal(await outcome, DELIVERED)
  t.match(await setUp(noDomain, egressPlan(body)).dispatch.send(order('ann@corp.internal'), () => prepared()), {
    result: 'bounced',
  })
})

t.test('dispatch: a message that cannot be composed ends the attempt without a job', async (t) => {
  const { dispatch, jobs } = setUp(async () => ROUTE)
  const gone = { ...makeUnasked('unbuildable'), sizeBytes: null }
  t.equal(await dispatch.send(order('ann@a.test'), async () => gone), gone)
  t.equal(jobs.length, 0)
})

t.test('dispatch: large messages beyond their bytes go back for a moment [delivery.bytes]', async (t) => {
  const { dispatch, jobs } = setUp(null)
  const large = BYTES_MAX / 4
  const outcomes = Array.from({ length: 5 }, () => dispatch.send(order('ann@a.test', large), () => prepared()))
  t.match(await outcomes[4], { result: 'returned', afterMs: 1000 })
  t.equal(jobs.length, 4)
  const long = dispatch.send(order('ann@a.test'), () => prepared('x'.repeat(large)))
  t.match(await long, { result: 'returned' }, 'long texts count as attachments do')
  const small = dispatch.send(order('ann@a.test'), () => prepared())
  await settled()
  for (const { end } of jobs) end(DELIVERED)
  for (const outcome of [...outcomes.slice(0, 4), small]) t.equal(await outcome, DELIVERED)
  const again = dispatch.send(order('ann@a.test', large), () => prepared())
  await settled()
  jobs[5]?.end(DELIVERED)
  t.equal(await again, DELIVERED)
})

t.test('dispatch: an attempt is cut with its signal while it waits for its site', async (t) => {
  const { dispatch, jobs } = setUp(async () => ROUTE)
  const cut = new AbortController()
  const outcomes = Array.from({ length: 8 }, () =>
    dispatch.send({ ...order('ann@a.test'), signal: cut.signal }, () => prepared()),
  )
  await settled()
  t.equal(jobs.length, 5, 'as many as the site has places')
  t.equal(dispatch.room('a.test'), 32 - 3)
  cut.abort()
  for (const outcome of outcomes.slice(5)) t.match(await outcome, { result: 'returned', phase: 'abort' })
  for (const { end } of jobs) end(DELIVERED)
  await Promise.all(outcomes)
})

const CUT: MailOutcome = { ...makeReturned('abort', 'attempt was cut off'), sizeBytes: 1, contact: 'none' }

t.test(
  'dispatch: an attempt that only waits for four minutes goes back, one in flight does not [delivery.returned]',
  async (t) => {
    const { dispatch, jobs, pass, timers } = setUp(async () => ROUTE)
    const outcomes = Array.from({ length: 7 }, () => dispatch.send(order('ann@a.test'), () => prepared()))
    await settled()
    pass(4)
    for (const outcome of outcomes.slice(5)) t.match(await outcome, { result: 'returned', phase: 'abort' })
    t.notOk(jobs.some(({ signal }) => signal.aborted))
    for (const { end } of jobs) end(DELIVERED)
    for (const outcome of outcomes.slice(0, 5)) t.equal(await outcome, DELIVERED)
    t.equal(timers.size, 0)
  },
)

t.test(
  'dispatch: an attempt in flight for ten minutes is cut only before the dot, and has failed [delivery.attempt]',
  async (t) => {
    const { dispatch, jobs, pass, timers } = setUp(async () => ROUTE)
    const outcomes = [0, 1].map(() => dispatch.send(order('ann@a.test'), () => prepared()))
    await settled()
    pass(10)
    t.same(
      jobs.map(({ signal }) => signal.reason),
      [TOO_LATE, TOO_LATE],
    )
    jobs[0]?.end(CUT)
    jobs[1]?.end(DELIVERED)
    t.match(await outcomes[0], { result: 'deferred', response: '4.4.2 attempt took too long', code: null })
    t.equal(await outcomes[1], DELIVERED, 'the answer to the dot came after all')
    t.equal(timers.size, 0)
  },
)

t.test('dispatch: an attempt cut by its owner goes back, however long it took [delivery.returned]', async (t) => {
  const { dispatch, jobs, pass } = setUp(async () => ROUTE)
  const cut = new AbortController()
  const outcome = dispatch.send({ ...order('ann@a.test'), signal: cut.signal }, () => prepared())
  await settled()
  cut.abort()
  pass(10)
  t.ok(jobs[0]?.signal.aborted)
  jobs[0]?.end(CUT)
  t.match(await outcome, { result: 'returned' })
})

t.test('dispatch: an attempt that the site sends back after its wait is over ends [delivery.returned]', async (t) => {
  const { dispatch, jobs, pass } = setUp(async () => ROUTE)
  const outcome = dispatch.send(order('ann@a.test'), () => prepared())
  await settled()
  pass(4)
  jobs[0]?.end({ ...makeReturned('site', 'too many new connections'), sizeBytes: 1, contact: 'none', afterMs: 5 })
  t.match(await outcome, { result: 'returned' })
  t.equal(jobs.length, 1)
})
