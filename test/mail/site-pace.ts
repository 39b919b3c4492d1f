/** site-pace - what answers, throttlings and silence make of a site's pace; the clock is a number. */

import t from 'tap'
import { makeRefused, makeUnasked } from '../../src/mail/classify.ts'
import { makeDeferred, makeDelivered, type Outcome } from '../../src/mail/outcome.ts'
import { computeShare, SITE_LIMITS, type SiteLimits } from '../../src/mail/site.ts'
import {
  begun,
  type Contact,
  computePlaces,
  ended,
  isThrottling,
  makeSitePace,
  type SitePace,
  waitingMax,
  waitMs,
} from '../../src/mail/site-pace.ts'

const MINUTE_MS = 60_000
const delivered = makeDelivered(250, '250 2.0.0 ok')
const busy = makeRefused({ phase: 'rcpt', response: '421 4.7.0 busy' })
const refused = makeDeferred('conn', 'NoAnswerFromHost', 'connect ECONNREFUSED')
const lost = makeDeferred('rcpt', 'BadConnection', 'timeout at rcpt')

function after(pace: SitePace, outcome: Outcome, { contact = 'answered' as Contact, nowMs = 0, unit = 0.5 } = {}) {
  return ended(pace, SITE_LIMITS, { outcome, contact, nowMs, unit })
}

function times(pace: SitePace, count: number, outcome: Outcome): SitePace {
  return Array.from({ length: count }).reduce<SitePace>((one) => after(one, outcome), pace)
}

t.test('site-pace: five connections grow by one a round to ten, and halve [delivery.site.growth]', async (t) => {
  let pace = makeSitePace(SITE_LIMITS)
  t.equal(computePlaces(pace, SITE_LIMITS, false), 5)
  pace = times(pace, 4, delivered)
  t.equal(computePlaces(pace, SITE_LIMITS, false), 5)
  pace = after(pace, delivered)
  t.equal(computePlaces(pace, SITE_LIMITS, false), 6)
  pace = times(pace, 1000, delivered)
  t.equal(computePlaces(pace, SITE_LIMITS, false), 10)
  const less = after(pace, makeRefused({ phase: 'dot', response: '451 4.7.1 please slow down' }))
  t.equal(computePlaces(less, SITE_LIMITS, false), 5, '4.7.x halves')
  t.equal(waitMs(less, SITE_LIMITS, 0), 0, 'and does not pause')
  t.equal(computePlaces(after(pace, lost), SITE_LIMITS, false), 5, 'a transaction that was lost halves')
  t.equal(computePlaces(times(pace, 9, lost), SITE_LIMITS, false), 1, 'and one is left')
  t.equal(
    computePlaces(after(pace, makeUnasked('too-large')), SITE_LIMITS, false),
    10,
    'our own word about a SIZE asks for no less',
  )
  const bounced = makeRefused({ phase: 'rcpt', response: '550 5.1.1 no such user' })
  t.equal(computePlaces(after(pace, bounced), SITE_LIMITS, false), 10, 'a bounce is an answer like others')
})

t.test('site-pace: one place for a site that has not answered while places are few [delivery.fair]', async (t) => {
  const pace = makeSitePace(SITE_LIMITS)
  t.equal(computePlaces(pace, SITE_LIMITS, true), 1)
  t.equal(computePlaces(after(pace, delivered), SITE_LIMITS, true), 5)
  t.equal(computePlaces(after(after(pace, delivered), refused, { contact: 'refused' }), SITE_LIMITS, true), 1)
})

t.test(
  'site-pace: a throttled site is paused, longer each time, then served slowly [delivery.site.throttle]',
  async (t) => {
    let pace = after(times(makeSitePace(SITE_LIMITS), 100, delivered), busy)
    t.equal(waitMs(pace, SITE_LIMITS, 0), MINUTE_MS)
    t.equal(
      waitMs(after(pace, busy, { nowMs: 10 }), SITE_LIMITS, 10),
      MINUTE_MS - 10,
      'what was under way does not double it',
    )
    t.equal(computePlaces(pace, SITE_LIMITS, false), 1)
    pace = begun(pace, SITE_LIMITS, MINUTE_MS)
    t.equal(waitMs(pace, SITE_LIMITS, MINUTE_MS), 1000, 'one message a second')
    const lengths: number[] = []
    for (let nowMs = MINUTE_MS, n = 0; n < 7; n += 1) {
      pace = after(pace, busy, { nowMs })
      lengths.push(waitMs(pace, SITE_LIMITS, nowMs) / MINUTE_MS)
      nowMs = pace.pausedUntilMs
    }
    t.same(lengths, [2, 4, 8, 16, 30, 30, 30])
    const nowMs = pace.pausedUntilMs
    const calm = times(pace, 20, delivered)
    t.notOk(calm.isThrottled, 'twenty answers end it')
    t.equal(after(calm, busy, { nowMs }).pausedUntilMs - nowMs, MINUTE_MS, 'and its memory')
    t.ok(times(pace, 19, delivered).isThrottled)
  },
)

