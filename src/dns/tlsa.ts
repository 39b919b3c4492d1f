/**
 * tlsa - the TLSA records of a mail server (RFC 7672 2.2): looked up only if its addresses are validated, because name
 * servers of unsigned zones often fail on this type.
 *
 * Spec delivery.dane
 */

import type { TlsaRecord } from './answer.ts'
import type { Resolver } from './resolve.ts'

/**
 * `none`: DANE does not apply to the server. `failed`: there may be records, so the server must not be used.
 * `found`: `base` is the name that the server is authenticated by.
 */
export type TlsaFound =
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'found'; readonly base: string; readonly records: readonly TlsaRecord[] }

export interface TlsaQuestion {
  /** In A-labels, lower case. */
  readonly host: string
  readonly port: number
  readonly usesIpv6: boolean
}

const NONE: TlsaFound = { kind: 'none' }

/** Looks them up. Takes a host of a validated list of mail servers. Never rejects. */
export async function findTlsa(
  resolver: Pick<Resolver, 'look'>,
  { host, port, usesIpv6 }: TlsaQuestion,
): Promise<TlsaFound> {
  const bases = await baseNames(resolver, { host, usesIpv6 })
  if ('kind' in bases) return bases
  for (const base of bases) {
    const name = `_${port}._tcp.${base}`
    const answer = await resolver.look('TLSA', name)
    if (answer.status === 'failure') return failed('TLSA', name, answer.code)
    if (answer.status === 'ok' && answer.secure !== undefined) return { kind: 'found', base, records: answer.records }
  }
  return NONE
}

/**
 * The names under which records may be, in the order to ask: the end of the aliases, then the name itself. If the end
 * is not validated, the name itself counts while its own alias is.
 */
async function baseNames(
  resolver: Pick<Resolver, 'look'>,
  { host, usesIpv6 }: Omit<TlsaQuestion, 'port'>,
): Promise<readonly string[] | TlsaFound> {
  const answers = [await resolver.look('A', host), ...(usesIpv6 ? [await resolver.look('AAAA', host)] : [])]
  const ends = answers.flatMap((answer) => (answer.status === 'ok' ? [answer.secure?.name] : []))
  if (ends.length === 0) return []
  if (ends.every((end) => end !== undefined)) return [...new Set([...ends, host])]
  const alias = await resolver.look('CNAME', host)
  if (alias.status === 'failure') return failed('CNAME', host, alias.code)
  return alias.status === 'ok' && alias.secure !== undefined ? [host] : []
}

function failed(type: string, name: string, code: string): TlsaFound {
  return { kind: 'failed', text: `4.4.3 DANE: ${type} lookup of ${name} failed: ${code}` }
}
