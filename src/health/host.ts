/**
 * host - properties of the machine that matter for keeping mail: the kernel's memory settings, the disk's fsync, the
 * release of Node.js, the age of the last backup, and listeners open to the public
 *
 * Spec operator.health
 */

import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Finding } from '../../schemas/operator/health.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { Config } from '../process/config.ts'
import { backupAgeMs } from '../store/backup/ways.ts'
import { failed, warning, well } from './finding.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** A nightly backup that has missed one night. */
const BACKUP_MS_MAX = 36 * HOUR_MS
const FSYNCS = 9
/** Each commit waits for one. */
const FSYNC_MS_MAX = 20
/** The last day of support of each release line (nodejs.org, release schedule). */
const NODE_ENDS: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
  26: '2029-04-30',
}
/** Time to plan an upgrade. */
const NODE_WARNING_MS = 90 * DAY_MS

/** Kernel settings with which the fork of Redis fails or stalls. Takes the root folder of the kernel's files. */
export function examineKernel(isOwn: boolean, root = '/'): Finding {
  if (!isOwn) return well('kernel', 'The store runs elsewhere: see its own documentation for kernel settings')
  const faults: string[] = []
  const fixes: string[] = []
  if (readText(join(root, 'proc/sys/vm/overcommit_memory')) === '0') {
    faults.push('vm.overcommit_memory is 0: a backup or rewrite can fail although memory is free')
    fixes.push('sysctl -w vm.overcommit_memory=1, and the same line in /etc/sysctl.d/')
  }
  if (/\[always\]/.test(readText(join(root, 'sys/kernel/mm/transparent_hugepage/enabled')))) {
    faults.push('transparent huge pages are always on: memory grows during a backup or rewrite')
    fixes.push('echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, at each boot')
  }
  if (faults.length === 0) return well('kernel', 'The kernel settings suit Redis')
  return warning('kernel', faults.join('; '), fixes.join('; '))
}

/** The time of an fsync: the median of a few in DATA_DIR. */
export async function examineFsync(dataDir: string): Promise<Finding> {
  const path = join(dataDir, `.fsync.${process.pid}.${randomBytes(4).toString('hex')}`)
  const page = Buffer.alloc(4096)
  const times: number[] = []
  const file = openSync(path, 'wx', 0o600)
  try {
    for (let n = 0; n < FSYNCS; n += 1) {
      writeSync(file, page)
      const startedAtMs = performance.now()
      fsyncSync(file)
      times.push(performance.now() - startedAtMs)
      await nextTurn()
    }
  } finally {
    closeSync(file)
    rmSync(path, { force: true })
  }
  const median = times.sort((a, b) => a - b)[Math.floor(FSYNCS / 2)] ?? 0
  const message = `An fsync under ${dataDir} takes ${median.toFixed(1)} ms`
  const fix = `Move DATA_DIR to a faster disk: each accepted message waits for one (at most ${FSYNC_MS_MAX} ms)`
  return median > FSYNC_MS_MAX ? warning('fsync', message, fix) : well('fsync', message)
}

/** Whether this release of Node.js still gets fixes. Takes its version, such as `v22.9.0`. */
export function examineNode(version: string, nowMs: number): Finding {
  const major = Number(/^v(\d+)\./.exec(version)?.[1])
  const end = NODE_ENDS[major]
  if (end === undefined) return well('node', `Node.js ${version}`)
  const fix = 'Install a newer Node.js that docs/operate/install.md lists, and restart the service'
  const leftMs = Date.parse(end) + DAY_MS - nowMs
  if (leftMs <= 0) return warning('node', `Node.js ${version} gets no security fixes since ${end}`, fix)
  if (leftMs < NODE_WARNING_MS) return warning('node', `Node.js ${version} gets security fixes until ${end} only`, fix)
  return well('node', `Node.js ${version}, supported until ${end}`)
}

/** Whether a recent backup was recorded. */
export function examineBackup(dataDir: string, nowMs: number): Finding {
  const ageMs = backupAgeMs(dataDir, nowMs)
  const fix =
    'Run `sendwright backup` every night (docs/operate/backup.md), or touch DATA_DIR/last-backup after your own'
  if (ageMs === null) return warning('backup', 'No backup was recorded', fix)
  const hours = Math.floor(ageMs / HOUR_MS)
  return ageMs > BACKUP_MS_MAX
    ? warning('backup', `The last backup is ${hours} hours old`, fix)
    : well('backup', `The last backup is ${hours} hours old`)
}

/** Listeners that are open to the public without a proxy, and proxies that any client can claim to be. */
export function examineExposure({
  operatorHost,
  operatorPort,
  httpHost,
  httpPort,
  baseUrl,
  trustedProxies,
  roles,
}: Pick<
  Config,
  'operatorHost' | 'operatorPort' | 'httpHost' | 'httpPort' | 'baseUrl' | 'trustedProxies' | 'roles'
>): Finding {
  const everybody = trustedProxies.filter((network) => /\/0$/.test(network))
  if (everybody.length > 0)
    return failed(
      'exposure',
      `TRUSTED_PROXIES contains ${everybody.join(', ')}: every client can claim any address`,
      "Set TRUSTED_PROXIES to your proxy's own addresses",
    )
  if (operatorPort !== 0 && isPublic(operatorHost))
    return failed(
      'exposure',
      `The operator listener is on the public address ${operatorHost}, without TLS`,
      'Set OPERATOR_HOST=127.0.0.1, or an address of a private network',
    )
  if (operatorPort !== 0 && isEvery(operatorHost))
    return warning(
      'exposure',
      `The operator listener is on all addresses (OPERATOR_HOST=${operatorHost}), without TLS`,
      'Set OPERATOR_HOST=127.0.0.1, or close OPERATOR_PORT in the firewall',
    )
  if (roles.includes('http') && httpPort !== 0 && isPublic(httpHost) && trustedProxies.length === 0)
    return warning(
      'exposure',
      `The API is on the public address ${httpHost}, and keys are sent there without TLS`,
      'Put a proxy with TLS in front (docs/operate/proxy.md), and set HTTP_HOST=127.0.0.1',
    )
  if (baseUrl.startsWith('http://') && !isLocalUrl(baseUrl))
    return warning(
      'exposure',
      `BASE_URL is ${baseUrl}: keys and sign-ins are sent without TLS`,
      'Put a proxy with TLS in front (docs/operate/proxy.md), and set BASE_URL to its https address',
    )
  return well('exposure', 'No listener is on a public address without a proxy')
}

function isEvery(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function isPublic(host: string): boolean {
  return isIP(host) !== 0 && !isEvery(host) && isPublicAddress(host, [])
}

function isLocalUrl(url: string): boolean {
  const { hostname } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? host === 'localhost' || host.endsWith('.localhost') : !isPublicAddress(host, [])
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
