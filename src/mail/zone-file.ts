/**
 * zone-file - DNS records in the form of a zone file (RFC 1035 5.1), for import into a name server or a provider's form
 *
 * Names are absolute, with a dot at their end, so that the zone file can be loaded into any zone. A text longer than
 * 255 bytes is split into several strings, which readers join (RFC 1035 3.3, RFC 7208 3.3, RFC 6376 3.6.2.2).
 */

/** A record; a null `value` is unknown here, and `remark` describes it. */
export interface ZoneFileRecord {
  readonly host: string
  readonly type: 'A' | 'AAAA' | 'CNAME' | 'MX' | 'TXT'
  /** Without quotes; for an MX its preference and a name. */
  readonly value: string | null
  readonly remark?: string
}

/** Bytes of one string of a TXT record (RFC 1035 3.3). */
const STRING_BYTES_MAX = 255
/** One hour, so that a mistake can be fixed soon. */
const TTL_S = 3600

/** A text as strings of a TXT record, quoted, each short enough. */
export function quoteTxt(text: string): string {
  const bytes = Buffer.from(text)
  const strings: string[] = []
  for (let at = 0; at === 0 || at < bytes.length; at += STRING_BYTES_MAX)
    strings.push(`"${escapeString(bytes.subarray(at, at + STRING_BYTES_MAX))}"`)
  return strings.join(' ')
}

/** The records as a zone file; one whose value is not known is a comment. */
export function formatZone(records: readonly ZoneFileRecord[]): string {
  return records
    .map(({ host, type, value, remark }) => {
      const line = `${host}. ${TTL_S} IN ${type} ${value === null ? `<${remark ?? ''}>` : formatValue(type, value)}`
      if (value === null) return `; ${line}`
      return remark === undefined ? line : `; ${remark}\n${line}`
    })
    .map((lines) => `${lines}\n`)
    .join('')
}

function formatValue(type: ZoneFileRecord['type'], value: string): string {
  if (type === 'TXT') return quoteTxt(value)
  return type === 'CNAME' || type === 'MX' ? `${value}.` : value
}

/** A quote and a backslash are escaped, other characters written as three decimal digits (RFC 1035 5.1). */
function escapeString(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`
    return byte < 0x20 || byte > 0x7e ? `\\${String(byte).padStart(3, '0')}` : String.fromCharCode(byte)
  }).join('')
}
