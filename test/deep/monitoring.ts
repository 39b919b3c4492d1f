/**
 * monitoring - the contents of docs/monitoring/ fit the service's metrics: promtool tests the alerts, and each query
 * of the dashboard and of the alerts is sent to a Prometheus that scrapes a running service.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const FOLDER = join(ROOT, 'docs/monitoring')
const WAIT_MS_MAX = 60_000

interface Panel {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly description?: string
  readonly targets?: readonly { readonly expr: string }[]
}

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8')
const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined
const dashboard = JSON.parse(read('grafana.json')) as { readonly panels: readonly Panel[] }
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

/** The queries of the dashboard with the variables that Grafana inserts. */
const asked = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'sendwright'),
  })),
)
/** Names of metrics in an expression, without what Prometheus makes itself. */
const metricsIn = (text: string) => [...new Set(text.match(/\b(?:sendwright|http|process|nodejs)_[a-z0-9_]+/g))]

/** Only with a Redis Cluster; `service/cluster-life` looks at those. */
const OF_CLUSTER = /^sendwright_redis_/

t.test('monitoring: promtool accepts settings and alerts, and each alert fires as expected', async (t) => {
  if (!isThere('promtool')) return t.comment('promtool is not installed: skipped')
  for (const args of [
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: FOLDER, encoding: 'utf8' })
    t.equal(status, 0, `${args.join(' ')}\n${stdout}${stderr}`)
  }
  const names = [...read('alerts.yml').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
  t.ok(names.length >= 15)
  for (const name of names) {
    t.ok(read('alerts.test.yml').split(name).length > 2, `${name} is tried where it fires, and where it does not`)
    t.ok(readFileSync(join(ROOT, 'docs/operate/monitoring.md'), 'utf8').includes(`\`${name}\``), `${name} is told`)
  }
})

t.test('monitoring: every panel has a description and its own number', async (t) => {
  t.ok(panels.length > 20)
  t.same([...new Set(dashboard.panels.map(({ id }) => id))].length, dashboard.panels.length)
  for (const { title, description, targets } of panels) {
    t.match(description, /\.$/, title)
    t.ok((targets?.length ?? 0) > 0, title)
  }
})

t.test('monitoring: each queried metric is on /metrics, and Prometheus answers each query', async (t) => {
  const service = await startTestService()
  // As after a backup.
  writeFileSync(join(service.config.dataDir, 'last-backup'), '')
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-prometheus-'))
  t.teardown(async () => {
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const { testServer } = service.firstRun
  const send = (from: string) => {
    const body = { from, to: ['ann@simulator.test', 'bounce@simulator.test'], subject: 'Hello', text: 'x' }
    return service.call('POST /v1/email', { token: testServer.token, body })
  }
  t.equal((await send('shop@simulator.test')).status, 200)
  t.equal((await send('shop@elsewhere.example')).status, 422)
  const { text } = await service.operate('GET /metrics')
  const told = new Set(
    [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
    ),
  )
  const wanted = metricsIn(`${asked.map(({ expr }) => expr).join('\n')}\n${read('alerts.yml')}`)
  t.ok(wanted.length > 25)
  t.same(
    wanted.filter((name) => !OF_CLUSTER.test(name) && !told.has(name)),
    [],
    'every metric that is asked for is told',
  )
  const named = [
    ...readFileSync(join(ROOT, 'docs/operate/monitoring.md'), 'utf8').matchAll(/`((?:sendwright|http)_[a-z_]+)/g),
  ]
  const bases = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  t.same(
    named
      .map(([, name = '']) => name)
      .filter((name) => name !== 'sendwright_' && !OF_CLUSTER.test(name) && !bases.has(name)),
    [],
    'and every one that the document names',
  )
  if (!isThere('prometheus')) return t.comment('prometheus is not installed: its answers are skipped')
  const port = await freePort()
  copyFileSync(join(FOLDER, 'alerts.yml'), join(folder, 'alerts.yml'))
  const settings = read('prometheus.yml')
    .replace('127.0.0.1:8081', `127.0.0.1:${service.config.operatorPort}`)
    .replace('scrape_interval: 15s', 'scrape_interval: 250ms')
  writeFileSync(join(folder, 'prometheus.yml'), settings)
  const options = ['--config.file=prometheus.yml', '--storage.tsdb.path=tsdb', `--web.listen-address=127.0.0.1:${port}`]
  const child = spawn('prometheus', options, { cwd: folder, stdio: 'ignore' })
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await closed
  })
  const api = (path: string, expr: string) =>
    fetch(`http://127.0.0.1:${port}/api/v1/${path}${expr === '' ? '' : `?query=${encodeURIComponent(expr)}`}`, {
      headers: { connection: 'close' },
    }).then((answer) => answer.json() as Promise<{ status: string; error?: string; data: { result: unknown[] } }>)
  await until(async () => {
    const scraped = await api('query', 'count_over_time(sendwright_store_up{job="sendwright"}[1m]) >= 3').catch(
      () => null,
    )
    return scraped !== null && scraped.status === 'success' && scraped.data.result.length > 0
  }, WAIT_MS_MAX)
  for (const { title, expr } of asked) {
    const { status, error } = await api('query', expr)
    t.equal(status, 'success', `${title}: ${error ?? expr}`)
  }
  for (const title of ['Running shards', 'Store use', 'Processes', 'Requests by route', 'Commit time', 'CPU']) {
    const { expr = '' } = asked.find((one) => one.title === title) ?? {}
    t.ok((await api('query', expr)).data.result.length > 0, `${title} shows something`)
  }
  const firing = (await api('query', 'ALERTS{alertstate="firing"}')).data.result
  t.same(firing, [], 'an installation that is well is silent')
})
