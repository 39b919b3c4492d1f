/** resolve - against a real DNS server: the four answers, the cache and its ages, bounds. */

import t from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { until } from '../support/machine/until.ts'
import { startZone } from '../support/peers/zone.ts'

t.test('resolve: answers', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  zone.set('a.test', { type: 'A', address: '192.0.2.1' }, { type: 'MX', exchange: 'mx.a.test', priority: 10 })
  zone.set('null.test', { type: 'MX', exchange: '', priority: 0 })
  zone.set('empty.test')
  zone.set('txt.test', { type: 'TXT', data: ['v=DKIM1; ', 'p=AB'] })
  zone.set(
    'long.test',
    ...Array.from({ length: 20 }, (_, n) => ({ type: 'TXT' as const, data: `${n}${'x'.repeat(200)}` })),
  )
  zone.set('alias.test', { type: 'CNAME', domain: 'a.test' })
  zone.fail('broken.test', 'servfail')
  t.same(await resolver.look('A', 'a.test'), { status: 'ok', records: ['192.0.2.1'] })
  t.same(await resolver.look('MX', 'a.test'), { status: 'ok', records: [{ exchange: 'mx.a.test', priority: 10 }] })
  t.same(await resolver.look('MX', 'null.test'), { status: 'ok', records: [{ exchange: '', priority: 0 }] })
  t.same(await resolver.look('CNAME', 'alias.test'), { status: 'ok', records: ['a.test'] })
  t.same(await resolver.look('TXT', 'txt.test'), { status: 'ok', records: [['v=DKIM1; ', 'p=AB']] })
  const long = await resolver.look('TXT', 'long.test')
  t.equal(long.status === 'ok' && long.records.length, 20, 'over TCP where the answer is too large for UDP')
  t.same(await resolver.look('MX', 'empty.test'), { status: 'nodata' })
  t.same(await resolver.look('MX', 'nobody.test'), { status: 'nxdomain' })
  t.same(await resolver.look('MX', 'broken.test'), { status: 'failure', code: 'ESERVFAIL' })
  t.same(await resolver.look('A', `${'x'.repeat(64)}.test`), { status: 'nxdomain' }, 'a name that cannot exist')
})

t.test('resolve: what is cached, and for how long', async (t) => {
  const zone = await startZone()
  let nowMs = 0
  const resolver = createResolver({ servers: [zone.server], nowMs: () => nowMs })
  t.teardown(() => zone.close())
  zone.set('a.test', { type: 'A', address: '192.0.2.1' })
  zone.fail('broken.test', 'servfail')
  const names = ['a.test', 'nobody.test', 'broken.test']
  const askAll = async () => {
    zone.asked.length = 0
    for (const name of names) await resolver.look('A', name)
    return names.filter((name) => zone.asked.includes(`A ${name}`))
  }
  t.same(await askAll(), names)
  t.same(await askAll(), [])
  nowMs = 29_999
  t.same(await askAll(), [])
  nowMs = 30_000
  t.same(await askAll(), ['broken.test'])
  nowMs = 299_999
  t.same(await askAll(), ['broken.test'])
  nowMs = 300_000
  t.same(await askAll(), ['a.test', 'nobody.test'])
  zone.asked.length = 0
  await resolver.look('A', 'A.Test')
  t.same(zone.asked, [], 'case does not matter')
  await resolver.look('A', 'a.test', { fresh: true })
  t.same(zone.asked, ['A a.test'], 'fresh asks')
})

t.test('resolve: the least recently used entry is evicted', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0, keptMax: 2 })
  t.teardown(() => zone.close())
  for (const name of ['a.test', 'b.test', 'a.test', 'c.test']) await resolver.look('A', name)
  zone.asked.length = 0
  for (const name of ['c.test', 'a.test', 'b.test']) await resolver.look('A', name)
  t.same(zone.asked, ['A b.test'])
})

t.test('resolve: equal questions in flight are asked once; a silent server is given up', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0, totalTimeoutMs: 300 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  zone.fail('silent.test', 'timeout')
  const answers = await Promise.all(Array.from({ length: 20 }, () => resolver.look('A', 'silent.test')))
  t.same(new Set(answers.map((one) => JSON.stringify(one))), new Set(['{"status":"failure","code":"ETIMEOUT"}']))
  // The zone may read its question after the time is over.
  await until(() => zone.asked.length > 0, 5000)
  t.equal(zone.asked.length, 1)
})

t.test('resolve: at most 128 in flight', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0, totalTimeoutMs: 1000 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  for (let n = 0; n < 200; n += 1) zone.fail(`n${n}.test`, 'timeout')
  const looks = Array.from({ length: 200 }, (_, n) => resolver.look('A', `n${n}.test`))
  await until(() => new Set(zone.asked).size >= 128, 5000)
  await Promise.all(looks)
  t.equal(new Set(zone.asked).size, 128)
})

t.test(
  'resolve: a large answer is returned and not cached, a huge one fails, and the cache is bounded in bytes',
  async (t) => {
    const zone = await startZone()
    const resolver = createResolver({ servers: [zone.server], nowMs: () => 0, keptBytesMax: 12_000 })
    t.teardown(async () => {
      resolver.close()
      await zone.close()
    })
    const texts = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ type: 'TXT' as const, data: `${n}`.padEnd(200, 'x') }))
    zone.set('large.test', ...texts(20))
    // Two bytes each on the wire, a separate string here.
    zone.set('huge.test', { type: 'TXT', data: Array<string>(8000).fill('x') })
    for (let n = 0; n < 8; n += 1) zone.set(`n${n}.test`, ...texts(8))
    for (let turn = 0; turn < 2; turn += 1) {
      const large = await resolver.look('TXT', 'large.test')
      t.equal(large.status === 'ok' && large.records.length, 20)
    }
    t.equal(zone.asked.filter((one) => one === 'TXT large.test').length, 4, 'asked again: over UDP, then TCP')
    t.same(await resolver.look('TXT', 'huge.test'), { status: 'failure', code: 'EBADRESP' })
    for (let n = 0; n < 8; n += 1) await resolver.look('TXT', `n${n}.test`)
    zone.asked.length = 0
    for (let n = 7; n >= 0; n -= 1) await resolver.look('TXT', `n${n}.test`)
    t.same(new Set(zone.asked), new Set([3, 2, 1, 0].map((n) => `TXT n${n}.test`)), 'four of 2.5 KB are cached')
  },
)

t.test('resolve: a name that is too long is not asked and not cached', async (t) => {
  const zone = await startZone()
  const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
  t.teardown(() => zone.close())
  t.same(await resolver.look('A', 'a.'.repeat(100_000)), { status: 'nxdomain' })
  t.same(zone.asked, [])
})
