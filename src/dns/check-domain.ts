/**
 * check-domain - looks up the two records of a sending domain and says of each what was found. Bounded at 8 s in all.
 *
 * Where the operator named DNS servers, those alone are asked. Otherwise a `missing` or `mismatch` of the system's
 * resolver is put to one authoritative server of the zone, and what that answers counts: a resolver may hold an absence
 * for hours after the record was made. `dns_error` is always the resolver's failure, never the authoritative server's.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { ExpectedRecord, RecordCheck } from '../mail/dns-record.ts'
import { compareCname, compareDkimTxt } from '../mail/dns-record.ts'
import { isPublicAddress } from '../mail/ip-address.ts'
import type { DnsAnswer, Resolver } from './resolve.ts'
import { createResolver } from './resolve.ts'

const TOTAL_TIMEOUT_MS = 8000
/** What one question to the authoritative server may take, so that two fit into the whole. */
const AUTHORITATIVE_TIMEOUT_MS = 2500
/** Names that a CNAME may lead through before the right one; resolvers give up at about as many. */
const CHAIN_MAX = 8
/** Steps up from the record's name to the zone's cut; a name has at most 127 labels, real ones below ten. */
const ZONE_STEPS_MAX = 8

export type RecordFinding = RecordCheck | 'dns_error'

export interface CheckDomainJob {
  readonly returnPath: ExpectedRecord
  readonly dkim: ExpectedRecord
  /** Of the key that is to follow. */
  readonly pendingDkim?: ExpectedRecord
}

/** What was found of each record that was asked for. */
export interface DomainFound {
  readonly returnPath: RecordFinding
  readonly dkim: RecordFinding
  readonly pendingDkim?: RecordFinding
}

export interface CheckDomainDeps {
  readonly resolver: Resolver
  readonly nowMs: () => number
  /** Null when the operator named DNS servers: then there is no second opinion. */
  readonly authoritative: { readonly port: number; readonly privateNetworksAllowed: readonly string[] } | null
  readonly totalTimeoutMs?: number
}

/** Looks both records up now, past every memory of ours. Never rejects. */
export async function checkDomain(job: CheckDomainJob, deps: CheckDomainDeps): Promise<DomainFound> {
  const controller = new AbortController()
  const late = delay(deps.totalTimeoutMs ?? TOTAL_TIMEOUT_MS, undefined, { signal: controller.signal })
  // Rejects only when it is aborted, below.
  late.catch(() => undefined)
  const [returnPath, dkim, pendingDkim] = await Promise.all([
    checkRecord(job.returnPath, deps, late),
    checkRecord(job.dkim, deps, late),
    job.pendingDkim && checkRecord(job.pendingDkim, deps, late),
  ])
  controller.abort()
  return { returnPath, dkim, ...(pendingDkim !== undefined && { pendingDkim }) }
}

async function checkRecord(record: ExpectedRecord, deps: CheckDomainDeps, late: Promise<void>): Promise<RecordFinding> {
  const first = (await Promise.race([compareRecord(record, deps.resolver), late])) ?? 'dns_error'
  if (deps.authoritative === null || first === 'ok' || first === 'dns_error') return first
  const second = (await Promise.race([askAuthoritative(record, deps), late])) ?? 'dns_error'
  return second === 'dns_error' ? first : second
}

/** `follow` is asked for the names that a CNAME leads to: they may lie in other zones. */
async function compareRecord(
  record: ExpectedRecord,
  resolver: Resolver,
  follow: Resolver = resolver,
): Promise<RecordFinding> {
  if (record.type === 'TXT') {
    const found = await resolver.look('TXT', record.host, { fresh: true })
    return found.status === 'failure' ? 'dns_error' : compareDkimTxt(record.value, recordsOf(found))
  }
  const found = await resolver.look('CNAME', record.host, { fresh: true })
  if (found.status === 'failure') return 'dns_error'
  if (found.status === 'ok') return compareChain(record, recordsOf(found), follow)
  if (found.status === 'nxdomain') return 'missing'
  const address = await resolver.look('A', record.host, { fresh: true })
  return compareCname(record.value, [], address.status === 'ok')
}

/** A CNAME may lead to the right name through others: mail to the host finds its way there, and only there. */
async function compareChain(
  record: ExpectedRecord,
  targets: readonly string[],
  resolver: Resolver,
): Promise<RecordFinding> {
  let found = targets
  for (let step = 0; step < CHAIN_MAX && compareCname(record.value, found, false) !== 'ok'; step += 1) {
    const next = await resolver.look('CNAME', found[0] ?? '', { fresh: true })
    if (next.status === 'failure') return 'dns_error'
    if (next.status !== 'ok') return 'mismatch'
    found = next.records
  }
  return compareCname(record.value, found, false)
}

async function askAuthoritative(record: ExpectedRecord, deps: CheckDomainDeps): Promise<RecordFinding> {
  const address = await findAuthoritative(record.host, deps)
  if (address === null) return 'dns_error'
  const server = address.includes(':')
    ? `[${address}]:${deps.authoritative!.port}`
    : `${address}:${deps.authoritative!.port}`
  const resolver = createResolver({
    servers: [server],
    nowMs: deps.nowMs,
    totalTimeoutMs: AUTHORITATIVE_TIMEOUT_MS,
    queryTimeoutMs: AUTHORITATIVE_TIMEOUT_MS / 2,
  })
  const checked = await compareRecord(record, resolver, deps.resolver)
  resolver.close()
  return checked
}

/** The address of a server of the nearest zone above the name; null when none can be found or may be asked. */
async function findAuthoritative(host: string, deps: CheckDomainDeps): Promise<string | null> {
  const labels = host.split('.')
  const stepsMax = Math.min(labels.length - 1, ZONE_STEPS_MAX)
  for (let step = 1; step <= stepsMax; step += 1) {
    const servers = await deps.resolver.look('NS', labels.slice(step).join('.'))
    for (const server of recordsOf(servers).slice(0, 2)) {
      const addresses = recordsOf(await deps.resolver.look('A', server))
      // The owner of the zone chooses this address: without the check it could aim our questions at the inner network.
      const address = addresses.find((one) => isPublicAddress(one, deps.authoritative!.privateNetworksAllowed))
      if (address !== undefined) return address
    }
    if (servers.status === 'ok') return null
  }
  return null
}

function recordsOf<T>(answer: DnsAnswer<T>): readonly T[] {
  return answer.status === 'ok' ? answer.records : []
}
