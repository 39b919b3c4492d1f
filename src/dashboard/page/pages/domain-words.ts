/** domain-words - a domain's state in a sentence, its records with the values found, and the lines of its zone */
import type { Domain, DomainChecked } from '../../../../schemas/domain.ts'
import { capital, formatAgo, formatDay } from '../api/words.ts'

export interface RecordShown {
  readonly title: string
  readonly type: string
  readonly host: string
  readonly value: string
  readonly verified: boolean
  readonly verifiedAt: string | null
  /** Result of the last look-up, if one was made on this page. */
  readonly result: 'ok' | 'missing' | 'mismatch' | 'dns_error' | null
  /** The values found instead. */
  readonly found: readonly string[]
}

type Check = DomainChecked['check']

function checkOf(domain: Domain | DomainChecked): Check | null {
  return 'check' in domain ? domain.check : null
}

/** The records, each with the result of the last lookup. */
export function listRecords(domain: Domain | DomainChecked): RecordShown[] {
  const check = checkOf(domain)
  const rows = [
    ['Return path', 'returnPath', domain.returnPath],
    ['DKIM', 'dkim', domain.dkim],
    ['DKIM, the next key', 'pendingDkim', domain.pendingDkim],
  ] as const
  return rows.flatMap(([title, name, record]) => {
    if (record === undefined) return []
    return [{ title, ...record, result: check?.[name] ?? null, found: check?.found?.[name] ?? [] }]
  })
}

/** The meaning of the state for the reader. */
export function sentenceOf(domain: Domain | DomainChecked): string {
  const { verified, testOnly, failingSince, unverifiedSince, lastCheckedAt } = domain
  const seen = lastCheckedAt === null ? '' : ` Last checked ${formatAgo(lastCheckedAt)}.`
  if (testOnly)
    return `Test servers can send from this domain. Live servers can once the records below are found; they are checked once a day.${seen}`
  if (unverifiedSince !== undefined)
    return `Stopped sending on ${formatDay(unverifiedSince)}: ${lostRecordOf(domain)}. Mail from this domain is rejected until the records below are found again.${seen}`
  if (verified && failingSince === null) return `Verified. Ready to send.${seen}`
  if (verified && failingSince !== null) {
    const endsAt = new Date(Date.parse(failingSince) + 86_400_000).toISOString()
    return `${capital(lostRecordOf(domain))} since ${formatAgo(failingSince)}. This domain stops sending ${formatAgo(endsAt)} unless the record is fixed.${seen}`
  }
  return `Create the records below at the domain’s DNS provider. They are checked every 10 seconds while this page is open.${seen}`
}

/** Which record is gone: `the DKIM record is missing or wrong`. */
export function lostRecordOf({ returnPath, dkim }: Domain): string {
  if (!returnPath.verified && !dkim.verified) return 'both DNS records are missing or wrong'
  return `the ${dkim.verified ? 'return path' : 'DKIM'} record is missing or wrong`
}

/** The advice for a domain with inconclusive lookups, or null. */
export function undecidedOf({ domain, undecidedSince }: Domain): string | null {
  if (undecidedSince === undefined) return null
  return `Since ${formatDay(undecidedSince)} one record is missing or wrong, and the name servers do not answer for the other, so the state of this domain does not change. Repair the name servers of ${domain} and the record, then check again.`
}

/** Why no record of a domain can be found, independent of its DNS, or null. */
export function unreachableOf({ domain, returnPath }: Domain): string | null {
  const isLocal = (name: string) => /(?:^|\.)localhost$/i.test(name)
  if (isLocal(domain)) return 'Names below .localhost exist on one machine only, so this domain cannot be verified.'
  if (!isLocal(returnPath.value)) return null
  return `The records point to ${returnPath.value}, which exists on one machine only, so this domain cannot be verified. The operator of the service has to set SERVICE_DOMAIN to a public domain first.`
}

/** The records as lines of a zone file, with the recommended ones. */
export function formatZone({ returnPath, dkim, pendingDkim, recommended }: Domain): string {
  const records = [returnPath, dkim, ...(pendingDkim === undefined ? [] : [pendingDkim]), ...recommended]
  return records
    .map(({ type, host, value }) => `${host}. 3600 IN ${type} ${type === 'TXT' ? quoted(value) : `${value}.`}`)
    .join('\n')
}

/** A string of a record has up to 255 bytes, so a longer value is split. RFC 1035 3.3.14 */
function quoted(value: string): string {
  return (value.match(/.{1,255}/g) ?? ['']).map((piece) => `"${piece}"`).join(' ')
}
