/**
 * swift - OpenStack Swift with its S3 interface, of the test's own: four processes, rings and disks in one directory
 *
 * A server written by others than us: it checks signatures, hashes and lengths as S3 does. Nothing of an installed
 * Swift is touched but its swift.conf, which it reads from /etc/swift and nowhere else.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import { freePort } from '../machine/port.ts'
import { until } from '../machine/until.ts'

const PARTS = ['account', 'container', 'object'] as const
/** Runs each command of a list as `swift-ring-builder` does, in one process: it takes half a second to start. */
const BUILD_RINGS = `
import json, sys
from swift.cli.ringbuilder import main
for command in json.loads(sys.argv[1]):
    try:
        main(['swift-ring-builder', *command])
    except SystemExit as end:
        if end.code:
            raise
`
const PROGRAMS = [...PARTS.map((part) => `swift-${part}-server`), 'swift-proxy-server', 'swift-ring-builder']
const READY_MS_MAX = 60_000

/** False, or why a test that needs it is skipped. */
export const SWIFT_SKIP: false | string = missing()

export interface Swift {
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
  /** Makes a bucket. */
  makeBucket(name: string): Promise<void>
  stop(): void
}

function missing(): false | string {
  if (process.getuid?.() !== 0) return 'Swift is started as root only'
  for (const program of PROGRAMS) {
    try {
      accessSync(join('/usr/bin', program), constants.X_OK)
    } catch {
      return `${program} is not installed (apt-get install swift-proxy swift-account swift-container swift-object)`
    }
  }
  try {
    readFileSync('/etc/swift/swift.conf')
    return false
  } catch {
    return 'there is no /etc/swift/swift.conf'
  }
}

/** Starts it. Resolves once a signed request is answered. */
export async function startSwift(): Promise<Swift> {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-swift-'))
  const children: ChildProcess[] = []
  const stop = (): void => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  }
  process.once('exit', stop)
  const run = (program: string, conf: string): void => {
    const output = openSync(join(dir, `${program}.log`), 'a')
    // Debian's own Python: another one on the PATH does not know Swift.
    const env = { ...process.env, PATH: '/usr/bin:/bin' }
    children.push(
      spawn('/usr/bin/python3', [join('/usr/bin', program), conf, '-v'], { stdio: ['ignore', output, output], env }),
    )
    closeSync(output)
  }
  mkdirSync(join(dir, 'disks', 'd1'), { recursive: true })
  const places = []
  for (const part of PARTS) places.push({ part, port: await freePort() })
  makeRings(dir, places)
  for (const { part, port } of places) {
    writeFileSync(join(dir, `${part}.conf`), partConf(dir, part, port))
    run(`swift-${part}-server`, join(dir, `${part}.conf`))
  }
  // A part that refuses the proxy is left alone by it for a minute.
  for (const one of places) await until(() => isOpen(one.port), READY_MS_MAX)
  const port = await freePort()
  writeFileSync(join(dir, 'proxy.conf'), proxyConf(dir, port))
  run('swift-proxy-server', join(dir, 'proxy.conf'))
  const place = {
    endpoint: `http://127.0.0.1:${port}`,
    accessKeyId: 'test:tester',
    secretAccessKey: 'testing',
    region: 'us-east-1',
  }
  const client = new AwsClient({ ...place, service: 's3', retries: 0 })
  await until(() => isOpen(port), READY_MS_MAX)
  await until(async () => (await client.fetch(place.endpoint).catch(() => null))?.status === 200, READY_MS_MAX)
  return {
    ...place,
    async makeBucket(name) {
      const answer = await client.fetch(`${place.endpoint}/${name}`, { method: 'PUT' })
      if (answer.status !== 200) throw new Error(`No bucket: ${answer.status} ${await answer.text()}`)
    },
    stop() {
      process.removeListener('exit', stop)
      stop()
    },
  }
}

function makeRings(dir: string, places: readonly { readonly part: string; readonly port: number }[]): void {
  const commands = places.flatMap(({ part, port }) => {
    const builder = join(dir, `${part}.builder`)
    return [
      [builder, 'create', '4', '1', '1'],
      [builder, 'add', `r1z1-127.0.0.1:${port}/d1`, '1'],
      [builder, 'rebalance'],
    ]
  })
  execFileSync('/usr/bin/python3', ['-c', BUILD_RINGS, JSON.stringify(commands)], { stdio: 'ignore' })
}

function partConf(dir: string, part: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = root
swift_dir = ${dir}
devices = ${join(dir, 'disks')}
mount_check = false
workers = 0
log_address = ${join(dir, 'log')}
[pipeline:main]
pipeline = ${part}-server
[app:${part}-server]
use = egg:swift#${part}
`
}

/** The cache must be configured but need not exist, so its address has no listener. */
function proxyConf(dir: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = root
swift_dir = ${dir}
workers = 0
log_address = ${join(dir, 'log')}
[pipeline:main]
pipeline = catch_errors cache s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
`
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
