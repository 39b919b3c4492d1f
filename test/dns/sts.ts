/** sts - policies over real DNS and HTTPS: when they are looked up, which are kept, and invalid ones. */

import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { createStsPolicies } from '../../src/dns/sts.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'
import { startZone } from '../support/peers/zone.ts'

const HOUR_MS = 3_600_000
const DOMAINS = ['wide.test', 'a.test', 'moved.test', 'large.test', 'far.test', 'two.test', 'broken.test']
const trusted = makeSelfSigned(
  2,
  DOMAINS.map((domain) => `mta-sts.${domain}`),
)
if (trusted === null) {
  t.pass('sts', { skip: 'no openssl' })
  process.exit(0)
}

const fileOf = (mode: string, age = 86_400) => `version: STSv1\r\nmode: ${mode}\r\nmx: mx.a.test\r\nmax_age: ${age}\r\n`
const files = new Map<string, string>()
const fetched: string[] = []
const hosts = createServer({ ...trusted }, ({ headers: { host = '' }, url }, response) => {
  fetched.push(`${host}${url}`)
  if (host === 'mta-sts.moved.test') response.writeHead(301, { location: 'https://mta-sts.a.test/' }).end()
  else response.writeHead(files.has(host) ? 200 : 404).end(files.get(host))
})
await new Promise<void>((resolve) => hosts.listen(0, '127.0.0.1', resolve))
const zone = await startZone()
t.teardown(async () => {
  await zone.close()
  await new Promise((resolve) => hosts.close(resolve))
})

/** Policies with a clock that the test turns and a store that it sees. */
function open(privateNetworksAllowed = ['127.0.0.0/8']) {
  const world = { nowMs: 1_000_000, stored: new Map<string, string>(), isAway: false }
  const policies = createStsPolicies({
    resolver: createResolver({ servers: [zone.server], nowMs: () => world.nowMs }),
    nowMs: () => world.nowMs,
    privateNetworksAllowed,
    port: (hosts.address() as AddressInfo).port,
    ca: trusted?.cert ?? '',
    store: {
      read: async (domain) => (world.isAway ? Promise.reject(new Error('away')) : (world.stored.get(domain) ?? null)),
      write: async (domain, text) => void world.stored.set(domain, text),
    },
  })
  return { world, find: policies.find }
}

function publish(domain: string, file: string, id = '1'): void {
  files.set(`mta-sts.${domain}`, file)
  zone.set(`_mta-sts.${domain}`, { type: 'TXT', data: `v=STSv1; id=${id}` })
  zone.set(`mta-sts.${domain}`, { type: 'A', address: '127.0.0.1' })
}

t.test(
  'sts: fetched once, kept, looked at again after an hour, replaced under another id [delivery.sts]',
  async (t) => {
    publish('a.test', fileOf('enforce'))
    const { world, find } = open()
    const both = await Promise.all([find('a.test'), find('a.test')])
    for (const policy of both) t.match(policy, { id: '1', mode: 'enforce', mx: ['mx.a.test'] })
    t.same(fetched, ['mta-sts.a.test/.well-known/mta-sts.txt'], 'who asks at once asks together')
    world.nowMs += HOUR_MS + 1
    await find('a.test')
    t.equal(fetched.length, 1, 'the id is the same')
    publish('a.test', fileOf('testing'), '2')
    t.match(await find('a.test'), { mode: 'enforce' }, 'not before the next hour')
    world.nowMs += HOUR_MS + 1
    t.match(await find('a.test'), { id: '2', mode: 'testing' })
    t.match(JSON.parse(world.stored.get('a.test') ?? ''), { id: '2' })
    zone.fail('_mta-sts.a.test', 'servfail')
    files.delete('mta-sts.a.test')
    world.nowMs += HOUR_MS + 1
    t.match(await find('a.test'), { id: '2' }, 'valid, whatever DNS says')
    world.nowMs += 24 * HOUR_MS
    t.equal(await find('a.test'), null, 'until it ends')
  },
)

t.test('sts: stored policies outlive the process; an unreachable store has none', async (t) => {
  publish('two.test', fileOf('enforce'))
  const { world, find } = open()
  await find('two.test')
  const before = fetched.length
  const next = open()
  next.world.stored = world.stored
  t.match(await next.find('two.test'), { id: '1' })
  t.equal(fetched.length, before)
  const lost = open()
  lost.world.isAway = true
  t.match(await lost.find('two.test'), { id: '1' })
  t.equal(fetched.length, before + 1)
})

t.test('sts: no record, several, a redirect, too much, a private host, no policy in it: none', async (t) => {
  const { find } = open()
  t.equal(await find('none.test'), null)
  publish('moved.test', '')
  publish('large.test', fileOf('enforce') + 'x: y\r\n'.repeat(20_000))
  publish('broken.test', 'version: STSv1\r\nmode: sometimes\r\n')
  for (const domain of ['moved.test', 'large.test', 'broken.test']) t.equal(await find(domain), null, domain)
  const record = { type: 'TXT', data: 'v=STSv1; id=1' } as const
  publish('two.test', fileOf('enforce'))
  zone.set('_mta-sts.two.test', record, { ...record, data: 'v=STSv1; id=2' })
  t.equal(await find('two.test'), null, 'several records are as good as none')
  publish('far.test', fileOf('enforce'))
  const before = fetched.length
  t.equal(await open([]).find('far.test'), null)
  t.equal(fetched.length, before, 'a private address is not connected to')
})

t.test('sts: a policy above 4 KB is not kept in memory, and still holds', async (t) => {
  const names = Array.from({ length: 90 }, (_, n) => `mx: mx${n}.${'x'.repeat(60)}.test\r\n`).join('')
  publish('wide.test', `version: STSv1\r\nmode: enforce\r\n${names}max_age: 86400\r\n`)
  const { world, find } = open()
  t.match(await find('wide.test'), { mode: 'enforce' })
  const before = fetched.length
  let reads = 0
  const { get } = world.stored
  world.stored.get = (domain) => {
    reads += 1
    return get.call(world.stored, domain)
  }
  const policy = await find('wide.test')
  t.equal(policy?.mx.length, 90)
  t.same([fetched.length - before, reads], [0, 1], 'it comes from the store')
})
