/** certificates - chains of certificates by openssl, as DANE meets them, and the TLSA records that name them. */

import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CA = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign'

export interface Issued {
  readonly key: string
  readonly cert: string
}

export interface CertificateOrder {
  readonly name: string
  /** The issuer's name; absent = self-signed. */
  readonly by?: string
  /** `ca`, or the extensions of a leaf in the form of openssl. */
  readonly extensions: string
  /** Days from now until the end; negative for an expired one. */
  readonly days?: number
}

/** An issuer's extensions with more lines. */
export function issuer(more = ''): string {
  return `${CA}${more}`
}

/** Certificates by name; an issuer comes before what it signs. Null if openssl is not installed. */
export function makeCertificates(orders: readonly CertificateOrder[]): Record<string, Issued> | null {
  const folder = mkdtempSync(join(tmpdir(), 'tlsa-'))
  const at = (file: string) => join(folder, file)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' })
  try {
    return Object.fromEntries(
      orders.map(({ name, by = name, extensions, days = 10 }) => {
        writeFileSync(at(`${name}.cnf`), `[e]\n${extensions}\n`)
        openssl('ecparam', '-genkey', '-noout', '-name', 'prime256v1', '-out', at(`${name}.key`))
        openssl('req', '-new', '-key', at(`${name}.key`), '-subj', `/CN=${name}`, '-out', at(`${name}.csr`))
        const signer = by === name ? ['-signkey', at(`${name}.key`)] : ['-CA', at(by), '-CAkey', at(`${by}.key`)]
        const serial = ['-set_serial', String(1 + orders.findIndex((one) => one.name === name))]
        const form = ['-extfile', at(`${name}.cnf`), '-extensions', 'e', '-days', String(days)]
        openssl('x509', '-req', '-in', at(`${name}.csr`), ...signer, ...serial, ...form, '-out', at(name))
        return [name, { key: readFileSync(at(`${name}.key`), 'utf8'), cert: readFileSync(at(name), 'utf8') }]
      }),
    )
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The record `usage selector matching` for a certificate. */
export function tlsaOf(form: string, { cert }: Pick<Issued, 'cert'>): string {
  const [, selector, matching] = form.split(' ')
  const x509 = new X509Certificate(cert)
  const bytes = selector === '1' ? (x509.publicKey.export({ type: 'spki', format: 'der' }) as Buffer) : x509.raw
  if (matching === '0') return `${form} ${bytes.toString('hex')}`
  return `${form} ${createHash(matching === '2' ? 'sha512' : 'sha256')
    .update(bytes)
    .digest('hex')}`
}
