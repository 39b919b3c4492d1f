/**
 * dane - opens a session with a server that its TLSA records authenticate (RFC 7672 3)
 *
 * A record of usage 3 names the certificate itself, and then neither names nor dates count. A record of usage 2 names
 * an issuer. TLS checks the path to an issuer if it gets the issuer before the handshake. So a first session finds it
 * among the certificates that the server presents, a second one is opened under it, and it is kept for the sessions
 * after that. If no record can be used, TLS is demanded and no certificate (RFC 7672 2.2).
 *
 * Guarantees: no mail command is sent before the certificate was checked; if MTA-STS demands a certificate of a public
 * authority, that must hold as well.
 *
 * Spec delivery.dane
 */

import { createHash, type X509Certificate } from 'node:crypto'
import { type ConnectionOptions, checkServerIdentity, type PeerCertificate, type TLSSocket } from 'node:tls'
import type { TlsaRecord } from '../../dns/answer.ts'
import { BoundedCache } from '../../process/bounded-cache.ts'
import type { Opened } from './converse.ts'
import { isNamedAs } from './tlsa-match.ts'

/** Certificates that a server presents; those after that are not read. */
const CHAIN_MAX = 16
const ISSUERS_AGE_MS = 24 * 3_600_000
const ISSUERS_MAX = 1000
const ISSUERS_BYTES_MAX = 4 * 1024 * 1024
const ISSUERS_ENTRY_BYTES_MAX = 16 * 1024
const UNMATCHED = 'no certificate matches a TLSA record'

/** The demand of a server's TLSA records. */
export interface DaneDemand {
  /** The name that the records are under; the server is addressed by it (SNI). */
  readonly base: string
  /** Those that can be used; none = TLS with any certificate. */
  readonly records: readonly TlsaRecord[]
  /** The recipient's domain, which a certificate may be for as well. */
  readonly names: readonly string[]
}

/** A session, the reason why there is none, or the text of a failed connection. */
export type OpenedAt = (Opened | { readonly ok: false; readonly text: string }) & { readonly connectMs: number }

/** How the server of a session was checked. */
export interface DaneChecked {
  /** `encrypted`: no record could be used. Null: there are no records. */
  readonly dane: 'verified' | 'encrypted' | null
  /** The domain for which the check holds; an empty text = for every domain; null = it was not checked. */
  readonly checkedFor: string | null
  /** The certificate was compared with public authorities, not with issuers of TLSA records. */
  readonly isPublic: boolean
}

/** Certificates of issuers by host and records. */
export type Issuers = BoundedCache<readonly string[]>

export interface DaneDeps {
  /** The name of the server in the list of mail servers. */
  readonly host: string
  /** MTA-STS demands a certificate of a public authority. */
  readonly isVerified: boolean
  readonly issuers: Issuers
  nowMs(): number
}

/** Opens a session; `check` runs after the handshake, and its text refuses the certificate. */
export type OpenChecked = (tls: ConnectionOptions, check: (socket: TLSSocket) => string | null) => Promise<OpenedAt>

/** An empty memory of issuers. */
export function createIssuers(nowMs: () => number): Issuers {
  const bounds = { entriesMax: ISSUERS_MAX, bytesMax: ISSUERS_BYTES_MAX, entryBytesMax: ISSUERS_ENTRY_BYTES_MAX }
  return new BoundedCache({ ...bounds, nowMs })
}

/** Opens and checks. `refused` is the reason if no record names the certificate. */
export async function openDane(
  demand: DaneDemand,
  open: OpenChecked,
  { host, isVerified, issuers, nowMs }: DaneDeps,
): Promise<{ readonly opened: OpenedAt; readonly checked: DaneChecked; readonly refused: string | null }> {
  const { base, records } = demand
  const isHost = (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate)
  const tls = { servername: base, rejectUnauthorized: isVerified, checkServerIdentity: isHost }
  const plain = { checkedFor: '', isPublic: true } as const
  if (records.length === 0)
    return { opened: await open(tls, () => null), checked: { dane: 'encrypted', ...plain }, refused: null }

  const key = createHash('sha256')
    .update(JSON.stringify([base, records]))
    .digest('base64')
  // A public authority can only be checked by a handshake of its own.
  const known = isVerified ? undefined : issuers.get(key)
  const kept = known === undefined ? null : await openUnder(known, { demand, open, leaf: null })
  if (kept !== null && (kept.opened.ok || !isOfCertificate(kept.opened))) return { ...kept, refused: null }

  let issued: readonly string[] = []
  let leaf: string | null = null
  let refused: string | null = null
  const opened = await open(tls, (socket) => {
    const [own, ...others] = presentedBy(socket)
    if (own !== undefined && isNamedAs('own', own, records)) return null
    leaf = own?.fingerprint256 ?? null
    issued = others.filter((one) => one.fingerprint256 !== leaf && isNamedAs('issuer', one, records)).map(String)
    refused = UNMATCHED
    return refused
  })
  if (issued.length === 0) return { opened, checked: { dane: 'verified', ...plain }, refused }
  const second = await openUnder(issued, { demand, open, leaf: isVerified ? leaf : null })
  const bytes = issued.reduce((sum, text) => sum + text.length, 0)
  if (second.opened.ok) issuers.set(key, issued, { bytes, untilMs: nowMs() + ISSUERS_AGE_MS })
  return { ...second, refused: null }
}

/**
 * Opens a session whose certificate has a path to one of the issuers (PEM). With `leaf` it must be that certificate,
 * which was checked otherwise before.
 */
async function openUnder(
  ca: readonly string[],
  { demand, open, leaf }: { readonly demand: DaneDemand; readonly open: OpenChecked; readonly leaf: string | null },
): Promise<{ readonly opened: OpenedAt; readonly checked: DaneChecked }> {
  const { base, names } = demand
  let checkedFor = ''
  const tls = {
    servername: base,
    ca: [...ca],
    allowPartialTrustChain: true,
    rejectUnauthorized: true,
    checkServerIdentity: (_: string, certificate: PeerCertificate) => {
      const wrong = checkServerIdentity(base, certificate)
      if (wrong === undefined || names.every((name) => checkServerIdentity(name, certificate) !== undefined))
        return wrong
      checkedFor = names[0] ?? base
      return undefined
    },
  }
  const isOther = (socket: TLSSocket) => leaf !== null && presentedBy(socket)[0]?.fingerprint256 !== leaf
  const opened = await open(tls, (socket) => (isOther(socket) ? 'the certificate has changed' : null))
  return { opened, checked: { dane: 'verified', checkedFor, isPublic: leaf !== null } }
}

function isOfCertificate(opened: OpenedAt): boolean {
  return !opened.ok && 'failure' in opened && opened.failure.kind === 'handshake'
}

/** The certificates that the server presents, its own first, in its order. */
function presentedBy(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = []
  let next = socket.getPeerX509Certificate()
  while (next !== undefined && chain.length < CHAIN_MAX) {
    chain.push(next)
    next = next.issuerCertificate
  }
  return chain
}
