/** node22 - the archive alone, installed and run with Node.js 22, which a package of npm brings. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { freePorts } from '../support/machine/port.ts'
import { until } from '../support/machine/until.ts'

const PACKAGE = `node-linux-${process.arch}@22`
const PORTS = ['HTTP_PORT', 'OPERATOR_PORT', 'MX_PORT', 'SUBMISSION_PORT', 'SUBMISSION_TLS_PORT']
const READY_MS = 60_000

/**
 * Installs it in `dir`, starts it, sends a mail on the test server, and stops it. Throws Error where any of it fails.
 */
export async function tryNode22(archive: string, dir: string, say: (line: string) => void): Promise<void> {
  const [node, home] = [join(dir, 'node22'), join(dir, 'on-22')]
  for (const one of [node, home]) mkdirSync(one)
  const fetched = spawnSync('npm', ['pack', '--silent', PACKAGE], { cwd: node, encoding: 'utf8' })
  if (fetched.status !== 0) return say(`SKIPPED on Node.js 22: ${PACKAGE} cannot be had`)
  const env: Record<string, string> = {
    PATH: `${join(node, 'package/bin')}:${process.env.PATH}`,
    HOME: process.env.HOME ?? '/root',
    npm_config_prefer_offline: 'true',
    DATA_DIR: join(dir, 'data-22'),
    ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
  }
  const first = await freePorts(PORTS.length)
  for (const [n, name] of PORTS.entries()) env[name] = String(first + n)
  const run = (code: string): string => {
    const { status, stdout, stderr } = spawnSync('sh', ['-euc', code], { cwd: home, env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${code}: ${stdout}${stderr}`)
    return stdout
  }
  run(`tar -xzf ${join(node, fetched.stdout.trim())} -C ${node}`)
  run(`tar -xzf ${archive} --strip-components=1 && npm ci --omit=dev`)
  const version = run('node --version').trim()
  const service = spawn('./sendwright', ['start'], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = Promise.all([text(service.stdout), text(service.stderr), once(service, 'close')])
  await until(() => service.exitCode !== null || isReady(env.OPERATOR_PORT), READY_MS)
  const send = './sendwright send --from a@simulator.test --to b@simulator.test --subject S --text T --wait'
  const sent = service.exitCode === null ? run(send) : ''
  service.kill('SIGTERM')
  const [out, err, [code]] = await said
  if (!/delivered/.test(sent) || code !== 0) throw new Error(`On Node.js ${version}: ${sent}${out}${err}`)
  say(`npm ci, a start, a sent mail and a stop on Node.js ${version}`)
}

async function isReady(port: string | undefined): Promise<boolean> {
  const url = `http://127.0.0.1:${port}/readyz`
  return (await fetch(url, { headers: { connection: 'close' } }).catch(() => null))?.status === 200
}
