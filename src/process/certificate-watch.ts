/**
 * certificate-watch - the certificate of the SMTP listeners while the process runs: a renewed pair is loaded without a
 * restart
 *
 * ACME clients replace the files of TLS_CERT and TLS_KEY every two months. Both files are compared with the loaded pair
 * every 20 seconds, and at once on SIGHUP. A pair that does not fit, because only one file has been replaced so far, is
 * logged and tried again; the loaded pair remains in use.
 */

import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Certificate, type CertificatePlace, faultOfChain, isPair, openCertificate } from './certificate.ts'

/** A renewed certificate is in use within a minute. */
const CHECK_MS = 20_000

export interface CertificateWatchLog {
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

/** The certificate that new connections get. */
export interface CertificateWatch {
  readonly current: Certificate
  /** When the current certificate expires, Unix time in milliseconds. */
  readonly expiresMs: number
  /** Calls `use` with each later pair; connections that are open keep theirs. */
  onRenewed(use: (renewed: Certificate) => void): void
  /** Compares the files with the current pair now. */
  check(): Promise<void>
  close(): void
}

/**
 * Opens the certificate and watches the operator's files. A certificate of our own is not watched: it is valid for ten
 * years.
 * @throws WrongFile if the operator's files are not a certificate and its key
 */
export function watchCertificate(
  place: CertificatePlace,
  { log, checkMs = CHECK_MS }: { log: CertificateWatchLog; checkMs?: number },
): CertificateWatch {
  const { tlsCert, tlsKey } = place
  let current = openCertificate(place, { nowMs: Date.now(), log })
  let rejected = ''
  const uses: ((renewed: Certificate) => void)[] = []
  const check = async (): Promise<void> => {
    if (tlsCert === null || tlsKey === null) return
    const read = await readPair(tlsCert, tlsKey)
    const reason = typeof read === 'string' ? read : null
    if (typeof read === 'string' || (read.cert === current.cert && read.key === current.key)) {
      if (reason !== null && reason !== rejected)
        log.warn({ tlsCert, tlsKey, reason }, 'Renewed certificate not loaded')
      rejected = reason ?? ''
      return
    }
    rejected = ''
    current = read
    for (const use of uses) use(read)
    log.info({ tlsCert, expires: new Date(readExpiry(read)).toISOString() }, 'Renewed certificate loaded')
  }
  const checkSafely = () =>
    void check().catch((error: Error) => log.error({ reason: error.message }, 'Renewed certificate not loaded'))
  const isWatched = tlsCert !== null && tlsKey !== null
  const timer = isWatched ? setInterval(checkSafely, checkMs).unref() : undefined
  if (isWatched) process.on('SIGHUP', checkSafely)
  return {
    get current() {
      return current
    },
    get expiresMs() {
      return readExpiry(current)
    },
    onRenewed: (use) => void uses.push(use),
    check,
    close() {
      clearInterval(timer)
      process.off('SIGHUP', checkSafely)
    },
  }
}

/** The pair in the files, or the reason why it cannot be used. */
async function readPair(certPath: string, keyPath: string): Promise<Certificate | string> {
  try {
    const [cert, key] = await Promise.all([readFile(certPath, 'utf8'), readFile(keyPath, 'utf8')])
    if (!isPair({ cert, key })) return 'TLS_KEY is not the private key of TLS_CERT'
    const fault = faultOfChain({ cert, key })
    return fault === null ? { cert, key } : `TLS does not take the chain in TLS_CERT: ${fault}`
  } catch (error) {
    return (error as Error).message
  }
}

function readExpiry({ cert }: Certificate): number {
  return Date.parse(new X509Certificate(cert).validTo)
}
