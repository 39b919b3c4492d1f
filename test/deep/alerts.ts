/**
 * alerts - every alert of docs/monitoring/alerts.yml fires in a real Prometheus: an installation where everything is
 * wrong, with the history of a week, is scraped by the settings that are shipped.
 *
 * Only the time for which a condition has to hold is shorter, a second in place of minutes. promtool tries that time,
 * and that each alert is silent where all is well (`deep/monitoring`).
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'

const FOLDER = join(ROOT, 'docs/monitoring')
const WAIT_MS_MAX = 120_000
const HOUR = 60
const DAY = 24 * HOUR
const WEEK = 7 * DAY

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8')
const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined

/** The value of a metric so many minutes ago; null: there was none. */
type Past = (ago: number) => number | null
const always =
  (value: number): Past =>
  () =>
    value
/** Counts per minute from so many minutes ago on. */
const since =
  (from: number, perMinute: number): Past =>
  (ago) =>
    ago > from ? null : (from - ago) * perMinute

/** An installation where everything is wrong. */
const SERIES: Readonly<Record<string, Past>> = {
  'sendwright_store_sound{instance="a"}': always(0),
  'sendwright_store_up{instance="a"}': always(1),
  'sendwright_store_lost_commits_total{instance="a"}': (ago) => (ago > 30 ? 0 : 2),
  'sendwright_shards_running{instance="a"}': always(200),
  'sendwright_installation_shards{instance="a"}': always(256),
  'sendwright_shards_halted{instance="a"}': always(1),
  'sendwright_store_fill_ratio{instance="a"}': always(0.9),
  'sendwright_sends_not_taken_total{why="memory"}': since(HOUR, 5),
  'sendwright_commit_seconds_bucket{instance="a",le="0.5"}': always(10),
  'sendwright_commit_seconds_bucket{instance="a",le="2"}': since(HOUR, 60),
  'sendwright_commit_seconds_bucket{instance="a",le="+Inf"}': since(HOUR, 60),
  'sendwright_queue_recipients{site="gmail.com",age="24h",instance="a"}': always(9),
  'sendwright_attempts_total{result="bounced",class="InvalidRecipient"}': since(2 * HOUR, 10),
  'sendwright_attempts_total{result="delivered",class=""}': since(2 * HOUR, 10),
  'sendwright_site_attempts_total{site="new.example",result="deferred",class="ThrottledSender"}': since(50, 5),
  'sendwright_site_attempts_total{site="new.example",result="bounced",class="SpamContent"}': since(50, 5),
  // Nothing was delivered in the last two hours.
  'sendwright_site_attempts_total{site="google",result="delivered",class=""}': (ago) =>
    Math.max(0, DAY - Math.max(ago, 2 * HOUR)) * 2,
  'sendwright_received_total{kind="complaint",instance="a"}': since(DAY, 1),
  'sendwright_received_total{kind="inbound_put_off",instance="a"}': since(HOUR, 1),
  'sendwright_received_total{kind="unreadable",instance="a"}': since(10, 1),
  'sendwright_accepted_recipients_total{instance="a"}': (ago) => (ago > DAY ? (2 * WEEK - ago) * 10 : WEEK * 10),
  'sendwright_webhook_oldest_seconds{class="healthy",instance="a"}': always(900),
  'sendwright_backup_age_seconds{job="sendwright",instance="a"}': always(200_000),
  'sendwright_disk_free_ratio{instance="a"}': always(0.1),
  'sendwright_account_attempts{account="acme",result="delivered",instance="a"}': always(500),
  'sendwright_account_attempts{account="acme",result="bounced",instance="a"}': always(500),
  'sendwright_doctor_findings{name="disk",status="failed",instance="a"}': always(1),
  'sendwright_certificate_expires_seconds{instance="a"}': always(86_400),
  'sendwright_blocklist_listed{list="bl.example",instance="a"}': always(1),
  'sendwright_domains_undecided{instance="a"}': always(1),
  'sendwright_sealed_reads_total{result="broken",instance="a"}': since(30, 1),
  'sendwright_sealed_acts_total{act="seal",result="away",instance="a"}': since(HOUR, 1),
  'http_requests_total{job="sendwright",route="/v1/email",status="200"}': since(HOUR, 100),
  'http_requests_total{job="sendwright",route="/v1/email",status="503"}': since(HOUR, 100),
  'sendwright_redis_up{redis="m1:7001",instance="a"}': always(0),
  'sendwright_redis_replicas{redis="m1:7001",instance="a"}': always(0),
  'sendwright_redis_replicas_wanted{redis="m1:7001",instance="a"}': always(1),
  'sendwright_redis_clock_offset_seconds{redis="m1:7001",instance="a"}': always(3),
  'sendwright_redis_clock_offset_seconds{redis="m2:7001",instance="a"}': always(-3),
}

