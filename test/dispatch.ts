/** dispatch - from an address to its outcome: what is decided before a thread has anything to do. */

import t from 'tap'
import { BYTES_MAX } from '../src/byte-budget.ts'
import { makeDispatch } from '../src/dispatch.ts'
import type { Route } from '../src/effects/route.ts'
import type { MailJob, MailOutcome } from '../src/effects/thread-job.ts'
import { makeUnasked } from '../src/mail/classify.ts'
import type { ComposeInput } from '../src/mail/compose.ts'
import { makeDelivered } from '../src/mail/outcome.ts'
import { SITE_LIMITS } from '../src/mail/site.ts'
import { makeSites } from '../src/sites.ts'

const NEVER = new AbortController().signal
const DELIVERED: MailOutcome = { ...makeDelivered(250, '250 ok'), sizeBytes: 1, contact: 'answered' }
const ROUTE: Route = {
  site: 'mx.a.test',
  hosts: ['mx.a.test'],
  limits: SITE_LIMITS,
  sts: null,
  isNamed: true,
  isOwn: false,
  isRelay: false,
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

function setUp(findRoute: ((domain: string) => Promise<Route | ReturnType<typeof makeUnasked>>) | null) {
  const sites = makeSites({ nowMs: () => 0, random: () => 0.5, after: () => () => undefined })
  const jobs: { job: MailJob; end(outcome: MailOutcome): void }[] = []
  const run = (job: MailJob) => new Promise<MailOutcome>((end) => jobs.push({ job, end }))
  return { dispatch: makeDispatch({ sites, findRoute, run }), jobs }
}

const order = (address: string, bytes = 0) => ({ address, destination: 'a.test', bytes, signal: NEVER })
const settled = () => new Promise((resolve) => setImmediate(resolve))

t.test('dispatch: no job for an address that cannot be written to, or a domain that takes no mail', async (t) => {
  const { dispatch, jobs } = setUp(async () => makeUnasked('null-mx'))
  t.match(await dispatch.send(order('no address'), () => prepared()), { result: 'bounced', sizeBytes: null })
  t.match(await dispatch.send(order('ann@a.test'), () => prepared()), { classification: 'BadDomain', hard: true })
  t.equal(jobs.length, 0)
})

t.test('dispatch: the envelope and the way go to the thread, its outcome comes back [delivery.attempt]', async (t) => {
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
})

t.test('dispatch: what the message could not be made of ends the attempt without a job', async (t) => {
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
