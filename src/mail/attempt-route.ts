/**
 * attempt-route - the route of one attempt: the mail server, both addresses, the encryption, and the time of each step
 *
 * Packed into one text, so that it takes some 70 bytes in the row of its recipient:
 * `<host> <address> <source address> <TLS version> <cipher> <flags> <DNS ms>,<connect ms>,<TLS ms>,<transaction ms>`.
 * An unknown value is `-`, or nothing among the times. The version is the text behind `TLSv`. The three ciphers of TLS
 * 1.3 are the letters a, b and c. Flags are letters: `v` the certificate was verified, `r` the connection had been
 * opened by an earlier message, `e` and `t` the domain's MTA-STS policy is enforced or only tested; of DANE, `d` a TLSA
 * record named the certificate, `u` no record could be used, `x` the check failed.
 */

/** Time of each step in milliseconds; null if the attempt skipped it, as a reused connection does. */
export interface RouteTimes {
  /** Lookups of MX and addresses, and of the MTA-STS policy. */
  readonly dnsMs: number | null
  readonly connectMs: number | null
  /** The TLS handshake. */
  readonly tlsMs: number | null
  /** From MAIL to the last reply. */
  readonly transactionMs: number | null
}

export interface AttemptRoute extends RouteTimes {
  readonly host: string
  /** Address of the host; null if none was connected to. */
  readonly address: string | null
  /** The address of this machine that the connection came from. */
  readonly sourceAddress: string | null
  /** `TLSv1.3`; null: plaintext, or no session. */
  readonly tlsVersion: string | null
  readonly cipher: string | null
  /** The certificate is valid for the name of the host. */
  readonly isVerified: boolean
  /** MTA-STS policy of the recipient's domain; null: it has none. */
  readonly mtaSts: 'enforce' | 'testing' | null
  /** Check by TLSA records of the host. `encrypted`: none of them can be used. Null: it has none, or `DNSSEC=off`. */
  readonly dane: 'verified' | 'encrypted' | 'failed' | null
  /** The connection had been opened by an earlier message. */
  readonly isReused: boolean
}

/** Longest name of a host (RFC 1035 2.3.4). */
const HOST_CHARS_MAX = 255
const CIPHERS = ['TLS_AES_256_GCM_SHA384', 'TLS_AES_128_GCM_SHA256', 'TLS_CHACHA20_POLY1305_SHA256'] as const
const LETTERS = ['a', 'b', 'c'] as const
const DANE = { verified: 'd', encrypted: 'u', failed: 'x' } as const
const NONE = '-'

/** A route of which nothing but the server's name is known. */
export function unconnectedRoute(host: string, mtaSts: AttemptRoute['mtaSts'], dnsMs: number | null): AttemptRoute {
  const times = { dnsMs, connectMs: null, tlsMs: null, transactionMs: null }
  const session = { tlsVersion: null, cipher: null, isVerified: false, dane: null, isReused: false }
  return { host, address: null, sourceAddress: null, ...session, mtaSts, ...times }
}

/** Packs a route into printable ASCII without quotes. */
export function packRoute(route: AttemptRoute): string {
  const { host, address, sourceAddress, tlsVersion, cipher, isVerified, isReused, mtaSts, dane } = route
  const flags = [isVerified && 'v', isReused && 'r', mtaSts === 'enforce' && 'e', mtaSts === 'testing' && 't']
  const letters = `${flags.filter(Boolean).join('')}${dane === null ? '' : DANE[dane]}`
  const { dnsMs, connectMs, tlsMs, transactionMs } = route
  const times = [dnsMs, connectMs, tlsMs, transactionMs].map((ms) => (ms === null ? '' : Math.round(ms)))
  const letter = LETTERS[CIPHERS.indexOf(cipher as (typeof CIPHERS)[number])]
  const texts = [host.slice(0, HOST_CHARS_MAX), address, sourceAddress, tlsVersion?.slice(4), letter ?? cipher]
  return `${texts.map(plain).join(' ')} ${plain(letters)} ${times.join(',')}`
}

/** The text of a field: names come from the DNS, so a byte that is not printable ASCII becomes a question mark. */
function plain(text: string | null | undefined): string {
  return text ? text.replace(/[^!#-[\]-~]/g, '?') : NONE
}

/** Unpacks the result of `packRoute`. */
export function unpackRoute(packed: string): AttemptRoute {
  const [host = '', address, source, version, cipher, flags = '', times = ''] = packed.split(' ')
  const [dnsMs, connectMs, tlsMs, transactionMs] = times.split(',').map((ms) => (ms === '' ? null : Number(ms)))
  const tls = known(version)
  return {
    host,
    address: known(address),
    sourceAddress: known(source),
    tlsVersion: tls === null ? null : `TLSv${tls}`,
    cipher: CIPHERS[LETTERS.indexOf(cipher as (typeof LETTERS)[number])] ?? known(cipher),
    isVerified: flags.includes('v'),
    mtaSts: flags.includes('e') ? 'enforce' : flags.includes('t') ? 'testing' : null,
    dane: readDane(flags),
    isReused: flags.includes('r'),
    dnsMs: dnsMs ?? null,
    connectMs: connectMs ?? null,
    tlsMs: tlsMs ?? null,
    transactionMs: transactionMs ?? null,
  }
}

function readDane(flags: string): AttemptRoute['dane'] {
  const results = Object.keys(DANE) as (keyof typeof DANE)[]
  return results.find((result) => flags.includes(DANE[result])) ?? null
}

/** The name of a packed route's mail server, read without unpacking the rest. */
export function hostOfRoute(packed: string): string {
  return packed.slice(0, packed.indexOf(' '))
}

function known(text: string | undefined): string | null {
  return text === undefined || text === NONE ? null : text
}