/** Minutes ago at which the history has samples, the oldest first. */
const AGES = [...steps(WEEK + 80, WEEK - 20, 5), ...steps(DAY + 2 * HOUR, 2 * HOUR + 10, 10), ...steps(2 * HOUR, 1, 1)]

function steps(from: number, to: number, by: number): number[] {
  return Array.from({ length: Math.floor((from - to) / by) + 1 }, (_, at) => from - at * by)
}

/** Metrics as a job of the shipped settings has them, labels included. */
const named = (series: string) => (series.includes('job=') ? series : series.replace('{', '{job="sendwright",'))

/** The history in the form of OpenMetrics: families one after the other, each in the order of time. */
function history(nowMs: number): string {
  const lines = Object.entries(SERIES).flatMap(([series, past]) =>
    AGES.flatMap((ago) => {
      const value = past(ago)
      return value === null ? [] : [`${named(series)} ${value} ${((nowMs - ago * 60_000) / 1000).toFixed(3)}`]
    }),
  )
  return `${lines.join('\n')}\n# EOF\n`
}

t.test('alerts: each one fires in a real Prometheus', async (t) => {
  if (!isThere('prometheus') || !isThere('promtool'))
    return t.pass('prometheus is not installed: skipped', { skip: true })
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-alerts-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const beganMs = Date.now()
  writeFileSync(join(folder, 'history'), history(beganMs))
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', 'history', 'tsdb'], {
    cwd: folder,
    stdio: 'ignore',
  })
  const exporter = createServer((_request, response) => {
    const ago = (beganMs - Date.now()) / 60_000
    const lines = Object.entries(SERIES).map(([series, past]) => `${named(series)} ${past(ago) ?? 0}`)
    response.setHeader('content-type', 'text/plain; version=0.0.4')
    response.end(`${lines.join('\n')}\n`)
  })
  exporter.listen(0, '127.0.0.1')
  await once(exporter, 'listening')
  const { port: up } = exporter.address() as AddressInfo
  const [down, port] = [await freePort(), await freePort()]
  const settings = read('prometheus.yml')
    .replace('"127.0.0.1:8081"', `"127.0.0.1:${up}", "127.0.0.1:${down}"`)
    .replaceAll('_interval: 15s', '_interval: 1s')
    .replace(/^( *)- job_name: .*$/m, '$&\n$1  honor_labels: true')
  writeFileSync(join(folder, 'prometheus.yml'), settings)
  const rules = read('alerts.yml')
  writeFileSync(join(folder, 'alerts.yml'), rules.replace(/^( *for: ).*$/gm, '$11s'))
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name).sort()
  const options = ['--config.file=prometheus.yml', '--storage.tsdb.path=tsdb', `--web.listen-address=127.0.0.1:${port}`]
  const child = spawn('prometheus', options, { cwd: folder, stdio: 'ignore' })
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGKILL')
    exporter.closeAllConnections()
    exporter.close()
    await closed
  })
  const firing = async (): Promise<string[]> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`, { headers: { connection: 'close' } }).catch(
      () => null,
    )
    if (answer === null || !answer.ok) return []
    const { data } = (await answer.json()) as { data: { alerts: { state: string; labels: { alertname: string } }[] } }
    return [...new Set(data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname))]
  }
  t.ok(names.length >= 31, `${names.length} alerts`)
  await until(async () => (await firing()).length >= names.length, WAIT_MS_MAX).catch(() => undefined)
  t.same((await firing()).sort(), names, 'all of them fire')
})
