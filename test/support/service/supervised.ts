/**
 * supervised - the service under a supervisor that holds its listening sockets and starts it again whenever it ends, as
 * systemd does with a socket unit
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { until } from '../machine/until.ts'
import { readinessAt } from './host.ts'
import { MAIN, MAIN_ENV } from './program.ts'

const READY_MS_MAX = 60_000
/** sd_listen_fds(3): only that process itself knows the process id that the sockets are meant for. */
const LOOP = `while :; do sh -c 'LISTEN_PID=$$ exec "$@"' run "$@"; done`

export interface Supervised {
  /** Ends the process and waits until its successor is ready. Calls back when it has ended. */
  restart(onEnded?: () => Promise<void>): Promise<void>
  stop(): Promise<void>
}

/** Starts it with sockets on `ports` of the loopback. */
export async function startSupervised(
  settings: Readonly<Record<string, string>>,
  ports: readonly number[],
): Promise<Supervised> {
  const servers = await Promise.all(
    ports.map(async (port) => {
      const server = createServer().listen(port, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const fds = servers.map((server) => (server as unknown as { _handle: { fd: number } })._handle.fd)
  const env = { ...process.env, ...MAIN_ENV, ...settings, LISTEN_FDS: String(ports.length) }
  const shell = spawn('sh', ['-c', LOOP, 'supervisor', process.execPath, MAIN, 'start'], {
    env,
    stdio: ['ignore', 'ignore', 'inherit', ...fds],
    detached: true,
  })
  for (const server of servers) server.close()
  const ready = () => until(async () => (await readinessAt(Number(settings.OPERATOR_PORT))) === 200, READY_MS_MAX)
  const running = (): number => Number(readFileSync(`/proc/${shell.pid}/task/${shell.pid}/children`, 'utf8').trim())
  await ready()
  return {
    async restart(onEnded = async () => undefined) {
      const pid = running()
      process.kill(pid, 'SIGTERM')
      await until(() => running() !== pid, READY_MS_MAX)
      await onEnded()
      await ready()
    },
    async stop() {
      const pid = running()
      shell.kill('SIGKILL')
      process.kill(pid, 'SIGTERM')
      await until(() => isGone(pid), READY_MS_MAX)
    },
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
