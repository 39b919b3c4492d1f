/** budget - what one mail may ask, how long it may wait, and that each question is asked once. */
import t from 'tap'
import type { DnsAnswer } from '../../src/dns/answer.ts'
import { DnsBudget } from '../../src/dns/budget.ts'
import type { Resolver } from '../../src/dns/resolve.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { startZone } from '../support/peers/zone.ts'

/** A resolver whose answers a test gives. */
function scripted(answer: (question: string) => Promise<DnsAnswer<unknown>>): { resolver: Resolver; asked: string[] } {
  const asked: string[] = []
  const look = (type: string, name: string): Promise<DnsAnswer<unknown>> => {
    asked.push(`${type} ${name}`)
    return answer(`${type} ${name}`)
  }
  return { resolver: { look: look as Resolver['look'], close: () => undefined }, asked }
}

const codeOf = (asking: Promise<unknown>): Promise<string> =>
  asking.then(
    () => 'ok',
    (error: NodeJS.ErrnoException) => String(error.code),
  )

t.test('budget: answers are those of node:dns', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  zone.set('a.test', { type: 'TXT', data: ['v=spf1 ', '-all'] }, { type: 'MX', exchange: 'mx.a.test', priority: 10 })
  zone.fail('broken.test', 'servfail')
  const budget = new DnsBudget(resolver, { nowMs: () => 0 })
  t.same(await budget.lookUp('a.test', 'TXT'), [['v=spf1 ', '-all']])
  t.same(await budget.lookUp('a.test', 'MX'), [{ exchange: 'mx.a.test', priority: 10 }])
  t.equal(await codeOf(budget.lookUp('a.test', 'A')), 'ENODATA')
  t.equal(await codeOf(budget.lookUp('nobody.test', 'A')), 'ENOTFOUND')
  t.equal(await codeOf(budget.lookUp('broken.test', 'A')), 'ESERVFAIL')
  t.equal(await codeOf(budget.lookUp('a.test', 'SPF')), 'ENODATA', 'a type that nobody asks for')
  t.equal(budget.asked, 5)
})

t.test('budget: 60 questions, each once', async (t) => {
  const { resolver, asked } = scripted(async () => ({ status: 'ok', records: ['192.0.2.1'] }))
  const budget = new DnsBudget(resolver, { nowMs: () => 0 })
  const codes = await Promise.all(Array.from({ length: 70 }, (_, at) => codeOf(budget.lookUp(`n${at}.test`, 'A'))))
  t.same([codes.filter((code) => code === 'ok').length, codes.at(-1)], [60, 'ETIMEOUT'])
  t.equal(await codeOf(budget.lookUp('N0.test', 'A')), 'ok', 'what is known stays known')
  t.equal(asked.length, 60)
})

t.test('budget: waiting counts, computing does not', async (t) => {
  let nowMs = 0
  const settle: (() => void)[] = []
  const { resolver, asked } = scripted(() => new Promise((resolve) => settle.push(() => resolve({ status: 'nodata' }))))
  const budget = new DnsBudget(resolver, { nowMs: () => nowMs, waitMsMax: 10_000 })
  const both = [budget.lookUp('one.test', 'A'), budget.lookUp('two.test', 'A')].map(codeOf)
  nowMs = 6000
  for (const done of settle.splice(0)) done()
  t.same(await Promise.all(both), ['ENODATA', 'ENODATA'], 'two at once wait together')
  nowMs = 100_000
  const third = codeOf(budget.lookUp('three.test', 'A'))
  nowMs = 104_000
  for (const done of settle.splice(0)) done()
  t.equal(await third, 'ENODATA')
  t.equal(await codeOf(budget.lookUp('four.test', 'A')), 'ETIMEOUT')
  t.equal(asked.length, 3)
})

t.test('budget: a late answer counts as none', async (t) => {
  const { resolver } = scripted(() => new Promise(() => undefined))
  const budget = new DnsBudget(resolver, { nowMs: () => performance.now(), waitMsMax: 50 })
  t.equal(await codeOf(budget.lookUp('slow.test', 'A')), 'ETIMEOUT')
})

t.test('budget: the time of the whole mail bounds the wait too', async (t) => {
  let spentMs = 0
  const { resolver, asked } = scripted(async () => ({ status: 'nodata' }))
  const budget = new DnsBudget(resolver, { nowMs: () => 0, wholeMsMax: 20_000, spentMs: () => spentMs })
  t.equal(await codeOf(budget.lookUp('one.test', 'A')), 'ENODATA')
  spentMs = 19_999
  t.equal(await codeOf(budget.lookUp('two.test', 'A')), 'ENODATA')
  spentMs = 20_000
  t.equal(await codeOf(budget.lookUp('three.test', 'A')), 'ETIMEOUT')
  t.same([asked.length, budget.waitedMs], [2, 0])
})

t.test('budget: 512 KB of answers', async (t) => {
  const records = Array.from({ length: 300 }, () => ['x'.repeat(60)])
  const { resolver } = scripted(async () => ({ status: 'ok', records }))
  const budget = new DnsBudget(resolver, { nowMs: () => 0 })
  const codes = await Promise.all(Array.from({ length: 20 }, (_, at) => codeOf(budget.lookUp(`n${at}.test`, 'TXT'))))
  t.same(codes, [...Array(13).fill('ok'), ...Array(7).fill('EBADRESP')])
})
