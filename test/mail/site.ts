/** site - names and limits of receiving sites, and the operator's file. */

import t from 'tap'
import {
  computeShare,
  parseSiteLimits,
  SITE_LIMITS,
  type SiteLimitTable,
  siteLimits,
  siteName,
} from '../../src/mail/site.ts'

const NONE: SiteLimitTable = new Map()

t.test('site: the same hosts are one site, in any order [delivery.site]', async (t) => {
  t.equal(siteName(['mx2.a.test', 'mx1.a.test']), 'mx1.a.test,mx2.a.test')
  t.equal(siteName(['mx1.a.test', 'mx2.a.test', 'mx1.a.test']), siteName(['mx2.a.test', 'mx1.a.test']))
  const many = Array.from({ length: 32 }, (_, n) => `mx${n}.${'x'.repeat(60)}.a.test`)
  t.equal(siteName(many).length, 515, 'thousands are kept')
  t.equal(siteName(many), siteName([...many].reverse()))
})

const PROVIDERS: [host: string, limits: object][] = [
  ['mx.a.test', SITE_LIMITS],
  ['aspmx.l.google.com', { connections: 5, connectionsStart: 5, messagesPerConnection: 50 }],
  ['acme-com.mail.protection.outlook.com', { connections: 5, messagesPerConnection: 50, messagesPerSecond: 100 }],
  ['mta7.am0.yahoodns.net', { connections: 10, messagesPerConnection: 20 }],
  ['mx01.mail.icloud.com', { connections: 10, messagesPerConnection: 5 }],
  ['smtp-in.orange.fr', { connections: 2, connectionsStart: 2, messagesPerConnection: 100 }],
  ['google.com.evil.test', SITE_LIMITS],
  ['notgoogle.com', SITE_LIMITS],
]
for (const [host, limits] of PROVIDERS)
  t.test(`site: limits of ${host} [delivery.site.limits]`, async (t) => t.match(siteLimits([host], NONE), limits))

t.test("site: the operator's entries go before ours, the closest one counts", async (t) => {
  const table = parseSiteLimits(
    '{"default": {"messagesPerSecond": 7}, "google.com": {"connections": 3}, "Mx.A.Test.": {"connections": 40}, "a.test": {"connections": 2}}',
  )
  if (typeof table === 'string') throw new Error(table)
  t.match(siteLimits(['mx.b.test'], table), { messagesPerSecond: 7, connections: 10 })
  t.match(siteLimits(['aspmx.l.google.com'], table), { connections: 3, connectionsStart: 3, messagesPerConnection: 50 })
  t.match(siteLimits(['mx.a.test'], table), { connections: 40, connectionsStart: 5, messagesPerSecond: 7 })
  t.match(siteLimits(['mx9.a.test'], table), { connections: 2 })
})

const WRONG: [text: string, sentence: RegExp][] = [
  ['', /JSON object/],
  ['[]', /JSON object/],
  ['null', /JSON object/],
  ['{"a.test": 5}', /object of limits for a\.test/],
  ['{"a.test": {"speed": 5}}', /no limit called speed \(a\.test\)/],
  ['{"a.test": {"connections": 0}}', /connections of a\.test from 1 to 256/],
  ['{"a.test": {"connections": "5"}}', /connections of a\.test/],
  ['{"a.test": {"messagesPerSecond": 1.5}}', /messagesPerSecond of a\.test/],
]
for (const [text, sentence] of WRONG)
  t.test(`site: the file ${text}`, async (t) => t.match(parseSiteLimits(text), sentence))

t.test('site: the share of one of several processes [delivery.site.share]', async (t) => {
  const limits = { ...SITE_LIMITS, connectionsStart: 5, connections: 10, connectionsPerMinute: 100 }
  t.same(computeShare(limits, 1), limits)
  t.same(computeShare(limits, 2), {
    connectionsStart: 2,
    connections: 5,
    messagesPerSecond: 50,
    messagesPerConnection: 100,
    connectionsPerMinute: 50,
    throttledPerSecond: 0.5,
  })
  for (const sharers of [1, 2, 3, 4, 7, 10]) {
    const share = computeShare(limits, sharers)
    t.ok(share.connections * sharers <= 10 && share.connectionsPerMinute * sharers <= 100, `${sharers}`)
    t.ok(Math.abs(share.messagesPerSecond * sharers - 100) < 1e-9)
  }
  t.match(computeShare(limits, 30), { connectionsStart: 1, connections: 1, connectionsPerMinute: 3 }, 'one at least')
})
