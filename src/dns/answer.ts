/**
 * answer - an answer of the DNS as the service uses it: records in the form of `node:dns`, or one of three ways of
 * none.
 */

/** Heap of a string and of an array or object, apart from characters. */
const STRING_BYTES = 24
const RECORD_BYTES = 48

/** The resolver has validated the answer with DNSSEC (the AD bit, RFC 4035 3.2.3). Asked for with `DNSSEC=trusted`. */
export interface SecureAnswer {
  /** The name at which the aliases end, in lower case. */
  readonly name: string
}

/** `failure`: the resolver did not answer (SERVFAIL, time-out, refused); `code` is its error code. */
export type DnsAnswer<T> =
  | { readonly status: 'ok'; readonly records: readonly T[]; readonly secure?: SecureAnswer }
  | { readonly status: 'nxdomain' }
  | { readonly status: 'nodata'; readonly secure?: SecureAnswer }
  | { readonly status: 'failure'; readonly code: string }

export interface RecordTypes {
  A: string
  AAAA: string
  CNAME: string
  NS: string
  PTR: string
  MX: { exchange: string; priority: number }
  TXT: string[]
  TLSA: TlsaRecord
}

/** The certificate of a TLS server (RFC 6698 2.1). A malformed record has `usage` 255, which no one uses. */
export interface TlsaRecord {
  readonly usage: number
  readonly selector: number
  readonly matching: number
  /** Hexadecimal in lower case. */
  readonly data: string
}

export type RecordType = keyof RecordTypes

/** The heap that an answer takes, estimated on the high side. Takes an answer of any type. */
export function answerBytes(answer: DnsAnswer<unknown>): number {
  if (answer.status !== 'ok') return 0
  return answer.records.reduce<number>((sum, record) => sum + recordBytes(record), 0)
}

function recordBytes(record: unknown): number {
  if (typeof record === 'string') return STRING_BYTES + record.length
  const strings = Object.values(record as RecordTypes['MX' | 'TXT' | 'TLSA'])
  return strings.reduce<number>((sum, one) => sum + STRING_BYTES + String(one).length, RECORD_BYTES)
}
