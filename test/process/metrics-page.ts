/** metrics-page - a page with everything on it, read by Prometheus' own checker and held to its conventions. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { unconnectedRoute } from '../../src/mail/attempt-route.ts'
import { GAUGES, type GaugeName } from '../../src/process/gauges.ts'
import { makeMetrics } from '../../src/process/metrics.ts'

const ROUTE = { ...unconnectedRoute('mx.a.test', null, 1), tlsVersion: 'TLSv1.3', transactionMs: 5 }

/** A page on which every metric has a value. */
async function fullPage(): Promise<string> {
  const metrics = makeMetrics()
  metrics.accepted(3, 12)
  metrics.committed(2)
  metrics.lostCommits(1)
  metrics.replayed()
  metrics.refused('rate_limited')
  metrics.notTaken('disk')
  metrics.bounceMailed('delivered')
  const bounced = {
    result: 'bounced',
    classification: 'InvalidRecipient',
    route: { ...ROUTE, isVerified: true, dane: 'verified' as const },
  }
  metrics.attemptedBy('default', 'delivered')
  metrics.attempted(bounced, '01a2206e-6879-7000-8342-4937ae459cd8')
  metrics.examined([{ name: 'disk', status: 'warning' }])
  metrics.blocklists([{ list: 'bl.example', listed: 1 }])
  metrics.received('inbound')
  metrics.scheduled('accepted', 1)
  metrics.unsubscribed('view', 'ok')
  metrics.submitted('login', '235')
  metrics.parsed(null, 3)
  metrics.judged({ spf: 'pass' }, 3)
  metrics.posted('delivered')
  metrics.rawEmail('included')
  metrics.firstPosted(8)
  metrics.contentDone({ home: 'file', act: 'put', result: 'ok', ms: 2, bytes: 10, objects: 1 })
  metrics.sealedActed('seal', 'sealed', 1_500)
  metrics.sealedRead('ok')
  metrics.exports.begun()
  metrics.exports.ended('messages', 'complete', 3)
  metrics.broadcast({ released: 2, failed: 1 })
  metrics.requests.of({ method: 'GET', path: '/v1/messages/{id}' }).answered(200, 3)
  const figures = Object.fromEntries((Object.keys(GAUGES) as GaugeName[]).map((name, at) => [name, at]))
  return metrics.format(figures, {
    queue: [{ site: 'example.com', age: '5m', recipients: 4 }],
    redis: [{ name: '10.0.0.1:7001', isUp: true, share: 0.25, replicas: 2, replicasWanted: 2, clockOffMs: -3 }],
  })
}

/** Ours: those of the runtime are named by its library. */
const isOurs = (name: string) => /^(sendwright|http)_/.test(name)

t.test('metrics page: promtool finds nothing wrong', async (t) => {
  const { status, error, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: await fullPage() })
  if (error !== undefined) return t.comment('promtool is not installed: skipped')
  t.equal(`${stdout}${stderr}`, '')
  t.equal(status, 0)
})

t.test('metrics page: each metric says what it is in a sentence, once, and is named by its type', async (t) => {
  const lines = (await fullPage()).split('\n')
  const helps = lines.filter((line) => line.startsWith('# HELP ')).map((line) => line.split(' '))
  const names = helps.map(([, , name]) => name ?? '')
  t.same(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
    'none twice',
  )
  for (const [, , name = '', ...words] of helps.filter(([, , name]) => isOurs(name ?? ''))) {
    t.match(words.join(' '), /^[A-Z][a-z-]+,? .+\.$/, name)
    const type = lines.find((line) => line.startsWith(`# TYPE ${name} `))?.split(' ')[3]
    t.equal(type === 'counter', name.endsWith('_total'), `${name} is a ${type}`)
    if (type === 'histogram') t.match(name, /_seconds$/)
    t.ok(
      lines.some((line) => line.startsWith(`${name}`)),
      `${name} has a value`,
    )
  }
})

t.test('metrics page: of a Redis that is away there is nothing that it would have to say now', async (t) => {
  const away = { name: 'm1:7001', isUp: false, share: 0.25, replicas: 2, replicasWanted: 2, clockOffMs: 900 }
  const redis = [away, { ...away, name: 'm2:7001', isUp: true }]
  const page = await makeMetrics().format({ storeUp: 1 }, { queue: [], redis })
  t.match(page, /^sendwright_redis_up\{redis="m1:7001"\} 0$/m)
  t.match(page, /^sendwright_redis_clock_offset_seconds\{redis="m2:7001"\} 0.9$/m)
  t.notMatch(page, /^sendwright_redis_(?:clock_offset_seconds|replicas)\{redis="m1:7001"\}/m)
})

t.test('metrics page: a figure that is not told is not there', async (t) => {
  const page = await makeMetrics().format({ storeUp: 1 })
  t.match(page, /^sendwright_store_up 1$/m)
  t.notMatch(page, 'sendwright_shards_running')
})
