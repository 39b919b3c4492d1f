/**
 * waits-cost - 200 searches that wait at once, in two processes, cost next to nothing: 2 % of a core.
 *
 * The processor time of both processes is counted, without the time that they take with nothing to do.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { startHost } from '../../support/service/host.ts'
import { startTestService } from '../../support/service/service.ts'

const SERVERS = 10
const WAITS_OF_SERVER = 10
const MEASURED_MS = 8_000
const WAIT_SECONDS = 25
const CORE_SHARE_MAX = 0.02
/** Of the kernel's ticks. */
const TICK_MS = 10

const service = await startTestService()
const { account, operatorToken } = service.firstRun
const ports = [await freePort(), await freePort()]
const settings = {
  REDIS_URL: `unix://${service.redis.socketPath}`,
  SECRET_KEY: 'a secret of the tests that is long enough',
  DATA_DIR: service.dataDir,
  ROLES: 'http',
  MX_PORT: '0',
  EDGE_RATE: '0',
  LOG_LEVEL: 'silent',
}
const hosts = await Promise.all(
  ports.map(async (port) =>
    startHost({ ...settings, HTTP_PORT: String(port), OPERATOR_PORT: String(await freePort()) }),
  ),
)
t.teardown(async () => {
  await Promise.all(hosts.map((host) => host.kill('SIGTERM')))
  await service.stop()
})

/** Milliseconds of processor time of a process and its threads, from /proc. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

async function measure(): Promise<number> {
  const total = () => hosts.reduce((sum, { pid }) => sum + cpuMs(pid), 0)
  const before = total()
  await pause(MEASURED_MS)
  return (total() - before) / MEASURED_MS
}

t.test('waits: 200 at once take at most 2 % of a core [search.wait]', async (t) => {
  if (process.platform !== 'linux') return t.pass('/proc', { skip: 'only on Linux' })
  await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    body: { serverLimit: 1_000 },
  })
  const tokens: string[] = []
  for (let n = 0; n < SERVERS; n += 1) {
    const body = { name: `Waits ${n}`, mode: 'test' }
    const made = await service.call('POST /v1/servers', { token: account.token, body })
    tokens.push(made.json.key.token)
  }
  await pause(1_000)
  const idle = await measure()
  const search = async (port: number, token: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/v1/messages/search`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tag: 'never', waitSeconds: WAIT_SECONDS }),
    })
    return { status: response.status, json: (await response.json()) as { messages?: unknown[] } }
  }
  let ended = 0
  const waits = ports.flatMap((port) =>
    tokens.flatMap((token) =>
      Array.from({ length: WAITS_OF_SERVER }, () =>
        search(port, token).finally(() => {
          ended += 1
        }),
      ),
    ),
  )
  await pause(2_000)
  const waiting = await measure()
  t.equal(ended, 0, 'all are waiting')
  const share = waiting - idle
  t.comment(`idle ${(idle * 100).toFixed(2)} %, with ${waits.length} waits ${(waiting * 100).toFixed(2)} % of a core`)
  t.ok(share <= CORE_SHARE_MAX, `${(share * 100).toFixed(2)} % of a core for ${waits.length} waits`)
  for (const { status, json } of await Promise.all(waits)) t.same([status, json.messages], [200, []])
  await until(() => ended === waits.length, 10_000)
})
