/**
 * check-domain - looks up the two records of a sending domain and returns a finding for each. Bounded at 8 s in all.
 *
 * If the operator has set DNS servers, only those are queried. Otherwise a `missing` or `mismatch` of the system's
 * resolver is verified at authoritative servers of the zone, whose answer counts, because a resolver may cache an
 * absence for hours after the record was created. So is a `dns_error` next to a wrong record, because a domain without
 * one record would otherwise stay verified as long as the other cannot be looked up. `dns_error` is always the
 * resolver's failure, never that of an authoritative server.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { ExpectedRecord, RecordCheck } from '../mail/dns-record.ts'
import { compareCname, compareDkimTxt } from '../mail/dns-record.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { DnsAnswer } from './answer.ts'
import type { Resolver } from './resolve.ts'
import { createResolver } from './resolve.ts'

const TOTAL_TIMEOUT_MS = 8000
/** Timeout of one query to the authoritative server, so that two fit into the total. */
const AUTHORITATIVE_TIMEOUT_MS = 2500
/** Servers of a zone that are queried, one after the other. */
const AUTHORITATIVE_MAX = 2
/** Names that a CNAME may lead through before the right one; resolvers give up at about as many. */
const CHAIN_MAX = 8
/** Steps up from the record's name to the zone's cut; a name has at most 127 labels, real ones below ten. */
const ZONE_STEPS_MAX = 8

export type RecordFinding = RecordCheck | 'dns_error'

/** Maximum number of reported values, and of characters of one, because others write them. */
const INSTEAD_MAX = 5
const INSTEAD_CHARS_MAX = 600

export interface CheckDomainJob {
  readonly returnPath: ExpectedRecord
  readonly dkim: ExpectedRecord
  /** Record of the pending key. */
  readonly pendingDkim?: ExpectedRecord
}

/** The findings about the requested records. */
export interface DomainFound {
  readonly returnPath: RecordFinding
  readonly dkim: RecordFinding
  readonly pendingDkim?: RecordFinding
  /**
   * The values found for a `mismatch`, otherwise empty. They are texts of others, and no decision may depend on them.
   */
  readonly instead: {
    readonly returnPath: readonly string[]
    readonly dkim: readonly string[]
    readonly pendingDkim?: readonly string[]
  }
}

/** The finding about one record. */
interface Compared {
  readonly result: RecordFinding
  readonly instead: readonly string[]
}

const UNANSWERED: Compared = { result: 'dns_error', instead: [] }

export interface CheckDomainDeps {
  readonly resolver: Resolver
  readonly nowMs: () => number
  /** Null when the operator named DNS servers: then there is no second opinion. */
  readonly authoritative: { readonly port: number; readonly privateNetworksAllowed: readonly string[] } | null
  readonly totalTimeoutMs?: number
}

/** Looks both records up now, without our own caches. Never rejects. */
export async function checkDomain(job: CheckDomainJob, deps: CheckDomainDeps): Promise<DomainFound> {
  const controller = new AbortController()
  const late = delay(deps.totalTimeoutMs ?? TOTAL_TIMEOUT_MS, undefined, { signal: controller.signal })
  // Rejects only when it is aborted, below.
  late.catch(() => undefined)
  const [firstReturnPath, firstDkim, pendingDkim] = await Promise.all([
    checkRecord(job.returnPath, deps, late),
    checkRecord(job.dkim, deps, late),
    job.pendingDkim && checkRecord(job.pendingDkim, deps, late),
  ])
  const again = (record: ExpectedRecord, found: Compared, other: Compared): Promise<Compared> =>
    found.result === 'dns_error' && isWrong(other) ? askSecond(record, found, { deps, late }) : Promise.resolve(found)
  const [returnPath, dkim] = await Promise.all([
    again(job.returnPath, firstReturnPath, firstDkim),
    again(job.dkim, firstDkim, firstReturnPath),
  ])
  controller.abort()
  return {
    returnPath: returnPath.result,
    dkim: dkim.result,
    ...(pendingDkim !== undefined && { pendingDkim: pendingDkim.result }),
    instead: {
      returnPath: returnPath.instead,
      dkim: dkim.instead,
      ...(pendingDkim !== undefined && { pendingDkim: pendingDkim.instead }),
    },
  }
}

async function checkRecord(record: ExpectedRecord, deps: CheckDomainDeps, late: Promise<void>): Promise<Compared> {
  const first = (await Promise.race([compareRecord(record, deps.resolver), late])) ?? UNANSWERED
  return isWrong(first) ? askSecond(record, first, { deps, late }) : first
}

