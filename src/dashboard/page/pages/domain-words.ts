/** domain-words - a domain's state in a sentence, its records with what was found, and the lines of its zone */
import type { Domain, DomainChecked } from '../../../../schemas/domain.ts'
import { formatAgo } from '../api/words.ts'

export interface RecordShown {
  readonly title: string
  readonly type: string
  readonly host: string
  readonly value: string
  readonly verified: boolean
  readonly verifiedAt: string | null
  /** Of the last look-up, where one was made here. */
  readonly result: 'ok' | 'missing' | 'mismatch' | 'dns_error' | null
  /** What stands there in its place. */
  readonly found: readonly string[]
}

type Check = DomainChecked['check']

function checkOf(domain: Domain | DomainChecked): Check | null {
  return 'check' in domain ? domain.check : null
}

/** The records, each with what the last look-up brought. */
export function recordsOf(domain: Domain | DomainChecked): RecordShown[] {
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

/** What the state means for the reader. */
export function sentenceOf(domain: Domain | DomainChecked): string {
  const { verified, failingSince, lastCheckedAt } = domain
  const seen = lastCheckedAt === null ? '' : ` Looked up ${formatAgo(lastCheckedAt)}.`
  if (verified && failingSince === null) return `Both records stand, mail may go out.${seen}`
  if (verified && failingSince !== null) {
    const endsAt = new Date(Date.parse(failingSince) + 86_400_000).toISOString()
    return `A record is missing or wrong since ${formatAgo(failingSince)}. Mail goes out until it has been so for a day: ${formatAgo(endsAt)}.${seen}`
  }
  return `Create the records below where the domain’s DNS is kept. They are looked up every 10 seconds while this page is open.${seen}`
}

/** The records as lines of a zone file, with one of DMARC as advice. */
export function zoneOf({ domain, returnPath, dkim, pendingDkim }: Domain): string {
  const records = [returnPath, dkim, ...(pendingDkim === undefined ? [] : [pendingDkim])]
  const lines = records.map(
    ({ type, host, value }) => `${host}. 3600 IN ${type} ${type === 'TXT' ? quoted(value) : `${value}.`}`,
  )
  return [...lines, `_dmarc.${domain}. 3600 IN TXT "v=DMARC1; p=none; rua=mailto:dmarc@${domain}"`].join('\n')
}

/** A string of a record holds up to 255 bytes: a longer value is several. RFC 1035 3.3.14 */
function quoted(value: string): string {
  return (value.match(/.{1,255}/g) ?? ['']).map((piece) => `"${piece}"`).join(' ')
}
