/**
 * cold-place - a data directory with a moved clock, in which the product runs as `sendwright start` does, with its own
 * Redis, beside a relay, a zone and a receiver of webhooks
 */

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'
import type { FirstRun } from '../../../src/service/first-start.ts'
import { type MovedClock, makeMovedClock } from '../../../test/support/machine/moved-clock.ts'
import { ROOT } from '../../../test/support/machine/root.ts'
import { until } from '../../../test/support/machine/until.ts'
import { type Receiver, startReceiver } from '../../../test/support/peers/receiver.ts'
import { startZone, type Zone } from '../../../test/support/peers/zone.ts'
import { freePort } from '../../free-port.ts'
import { type Relay, startRelay } from '../../load/relay.ts'
import { childEnvironment } from '../../load/wrk.ts'
import { endWithUs, NODE } from '../start.ts'

/** A store of millions of messages is read before the first answer. */
const READY_MS_MAX = 300_000
export const SECRET_KEY = 'a secret of the benchmark, long enough'

/** The product in its directory. */
export interface ColdPlace {
  readonly dir: string
  readonly clock: MovedClock
  readonly zone: Zone
  readonly relay: Relay
  readonly receiver: Receiver
  readonly environment: NodeJS.ProcessEnv
  /** Starts the product. Returns the seconds until it is ready. */
  start(): Promise<number>
  /** The running process. */
  pid(): number
  redisPid(): number
  redis(): Redis
  firstRun(): FirstRun
  /** A request to the public listener, or to the operator's. Throws Error unless it is answered with a 2xx. */
  call<Answer>(what: string, token: string, body?: object): Promise<Answer>
  /** SIGTERM, and the end of the process. Its Redis ends with it. */
  stop(): Promise<void>
  close(): Promise<void>
}

/** Opens a directory. Throws Error if openssl or a C compiler is missing. */
export async function openPlace(dir: string): Promise<ColdPlace> {
  mkdirSync(dir, { recursive: true })
  const [zone, relay, receiver, clock] = [
    await startZone(),
    await startRelay(),
    await startReceiver(),
    makeMovedClock(),
  ]
  if (receiver === null) throw new Error('openssl is not installed')
  writeFileSync(join(dir, '..', 'receiver.pem'), receiver.ca)
  const environment = await environmentOf({ dir, clock, zone, relay, receiver })
  const ports = { http: environment.HTTP_PORT, operator: environment.OPERATOR_PORT }
  let child: ChildProcess | null = null
  let client: Redis | null = null
  const place: ColdPlace = {
    dir,
    clock,
    zone,
    relay,
    receiver,
    environment,
    async start() {
      const startedAtMs = performance.now()
      const [program, ...args] = NODE
      const stdio: StdioOptions = ['ignore', 'ignore', 'inherit']
      const started = spawn(program, args, { cwd: ROOT, env: environment, stdio, detached: true })
      endWithUs(started)
      child = started
      await until(async () => {
        if (started.exitCode !== null) throw new Error(`The service ended with ${started.exitCode}`)
        return (await fetch(`http://127.0.0.1:${ports.operator}/readyz`).catch(() => null))?.status === 200
      }, READY_MS_MAX)
      return (performance.now() - startedAtMs) / 1000
    },
    pid: () => child?.pid as number,
    redisPid: () => Number(readFileSync(join(dir, 'redis.pid'), 'utf8')),
    redis: () => {
      client ??= new Redis({ path: join(dir, 'redis.sock') })
      return client
    },
    firstRun: () => JSON.parse(readFileSync(join(dir, 'first-run.json'), 'utf8')) as FirstRun,
    async call<Answer>(what: string, token: string, body?: object): Promise<Answer> {
      const [method = 'GET', path = '/'] = what.split(' ')
      const port = path.startsWith('/v1/operator') ? ports.operator : ports.http
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text.slice(0, 500)}`)
      return JSON.parse(text === '' ? 'null' : text) as Answer
    },
    async stop() {
      client?.disconnect()
      client = null
      if (child === null || child.exitCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
      child = null
    },
    async close() {
      await place.stop()
      await Promise.all([relay.close(), zone.close(), receiver.close()])
    },
  }
  return place
}

/** The settings of the product. */
async function environmentOf({
  dir,
  clock,
  zone,
  relay,
  receiver,
}: Pick<ColdPlace, 'dir' | 'clock' | 'zone' | 'relay' | 'receiver'>) {
  const bin = join(dir, '..', 'bin')
  await clock.around(async () => writeRedis(bin))
  return {
    ...childEnvironment(),
    DATA_DIR: dir,
    PATH: [bin, process.env.PATH].join(delimiter),
    SECRET_KEY,
    HTTP_PORT: String(await freePort()),
    OPERATOR_PORT: String(await freePort()),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    EDGE_RATE: '0',
    LOG_LEVEL: 'warn',
    REDIS_MAXMEMORY: '1500mb',
    CONTENT_STORE: 'file',
    DNS_SERVERS: zone.server,
    RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
    WEBHOOK_PORTS: String(receiver.port),
    NODE_EXTRA_CA_CERTS: join(dir, '..', 'receiver.pem'),
  }
}

/** Redis alone gets the clock: the product asks it for the time, and Node.js would take ours for the machine's. */
function writeRedis(bin: string): void {
  const { LD_PRELOAD, MOVED_CLOCK_FILE, PATH } = process.env
  mkdirSync(bin, { recursive: true })
  const moved = `LD_PRELOAD='${LD_PRELOAD}' MOVED_CLOCK_FILE='${MOVED_CLOCK_FILE}'`
  writeFileSync(join(bin, 'redis-server'), `#!/bin/sh\nPATH='${PATH}' ${moved} exec redis-server "$@"\n`, {
    mode: 0o755,
  })
}

/** Whether a directory was filled. */
export function isFilled(dir: string): boolean {
  return existsSync(join(dir, 'filled.json'))
}
