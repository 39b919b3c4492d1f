/**
 * domain - sending domains as an account key reads them, and the look before a domain is added or checked
 *
 * Every view reads the key in the same step as its data, so a revocation takes effect at once.
 *
 * Keys: `domain:<id>`, `domains:<account>`, `account:<id>`, `key:<sha256>`
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import type { Domain } from '../../schemas/domain.ts'
import { formatDkimTxt } from '../mail/compose/dkim-key.ts'
import { type ExpectedRecord, makeDkimRecord, makeReturnPathRecord } from '../mail/dns-record.ts'
import { formatReportMailbox } from '../mail/report-address.ts'
import { serviceReturnPathHost } from '../mail/return-path.ts'
import type { AccountState } from '../state/account.ts'
import type { DomainState } from '../state/domain.ts'
import { domainsKey } from '../state/keys.ts'
import { entityFact, parseState, type Unseen } from './entity.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { type AccountKey, keyFact, ownerOfRow, type Reader } from './key.ts'
import { type Page, readNewest } from './newest.ts'

const NOT_FOUND = { verified: false, verifiedAtMs: null }

/** The DNS records of a domain: two, or three while a new DKIM key is pending. */
export function makeDomainRecords(
  state: Pick<DomainState, 'domainId' | 'domain' | 'selector' | 'publicKey' | 'pending'>,
  serviceDomain: string,
): { returnPath: ExpectedRecord; dkim: ExpectedRecord; pendingDkim?: ExpectedRecord } {
  const { domainId, domain, selector, publicKey, pending } = state
  const dkimOf = (key: { selector: string; publicKey: string }) =>
    makeDkimRecord({ domain, selector: key.selector, value: formatDkimTxt(key.publicKey) })
  return {
    returnPath: makeReturnPathRecord({ domain, domainId, serviceDomain }),
    dkim: dkimOf({ selector, publicKey }),
    ...(pending !== null && { pendingDkim: dkimOf(pending) }),
  }
}

/** Whether it was verified until its records went missing; a domain that was never verified never had a warning. */
function isLost({ verified, warningBeganAtMs }: DomainState): boolean {
  return !verified && warningBeganAtMs !== null
}

/** What the records of domains are made of. */
export interface RecordNames {
  readonly serviceDomain: string
  /** Signs the addresses of reports. */
  readonly tokenKey: Buffer
}

/** The records with which receivers send their reports about a domain to this service. */
function recommendedOf({ domainId, domain }: DomainState, { serviceDomain, tokenKey }: RecordNames) {
  const rua = `rua=mailto:${formatReportMailbox(tokenKey, domainId)}@${serviceReturnPathHost(serviceDomain)}`
  return [
    { type: 'TXT', host: `_dmarc.${domain}`, value: `v=DMARC1; p=none; ${rua}`, purpose: 'dmarc_reports' },
    { type: 'TXT', host: `_smtp._tls.${domain}`, value: `v=TLSRPTv1; ${rua}`, purpose: 'tls_reports' },
  ] satisfies Domain['recommended']
}

/** The resource of a domain. */
export function formatDomain(state: DomainState, names: RecordNames): Domain {
  const records = makeDomainRecords(state, names.serviceDomain)
  const record = <Type extends 'CNAME' | 'TXT'>(type: Type, expected: ExpectedRecord, found: DomainState['dkim']) => ({
    type,
    host: expected.host,
    value: expected.value,
    verified: found.verified,
    verifiedAt: formatInstantOrNull(found.verifiedAtMs),
  })
  return {
    domainId: state.domainId,
    domain: state.domain,
    verified: state.verified,
    testOnly: state.isTestOnly === true,
    createdAt: formatInstant(state.createdAtMs),
    lastCheckedAt: formatInstantOrNull(state.lastCheckedAtMs),
    failingSince: formatInstantOrNull(state.failingSinceMs),
    ...(isLost(state) && { unverifiedSince: formatInstant(state.unverifiedSinceMs) }),
    ...(state.undecidedSinceMs !== undefined && { undecidedSince: formatInstant(state.undecidedSinceMs) }),
    returnPath: record('CNAME', records.returnPath, state.returnPath),
    dkim: record('TXT', records.dkim, state.dkim),
    ...(records.pendingDkim && { pendingDkim: record('TXT', records.pendingDkim, NOT_FOUND) }),
    recommended: recommendedOf(state, names),
  }
}

/** The key's account, and a domain of the account; null if it has no domain with that id. */
export async function readDomain(
  read: Reader,
  owner: AccountKey,
  domainId: string,
): Promise<{ account: AccountState; domain: DomainState | null } | Unseen> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  const id = domainId.toLowerCase()
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const ids = shardOf(id) === shard ? [id] : []
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    entityFact(shard, { kind: 'account', id: accountId }),
    ...ids.map((one) => entityFact(shard, { kind: 'domain', id: one })),
  ])
  if (seen === null) return 'unavailable'
  const account = parseState<AccountState>(seen[1])
  if (ownerOfRow(owner.hash, seen[0]) === null || account === null) return 'unauthorized'
  const domain = parseState<DomainState>(seen[2])
  const isOurs = domain !== null && domain.accountId === accountId && domain.removedAtMs === null
  return { account, domain: isOurs ? domain : null }
}

/** A page of the account's domains, newest first. */
export async function listDomains(
  read: Reader,
  owner: AccountKey,
  page: Page,
): Promise<{ domains: readonly DomainState[]; next: string | null } | Unseen> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  const keys = [{ shard, key: domainsKey(shard, accountId) }]
  const found = await readNewest(read, keys, { limit: page.limit + 1, after: page.after })
  if (found === null) return 'unavailable'
  const ids = found.slice(0, page.limit)
  const facts = ids.map((id) => entityFact(shard, { kind: 'domain', id }))
  const seen = await read(shard, [keyFact(shard, owner.hash), ...facts])
  if (seen === null) return 'unavailable'
  const [row, ...states] = seen
  if (ownerOfRow(owner.hash, row) === null) return 'unauthorized'
  const domains = states.map((value) => parseState<DomainState>(value)).filter((state) => state !== null)
  return {
    domains: domains.filter(({ removedAtMs }) => removedAtMs === null),
    next: found.length > page.limit ? (ids.at(-1) ?? null) : null,
  }
}
