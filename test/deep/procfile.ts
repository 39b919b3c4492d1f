/** `npm run cluster`: the Procfile's processes side by side. A killed one is restarted, and all end in order. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import type { FirstRun } from '../../src/service/first-start.ts'
import { freePort, freePorts } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'

const MS_MAX = 30_000

t.test('cluster: runs http and actors, starts again what was killed, ends Redis last', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-procfile-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const [redisPort, httpPort, operatorPort] = [await freePort(), await freePort(), await freePort()]
  const mxPort = await freePort()
  // Redis, http, two of actors, mx and submission, in this order.
  const firstPort = await freePorts(6)
  const [submissionPort, submissionTlsPort] = [await freePort(), await freePort()]
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    DATA_DIR: dataDir,
    REDIS_PORT: String(redisPort),
    HTTP_PORT: String(httpPort),
    OPERATOR_PORT: String(operatorPort),
    PORT: String(firstPort),
    MX_PORT: String(mxPort),
    SUBMISSION_PORT: String(submissionPort),
    SUBMISSION_TLS_PORT: String(submissionTlsPort),
    LOG_LEVEL: 'fatal',
  }
  const args = ['-u', 'NODE_OPTIONS', process.execPath, join(ROOT, 'procfile.mjs')]
  const child = spawn('/usr/bin/env', args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  const ports = [operatorPort, firstPort + 2, firstPort + 3, firstPort + 4, firstPort + 5]
  const areReady = async (): Promise<boolean> => (await Promise.all(ports.map(isReady))).every((one) => one)
  await until(areReady, MS_MAX)
  const path = join(dataDir, 'first-run.json')
  await until(() => existsSync(path), MS_MAX)
  const { baseUrl, operatorUrl, testServer } = JSON.parse(readFileSync(path, 'utf8')) as FirstRun
  // A process with actors alone has made it: it names the listeners of the one that has them.
  t.same(
    [baseUrl, operatorUrl],
    [httpPort, operatorPort].map((port) => `http://127.0.0.1:${port}`),
  )
  const send = async (): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${httpPort}/v1/email`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${testServer.token}`,
        'content-type': 'application/json',
        connection: 'close',
      },
      body: JSON.stringify({ from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }),
    })
    return answer.status
  }
  t.equal(await send(), 200)

  const [pid] = actorsOf(child.pid as number)
  process.kill(pid as number, 'SIGKILL')
  await until(() => lines.some((line) => /^actors\.\d +ended \(SIGKILL\)/.test(line)), MS_MAX)
  // The other one has its shards. A request before it has taken them may be cut.
  await until(async () => (await send().catch(() => null)) === 200, MS_MAX)
  await until(() => actorsOf(child.pid as number).length === 2, MS_MAX)
  await until(areReady, MS_MAX)

  child.kill('SIGTERM')
  t.same(await once(child, 'exit'), [0, null])
  const ends = lines.filter((line) => line.endsWith('ended (0)')).map((line) => line.split(/[ .]/)[0])
  t.same(ends.toSorted(), ['actors', 'actors', 'http', 'mx', 'redis', 'submission'])
  t.equal(ends.at(-1), 'redis')
})

t.test('cluster: a name that the Procfile does not have, and two processes with one port, are refused', async (t) => {
  for (const wrong of ['web=1', 'http=2', 'actors=33']) {
    const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', process.execPath, join(ROOT, 'procfile.mjs'), wrong])
    t.same(await once(child, 'exit'), [2, null], wrong)
  }
})

async function isReady(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } }).catch(() => null)
  return answer?.status === 200
}

/** Processes with actors below a process, from /proc. Each is the only child of its shell, which it has replaced. */
function actorsOf(parent: number): number[] {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').map(Number)
  return children.filter((pid) => /(^|\0)ROLES=actors\0/.test(readFileSync(`/proc/${pid}/environ`, 'latin1')))
}