t.test('site-pace: an unreachable site is paused, a silent one longer [delivery.site.breaker]', async (t) => {
  const pace = makeSitePace(SITE_LIMITS)
  t.equal(after(pace, refused, { contact: 'refused' }).pausedUntilMs, 2 * MINUTE_MS)
  t.equal(after(pace, refused, { contact: 'silent' }).pausedUntilMs, 15 * MINUTE_MS)
  t.equal(after(pace, refused, { contact: 'silent', unit: 0 }).pausedUntilMs, 13.5 * MINUTE_MS)
  t.equal(after(pace, refused, { contact: 'silent', unit: 1 }).pausedUntilMs, 16.5 * MINUTE_MS)
  const dead = after(pace, refused, { contact: 'refused' })
  t.equal(computePlaces(dead, SITE_LIMITS, false), 1, 'one tries for all')
  const alive = after(dead, delivered, { nowMs: 3 * MINUTE_MS })
  t.same([computePlaces(alive, SITE_LIMITS, false), alive.failures], [5, 0])
  t.equal(after(pace, refused, { contact: 'none' }), pace, 'what was not tried says nothing')
})

t.test('site-pace: ever more of a dead queue is looked at, up to a bound', async (t) => {
  let pace = makeSitePace(SITE_LIMITS)
  t.equal(waitingMax(pace), 32)
  const sizes = Array.from({ length: 9 }, () => {
    pace = after(pace, refused, { contact: 'refused' })
    return waitingMax(pace)
  })
  t.same(sizes, [8, 16, 32, 64, 128, 256, 512, 512, 512])
})

t.test('site-pace: a hundred messages a second, a fifth of a second at once [delivery.site.limits]', async (t) => {
  let pace = times(makeSitePace(SITE_LIMITS), 1, delivered)
  let sent = 0
  for (let nowMs = 5000; nowMs < 8000; nowMs += 1) {
    while (waitMs(pace, SITE_LIMITS, nowMs) === 0) {
      pace = begun(pace, SITE_LIMITS, nowMs)
      sent += 1
      if (nowMs === 5000) t.ok(sent <= 20, 'a burst of twenty')
    }
  }
  t.ok(sent >= 300 && sent <= 320, `${sent} in three seconds`)
})

const REPLIES: [response: string, isThrottling: boolean][] = [
  ['421 4.3.2 shutting down', true],
  ['450 4.2.1 The user is receiving mail at a rate that prevents delivery', true],
  ['451 4.7.650 The mail server has been temporarily rate limited', true],
  ['452 too many messages', true],
  ['451 Throttled', true],
  ['451 4.7.1 Unexpected volume', true],
  ['451 TSS04 Messages temporarily deferred', true],
  ['450 4.7.28 unusual', true],
  ['451 4.7.1 greylisted, try again in 300 seconds', false],
  ['450 4.2.0 moderate delay', false],
  ['550 5.7.1 too many messages', false],
]
for (const [response, is] of REPLIES)
  t.test(`site-pace: ${response} [delivery.site.throttle]`, async (t) =>
    t.equal(isThrottling({ code: Number(response.slice(0, 3)), response }), is),
  )

for (const sharers of [1, 2, 3])
  t.test(`site-pace: ${sharers} together have one site's rate and places [delivery.site.share]`, async (t) => {
    const share = computeShare(SITE_LIMITS, sharers)
    let pace = makeSitePace(share)
    for (let n = 0; n < 1000; n += 1)
      pace = ended(pace, share, { outcome: delivered, contact: 'answered', nowMs: 0, unit: 0.5 })
    t.equal(computePlaces(pace, share, false), Math.floor(10 / sharers))
    const sentIn = (ms: number, limits: SiteLimits, first: SitePace) => {
      let sent = 0
      for (let one = first, nowMs = 0; nowMs < ms; nowMs += 1)
        for (; waitMs(one, limits, nowMs) === 0; sent += 1) one = begun(one, limits, nowMs)
      return sent
    }
    const sent = sentIn(6000, share, pace) * sharers
    t.ok(sent >= 595 && sent <= 625, `${sent} in six seconds`)
    const slow = sentIn(6000, share, { ...pace, isThrottled: true }) * sharers
    t.equal(slow, 6, 'throttled: six in six seconds')
    const alone = after(pace, delivered)
    t.equal(
      computePlaces({ ...alone, window: 10 }, share, false),
      Math.floor(10 / sharers),
      'a window of before is cut',
    )
  })
