/** sites - who gets a place, with a clock that the test turns and attempts that it ends. */

import t from 'tap'
import type { MxRoute } from '../../src/dns/mx-route.ts'
import { makeRefused } from '../../src/mail/classify.ts'
import { makeDeferred, makeDelivered, makeReturned } from '../../src/mail/outcome.ts'
import { SITE_LIMITS, type SiteLimits } from '../../src/mail/site.ts'
import { type Given, Sites } from '../../src/outbound/sites.ts'
import type { MailOutcome } from '../../src/outbound/thread/thread-job.ts'

const NEVER = new AbortController().signal
const MINUTE_MS = 60_000
const delivered: MailOutcome = { ...makeDelivered(250, '250 ok'), sizeBytes: 1, contact: 'answered' }
const busy: MailOutcome = { ...makeRefused({ phase: 'rcpt', response: '421 busy' }), sizeBytes: 1, contact: 'answered' }
const dead: MailOutcome = { ...makeDeferred('conn', 'NoAnswerFromHost', 'no'), sizeBytes: 1, contact: 'silent' }

const routeOf = (site: string, changes: Partial<MxRoute> = {}): MxRoute => ({
  site,
  hosts: [site],
  limits: SITE_LIMITS,
  sts: null,
  isNamed: true,
  isOwn: false,
  isRelay: false,
  secureNames: null,
  ...changes,
})

function setUp() {
  const timers: { atMs: number; run: () => void }[] = []
  let nowMs = 1000
  let sharers = 1
  const sites = new Sites({
    nowMs: () => nowMs,
    random: () => 0.5,
    sharers: () => sharers,
    after(ms, run) {
      const timer = { atMs: nowMs + ms, run }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer) >>> 0, 1)
    },
  })
  const running: {
    site: string
    connections: number
    limits: SiteLimits
    sharers: number
    end(outcome: MailOutcome): Promise<void>
  }[] = []
  const ended: { site: string; outcome: MailOutcome }[] = []
  /** Begins an attempt; `running` and `ended` show its state. */
  const begin = async (site: string, { route = routeOf(site), signal = NEVER } = {}): Promise<void> => {
    const run = ({ connections, limits, sharers }: Given) =>
      new Promise<MailOutcome>((resolve) => {
        const one = {
          site,
          connections,
          limits,
          sharers,
          async end(outcome: MailOutcome) {
            running.splice(running.indexOf(one), 1)
            resolve(outcome)
            await settled()
          },
        }
        running.push(one)
      })
    void sites.attempt(site, { route, signal, run }).then((outcome) => ended.push({ site, outcome }))
    await settled()
  }
  const at = (site: string) => running.filter((one) => one.site === site)
  return {
    sites,
    running,
    ended,
    begin,
    at,
    share(count: number) {
      sharers = count
    },
    async many(site: string, count: number) {
      for (let n = 0; n < count; n += 1) await begin(site)
    },
    async pass(ms: number) {
      nowMs += ms
      for (const timer of [...timers].filter(({ atMs }) => atMs <= nowMs)) {
        timers.splice(timers.indexOf(timer), 1)
        timer.run()
      }
      await settled()
    },
  }
}