function isWrong({ result }: Compared): boolean {
  return result === 'missing' || result === 'mismatch'
}

/** The finding of the zone's own server; the first finding if it cannot be queried. */
async function askSecond(
  record: ExpectedRecord,
  first: Compared,
  { deps, late }: { readonly deps: CheckDomainDeps; readonly late: Promise<void> },
): Promise<Compared> {
  if (deps.authoritative === null) return first
  const second = (await Promise.race([askAuthoritative(record, deps), late])) ?? UNANSWERED
  return second.result === 'dns_error' ? first : second
}

/** A result with the values found, if it is a mismatch. */
function compared(result: RecordCheck, values: readonly string[]): Compared {
  if (result !== 'mismatch') return { result, instead: [] }
  return { result, instead: values.slice(0, INSTEAD_MAX).map((value) => value.slice(0, INSTEAD_CHARS_MAX)) }
}

/** `follow` queries the names that a CNAME leads to, because they may be in other zones. */
async function compareRecord(
  record: ExpectedRecord,
  resolver: Resolver,
  follow: Resolver = resolver,
): Promise<Compared> {
  if (record.type === 'TXT') {
    const found = await resolver.look('TXT', record.host, { fresh: true })
    if (found.status === 'failure') return UNANSWERED
    const texts = recordsOf(found).map((strings) => strings.join(''))
    return compared(compareDkimTxt(record.value, recordsOf(found)), texts)
  }
  const found = await resolver.look('CNAME', record.host, { fresh: true })
  if (found.status === 'failure') return UNANSWERED
  if (found.status === 'ok') return compareChain(record, recordsOf(found), follow)
  if (found.status === 'nxdomain') return compared('missing', [])
  const addresses = recordsOf(await resolver.look('A', record.host, { fresh: true }))
  return compared(compareCname(record.value, [], addresses.length > 0), addresses)
}

/** A CNAME may lead to the right name through others: mail to the host finds its way there, and only there. */
async function compareChain(record: ExpectedRecord, targets: readonly string[], resolver: Resolver): Promise<Compared> {
  let found = targets
  for (let step = 0; step < CHAIN_MAX && compareCname(record.value, found, false) !== 'ok'; step += 1) {
    const next = await resolver.look('CNAME', found[0] ?? '', { fresh: true })
    if (next.status === 'failure') return UNANSWERED
    if (next.status !== 'ok') return compared('mismatch', targets)
    found = next.records
  }
  return compared(compareCname(record.value, found, false), targets)
}

async function askAuthoritative(record: ExpectedRecord, deps: CheckDomainDeps): Promise<Compared> {
  const addresses = await findAuthoritative(record.host, deps)
  if (addresses.length === 0) return UNANSWERED
  // One that fails or is silent is followed by the next, within the same time.
  const resolver = createResolver({
    servers: addresses.map((address) => `${address}:${deps.authoritative!.port}`),
    nowMs: deps.nowMs,
    totalTimeoutMs: AUTHORITATIVE_TIMEOUT_MS,
    queryTimeoutMs: AUTHORITATIVE_TIMEOUT_MS / 2,
  })
  const checked = await compareRecord(record, resolver, deps.resolver)
  resolver.close()
  return checked
}

/** IPv4 addresses of two servers of the nearest zone above the name, as far as they can be found and may be asked. */
async function findAuthoritative(host: string, deps: CheckDomainDeps): Promise<readonly string[]> {
  const labels = host.split('.')
  const stepsMax = Math.min(labels.length - 1, ZONE_STEPS_MAX)
  for (let step = 1; step <= stepsMax; step += 1) {
    const servers = await deps.resolver.look('NS', labels.slice(step).join('.'))
    // Above a zone that cannot be looked up a server has a referral only, which would read as an absence.
    if (servers.status === 'failure') return []
    const found: string[] = []
    for (const server of recordsOf(servers).slice(0, AUTHORITATIVE_MAX)) {
      const addresses = recordsOf(await deps.resolver.look('A', server))
      // The owner of the zone chooses this address; without the check it could point our queries at the internal
      // network.
      const address = addresses.find((one) => isPublicAddress(one, deps.authoritative!.privateNetworksAllowed))
      if (address !== undefined) found.push(address)
    }
    if (servers.status === 'ok' || found.length > 0) return found
  }
  return []
}

function recordsOf<T>(answer: DnsAnswer<T>): readonly T[] {
  return answer.status === 'ok' ? answer.records : []
}
