/** versions - the archive alone, unpacked and run with another Node.js, which a package of npm brings. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fetchNode } from '../support/machine/other-node.ts'
import { freePorts } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'

const PORTS = ['HTTP_PORT', 'OPERATOR_PORT', 'MX_PORT', 'SUBMISSION_PORT', 'SUBMISSION_TLS_PORT']
const READY_MS = 60_000
/** Nobody listens here. */
const CLOSED_REGISTRY = 'http://127.0.0.1:9'

/**
 * Unpacks it in `dir` with the registry closed, starts it, sends a mail on the test server, and stops it. Throws Error
 * if any step fails.
 */
export async function tryVersion(
  major: string,
  { archive, dir, say }: { archive: string; dir: string; say: (line: string) => void },
): Promise<void> {
  const home = join(dir, `on-${major}`)
  mkdirSync(home)
  const bin = fetchNode(major, dir)
  if (bin === null) return say(`SKIPPED on Node.js ${major}: node-linux-${process.arch} cannot be fetched`)
  const env: Record<string, string> = {
    PATH: `${bin}:${process.env.PATH}`,
    HOME: process.env.HOME ?? '/root',
    npm_config_registry: CLOSED_REGISTRY,
    DATA_DIR: join(dir, `data-${major}`),
  }
  const first = await freePorts(PORTS.length)
  for (const [n, name] of PORTS.entries()) env[name] = String(first + n)
  const run = (code: string): string => {
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', code], { cwd: home, env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${code}: ${stdout}${stderr}`)
    return stdout
  }
  run(`tar -xzf ${archive} --strip-components=1`)
  const version = run('node --version').trim()
  const service = spawn('./sendwright', ['start'], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = Promise.all([text(service.stdout), text(service.stderr), once(service, 'close')])
  await until(() => service.exitCode !== null || isReady(env.OPERATOR_PORT), READY_MS)
  const send = './sendwright send --from a@simulator.test --to b@simulator.test --subject S --text T --wait'
  const sent = service.exitCode === null ? run(send) : ''
  service.kill('SIGTERM')
  const [out, err, [code]] = await said
  if (!/delivered/.test(sent) || code !== 0) throw new Error(`On Node.js ${version}: ${sent}${out}${err}`)
  const engine = /"httpEngine":"(\w+)"/.exec(out)?.[1]
  say(`a start, a sent mail and a stop on Node.js ${version}, the registry closed, HTTP engine ${engine}`)
}

async function isReady(port: string | undefined): Promise<boolean> {
  const url = `http://127.0.0.1:${port}/readyz`
  return (await fetch(url, { headers: { connection: 'close' } }).catch(() => null))?.status === 200
}