/** Promises that are ready have run. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

t.test('sites: five at once, the next when one ends', async (t) => {
  const { at, many, sites } = setUp()
  await many('a', 8)
  t.equal(at('a').length, 5)
  t.same(sites.figures, { underWay: 5, waiting: 3, paused: 0 })
  await at('a')[0]!.end(delivered)
  t.same(sites.figures, { underWay: 5, waiting: 2, paused: 0 })
})

t.test('sites: room is what a site may have under way and waiting [delivery.site]', async (t) => {
  const { many, sites, at, ended } = setUp()
  t.equal(sites.room('a'), 16, 'a domain that nothing is known of')
  await many('a', 8)
  t.equal(sites.room('a'), 5 + 32 - 8)
  t.equal(sites.siteOf('a'), 'a')
  await at('a')[0]!.end(busy)
  t.equal(sites.room('a'), 0, 'none while it is paused')
  t.equal(ended.length, 1 + 3, 'what waited goes back')
  t.match(ended[1]?.outcome, { result: 'returned', afterMs: MINUTE_MS })
})

t.test('sites: attempts that wait for an unreachable site share its failure [delivery.site.breaker]', async (t) => {
  const { many, at, ended, begin, pass, running } = setUp()
  await many('a', 9)
  await at('a')[0]!.end(dead)
  t.same(
    ended.map(({ outcome }) => [outcome.result, outcome.response]),
    Array.from({ length: 5 }, () => ['deferred', 'no']),
  )
  await begin('a')
  t.match(ended.at(-1)?.outcome, { result: 'returned', afterMs: 15 * MINUTE_MS }, 'who comes later is told nothing')
  for (const one of [...at('a')]) await one.end(dead)
  await pass(16 * MINUTE_MS)
  await many('a', 3)
  t.equal(running.length, 1, 'then one tries')
  await running[0]!.end(delivered)
  t.equal(running.length, 2, 'and the others follow')
})

t.test('sites: dead destinations leave room for the living [delivery.fair]', async (t) => {
  const { begin, many, at, running, sites } = setUp()
  await begin('alive')
  await at('alive')[0]!.end(delivered)
  for (let n = 0; n < 300; n += 1) await many(`dead${n}`, 3)
  t.equal(running.length, 192, 'three quarters of all places are taken by who has not answered')
  await many('alive', 10)
  t.equal(at('alive').length, 5)
  await many('new', 1)
  t.equal(at('new').length, 0, 'a new one waits')
  for (let n = 0; n < 300 && at('new').length === 0; n += 1)
    await running.find(({ site }) => site.startsWith('dead'))!.end(dead)
  t.equal(at('new').length, 1, 'until its turn comes')
  t.ok(sites.figures.underWay <= 256)
})

t.test('sites: attempts over a message rate wait, and are not dropped [delivery.site.limits]', async (t) => {
  const { begin, at, pass, ended } = setUp()
  const route = routeOf('slow', { limits: { ...SITE_LIMITS, messagesPerSecond: 1 } })
  for (let n = 0; n < 3; n += 1) await begin('slow', { route })
  t.equal(at('slow').length, 1)
  await pass(999)
  t.equal(at('slow').length, 1)
  await pass(1)
  t.equal(at('slow').length, 2)
  await pass(1000)
  t.equal(at('slow').length, 3)
  t.equal(ended.length, 0)
})

t.test('sites: without a spare connection the attempt waits and begins again', async (t) => {
  const { begin, at, pass, ended } = setUp()
  await begin('a')
  await at('a')[0]!.end({ ...makeReturned('site', 'none'), sizeBytes: 1, contact: 'none', afterMs: 700 })
  t.same([at('a').length, ended.length], [0, 0])
  await pass(700)
  t.equal(at('a').length, 1)
})

t.test('sites: the relay is not throttled, only checked for reachability', async (t) => {
  const { begin, at, sites, ended } = setUp()
  const route = routeOf('relay', { isRelay: true })
  for (let n = 0; n < 6; n += 1) await begin('relay', { route })
  await at('relay')[0]!.end(busy)
  t.equal(sites.figures.paused, 0)
  t.match(ended[0]?.outcome, { code: 421 }, 'though its answer stands')
  await at('relay')[0]!.end(dead)
  t.equal(sites.figures.paused, 1)
})

t.test('sites: waiting attempts can be cut, and all go back at the end', async (t) => {
  const { begin, ended, sites, at } = setUp()
  const controller = new AbortController()
  for (let n = 0; n < 6; n += 1) await begin('a')
  await begin('a', { signal: controller.signal })
  controller.abort()
  await settled()
  t.match(ended[0]?.outcome, { result: 'returned', phase: 'abort' })
  sites.close()
  await settled()
  t.equal(ended.length, 2)
  t.equal(sites.room('a'), 0)
  await begin('a')
  t.match(ended[2]?.outcome, { result: 'returned', phase: 'abort' })
  t.equal(at('a').length, 5, 'what is under way ends by itself')
})

t.test('sites: processes that join and end change the share [delivery.site.share]', async (t) => {
  const { many, at, share, sites } = setUp()
  share(2)
  await many('a', 8)
  t.equal(at('a').length, 2, 'half of five')
  t.match(at('a')[0], { connections: 2, limits: { connectionsPerMinute: 50, messagesPerSecond: 50 } })
  share(1)
  await at('a')[0]!.end(delivered)
  await at('a')[0]!.end(delivered)
  await many('a', 1)
  t.equal(at('a').length, 3, 'alone: a connection more after each round')
  share(3)
  t.equal(sites.room('a'), 3 + 32 - 3 - sites.figures.waiting)
  share(30)
  await at('a')[0]!.end(delivered)
  await at('a')[0]!.end(delivered)
  t.equal(at('a').length, 1, 'one at least')
})

t.test('sites: the relay has its attempts, and gets the number of processes that share its connections', async (t) => {
  const { begin, at, share } = setUp()
  share(2)
  for (let n = 0; n < 6; n += 1) await begin('relay', { route: routeOf('relay', { isRelay: true }) })
  t.equal(at('relay').length, 5)
  t.match(at('relay')[0], { sharers: 2, limits: { ...SITE_LIMITS, messagesPerSecond: 50 } }, 'a rate is divided')
})
