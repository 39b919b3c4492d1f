/**
 * machine - the disk under the data directory, the HTTP library, and the certificate of the SMTP listeners
 *
 * Spec operator.health
 */

import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import type { Finding } from '../../schemas/operator/health.ts'
import { keptFree } from '../content/disk-space.ts'
import type { Engine } from '../http/engine/engine.ts'
import type { Config } from '../process/config.ts'
import { failed, warning, well } from './finding.ts'

const FREE_SHARE_WARNING = 0.15
const FREE_SHARE_MIN = 0.05
const GIB = 1024 ** 3
const DAY_MS = 86_400_000
/** Certificates that renew themselves do so thirty days before their end. */
const RENEW_DAYS = 14

/** Room on the disk. `hasStore` is whether the store's own file is on the disk. */
export async function examineDisk(dataDir: string, hasStore: boolean): Promise<Finding> {
  const { bavail, blocks, bsize } = await statfs(dataDir)
  const share = bavail / blocks
  const isFull = hasStore && bavail * bsize < keptFree(blocks * bsize)
  const message = `${((bavail * bsize) / GIB).toFixed(1)} GiB (${Math.round(share * 100)} %) are free under ${dataDir}`
  const fix = 'Free space on that disk, or stop the service and move DATA_DIR to a larger one'
  if (isFull) return failed('disk', `${message}: new mail is refused`, fix)
  if (share < FREE_SHARE_MIN) return failed('disk', message, fix)
  return share < FREE_SHARE_WARNING ? warning('disk', message, fix) : well('disk', message)
}

/** The HTTP library; both are correct, and one is faster. */
export function examineHttpEngine({ name, reason }: Pick<Engine, 'name' | 'reason'>): Finding {
  const library = name === 'uws' ? 'uWebSockets.js' : 'node:http'
  return well('http-engine', `HTTP is served by ${library}${reason === null ? '' : `: ${reason}`}`)
}

/** The certificate: ours, valid, for the names that others call us by. */
export function examineTls(
  {
    tlsCert,
    tlsKey,
    smtpHostname,
    serviceDomain,
  }: Pick<Config, 'tlsCert' | 'tlsKey' | 'smtpHostname' | 'serviceDomain'>,
  nowMs: number,
): Finding {
  if (tlsCert === null || tlsKey === null)
    return warning(
      'tls',
      'The SMTP listeners have a self-signed certificate',
      `Set TLS_CERT and TLS_KEY to a certificate for ${smtpHostname} and mx.${serviceDomain}`,
    )
  const read = readPair(tlsCert, tlsKey)
  if (typeof read === 'string') return failed('tls', read, 'Set TLS_CERT and TLS_KEY to a chain and its key in PEM')
  const endsAtMs = Date.parse(read.validTo)
  const renew = `Renew the certificate in ${tlsCert}; running listeners load it within a minute`
  if (endsAtMs <= nowMs || Date.parse(read.validFrom) > nowMs)
    return failed('tls', `The certificate is valid from ${read.validFrom} to ${read.validTo}`, renew)
  const missing = [smtpHostname, `mx.${serviceDomain}`].filter((name) => read.checkHost(name) === undefined)
  if (missing.length > 0)
    return warning('tls', `The certificate is not for ${missing.join(' and ')}`, `Have it made for these names too`)
  const days = Math.floor((endsAtMs - nowMs) / DAY_MS)
  return days < RENEW_DAYS
    ? warning('tls', `The certificate ends in ${days} days`, renew)
    : well('tls', `The certificate is valid for ${days} more days`)
}

/** The certificate, or the fault of the files. */
function readPair(certPath: string, keyPath: string): X509Certificate | string {
  try {
    const certificate = new X509Certificate(readFileSync(certPath))
    const key = createPrivateKey(readFileSync(keyPath))
    return certificate.checkPrivateKey(key) ? certificate : 'TLS_KEY is not the key of TLS_CERT'
  } catch (error) {
    return `The certificate cannot be read: ${(error as Error).message}`
  }
}
