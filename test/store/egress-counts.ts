/** egress-counts - counters of ceilings, results and rests on a real Redis, and their bounds. */
import { Redis } from 'ioredis'
import t from 'tap'
import { Units } from '../../src/outbound/egress/units.ts'
import { makeEgressCounts } from '../../src/store/egress-counts.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { startRedis } from '../support/store/redis.ts'

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
const counts = makeEgressCounts(oneNode(() => redis))
const SENT = '{s000}:egress-sent:'

t.test('egress-counts: processes together take exactly the ceiling [egress.ceiling]', async (t) => {
  const nowMs = () => Date.parse('2026-12-01T05:30:00Z')
  const processes = Array.from({ length: 4 }, () => new Units({ counts, nowMs, sharers: () => 4 }))
  let sent = 0
  await Promise.all(
    processes.map(async (units) => {
      for (let n = 0; n < 600; n += 1)
        if (!('why' in (await units.take('out', 'mx.a.test', { hour: 1_000, day: 5_000 })))) sent += 1
    }),
  )
  t.equal(sent, 1_000)
  t.equal(await redis.hget(`${SENT}2026120105`, 'out|mx.a.test'), '1000')
  await Promise.all(processes.map((units) => units.close()))
  t.equal(await redis.hget(`${SENT}20261201`, 'out|mx.a.test'), '1000', 'the rest of the day was given back')
  t.ok((await redis.ttl(`${SENT}2026120105`)) > 3_600)
  t.ok((await redis.ttl(`${SENT}20261201`)) > 86_400)
})

t.test('egress-counts: strangers fill neither the sites of a source nor the rests [egress.ceiling]', async (t) => {
  const window = '20261202'
  await redis.hset(`${SENT}${window}`, '#out', '4999', 'out|known.test', '3')
  const take = (site: string, ceiling = 10) => counts.take({ window, source: 'out', site, want: 2, ceiling })
  t.same(await take('last.test'), { granted: 2, used: 2 })
  t.same(await take('beyond.test'), { granted: 2, used: 2 })
  t.same(await take('beyond2.test'), { granted: 2, used: 4 }, 'they share a ceiling')
  t.same(await take('beyond3.test', 3), { granted: 0, used: 4 })
  t.same(await take('known.test'), { granted: 2, used: 5 })
  t.same(Object.keys(await redis.hgetall(`${SENT}${window}`)).sort(), [
    '#out',
    'out|known.test',
    'out|last.test',
    'out|other',
  ])
  await counts.give({ window, source: 'out', site: 'beyond.test', units: 9 })
  t.equal(await redis.hget(`${SENT}${window}`, 'out|other'), '0', 'no more is given back than was taken')
  const rest = { untilMs: 500, level: 1, why: 'w' }
  for (let n = 0; n < 1_000; n += 1) await counts.rest('out', `site${n}`, { ...rest, untilMs: n < 10 ? 50 : 500 }, 0)
  await counts.rest('out', 'one-more', rest, 0)
  t.equal(await redis.hlen('{s000}:egress-rests'), 1_000)
  await counts.rest('out', 'later', rest, 100)
  t.equal(await redis.hlen('{s000}:egress-rests'), 991, 'those that are over make room')
  await counts.wake(['out|later'])
  t.equal(await redis.hlen('{s000}:egress-rests'), 990)
  t.ok((await redis.ttl('{s000}:egress-rests')) > 86_400)
})

t.test('egress-counts: results of a day by source and site [egress.explain]', async (t) => {
  const row = { result: 'delivered', source: 'out', site: 'mx.a.test', attempts: 3 }
  await counts.count('20261201', [row, { ...row, result: 'bounced', attempts: 1 }])
  await counts.count('20261201', [row])
  t.same(await redis.hgetall('{s000}:egress-day:20261201'), {
    'delivered|out|mx.a.test': '6',
    'bounced|out|mx.a.test': '1',
  })
})
