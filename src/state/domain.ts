/**
 * domain - a sending domain of an account, and the effect of a lookup of its two records.
 *
 * States (domain.states): unverified, verified, verified in warning (`failingSinceMs`), removed (`removedAtMs`). Its
 * return path sees it as `ok`; `missing` (its records went missing less than three days ago, or were never found); or
 * `gone` (before that). The return path of a removed domain is unknown. Guarantees: a failure of the resolver changes
 * no state; mail is sent during the whole warning. If one record is wrong while the other cannot be looked up, the
 * domain is undecided (`undecidedSinceMs`) until a lookup decides.
 *
 * A domain that only test servers use has a separate row in the list of sending domains, which live servers never read.
 * It becomes an ordinary one with the lookup that finds both records.
 *
 * Keys: `names:<account>` domain/<domain> -> id; `domains:<account>`; `sending:<account>` <domain> while verified and
 * test/<domain> while test servers use it; `dkim:<account>:<domain>`; `undecided` while verified and undecided
 *
 * Spec domain.states, domain.verify, domain.test-use, bounce.grace
 */

import type { EntityType, Facts, Op, Ref } from '../../cluster/behaviour.ts'
import { GRACE_HOURS } from '../../schemas/limits.ts'
import { HOUR_MS } from './calendar.ts'
import { sendingKey, undecidedKey } from './keys.ts'

/** Result of a lookup; `dns_error` is the resolver's failure, which proves nothing about the record. */
export type RecordResult = 'ok' | 'missing' | 'mismatch' | 'dns_error'

export interface DomainCheck {
  readonly returnPath: RecordResult
  readonly dkim: RecordResult
  /** For the pending key; absent if there is none. */
  readonly pendingDkim?: RecordResult
  /** The selector of `dkim`, because a lookup that began before a rotation proves nothing about the new key. */
  readonly selector?: string
}

/** A DKIM key that signs as soon as its record is found. */
export interface PendingKey {
  readonly selector: string
  readonly publicKey: string
  readonly orderedAtMs: number
}

export interface RecordState {
  /** Result of the last conclusive lookup. */
  readonly verified: boolean
  /** Since when. */
  readonly verifiedAtMs: number | null
}

export interface DomainState {
  readonly domainId: string
  readonly accountId: string
  /** In lower case. */
  readonly domain: string
  readonly createdAtMs: number
  readonly verified: boolean
  readonly lastCheckedAtMs: number | null
  /** Null unless verified and in its warning. */
  readonly failingSinceMs: number | null
  /** Since when it is unverified, if it is: then it is checked as often as a new one. */
  readonly unverifiedSinceMs: number
  /** When the last warning began; kept after the domain has become unverified. */
  readonly warningBeganAtMs: number | null
  readonly selector: string
  /** Time from which the key of that selector signs. */
  readonly keySinceMs: number
  /** Base64, as in the DNS record. */
  readonly publicKey: string
  /** The pending key, or null. */
  readonly pending: PendingKey | null
  readonly returnPath: RecordState
  readonly dkim: RecordState
  /** Since when one record is wrong and the other cannot be looked up; absent unless so at the last look-up. */
  readonly undecidedSinceMs?: number
  /** Test servers send from it although it is not verified; absent otherwise. */
  readonly isTestOnly?: true
  readonly removedAtMs: number | null
}

/** A row of the list of sending domains. */
export interface SendingRow {
  readonly domainId: string
  readonly failingSinceMs: number | null
  /** Since when its present DKIM key signs. */
  readonly keySinceMs: number
}

type Checked = Pick<
  DomainState,
  'verified' | 'lastCheckedAtMs' | 'failingSinceMs' | 'unverifiedSinceMs' | 'warningBeganAtMs' | 'returnPath' | 'dkim'
>

/** Additional changes of a lookup that finds the pending key. */
type Switched = Pick<DomainState, 'selector' | 'keySinceMs' | 'publicKey' | 'pending'>

export type DomainEvent =
  | { readonly type: 'added'; readonly domain: DomainState }
  | { readonly type: 'checked'; readonly checked: Checked & Partial<Switched> }
  | { readonly type: 'rotating'; readonly pending: PendingKey }
  | { readonly type: 'undecided'; readonly undecidedSinceMs: number }
  | { readonly type: 'test-use' }
  | { readonly type: 'removed'; readonly removedAtMs: number }

/** How long a verified domain whose records went missing still sends. */
export const WARNING_MS = 24 * HOUR_MS

export const domainEntity: EntityType<DomainState | null, DomainEvent> = {
  kind: 'domain',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'added') return event.domain
    if (state === null) return null
    if (event.type === 'checked') return settled({ ...decided(state), ...event.checked })
    if (event.type === 'test-use') return { ...state, isTestOnly: true }
    if (event.type === 'undecided') return { ...state, undecidedSinceMs: event.undecidedSinceMs }
    if (event.type === 'rotating') return { ...state, pending: event.pending }
    return { ...state, verified: false, failingSinceMs: null, removedAtMs: event.removedAtMs }
  },
}

/** The domain without the marks of an inconclusive look-up. */
export function decided({ undecidedSinceMs: _, ...domain }: DomainState): DomainState {
  return domain
}

/** The domain as an ordinary one if it is verified. Spec domain.test-use */
export function settled(domain: DomainState): DomainState {
  if (!domain.verified) return domain
  const { isTestOnly: _, ...ordinary } = domain
  return ordinary
}

/** Whether a lookup leaves a domain undecided, because one record is wrong and the other could not be looked up. */
export function isUndecided({ returnPath, dkim }: DomainCheck): boolean {
  const found = [returnPath, dkim]
  return found.includes('dns_error') && found.some((one) => one === 'missing' || one === 'mismatch')
}

/** Write that puts a verified domain on its shard's list of undecided ones. */
export function undecidedOp(shard: number, domainId: string, sinceMs: number): Op {
  return { key: undecidedKey(shard), write: 'ZADD', args: [String(sinceMs), domainId] }
}

/** Write that takes a domain off that list. */
export function decidedOp(shard: number, domainId: string): Op {
  return { key: undecidedKey(shard), write: 'ZREM', args: [domainId] }
}

/** How a domain's return path sees it. Spec bounce.grace */
export type DomainStanding = 'ok' | 'missing' | 'gone'

export function domainRef(domainId: string): Ref {
  return { kind: 'domain', id: domainId }
}

/** The domain with its pending key in use from `keySinceMs` on; its record counts as new. */
export function switchedKey(
  { selector, publicKey }: PendingKey,
  keySinceMs: number,
): Switched & Pick<DomainState, 'dkim'> {
  return { selector, publicKey, keySinceMs, pending: null, dkim: { verified: false, verifiedAtMs: null } }
}

/** The effect of a lookup at `nowMs` on a domain; null if nothing has to be recorded. */
export function checkedDomain(domain: DomainState, check: DomainCheck, nowMs: number): Checked | null {
  if (check.returnPath === 'dns_error' || check.dkim === 'dns_error') return null
  const records = {
    lastCheckedAtMs: nowMs,
    returnPath: checkedRecord(domain.returnPath, check.returnPath, nowMs),
    dkim: checkedRecord(domain.dkim, check.dkim, nowMs),
    unverifiedSinceMs: domain.unverifiedSinceMs,
  }
  const { warningBeganAtMs, failingSinceMs } = domain
  if (check.returnPath === 'ok' && check.dkim === 'ok')
    return { ...records, verified: true, failingSinceMs: null, warningBeganAtMs: null }
  if (!domain.verified) return { ...records, verified: false, failingSinceMs: null, warningBeganAtMs }
  if (failingSinceMs === null) return { ...records, verified: true, failingSinceMs: nowMs, warningBeganAtMs: nowMs }
  if (nowMs - failingSinceMs < WARNING_MS) return { ...records, verified: true, failingSinceMs, warningBeganAtMs }
  return { ...records, verified: false, failingSinceMs: null, unverifiedSinceMs: nowMs, warningBeganAtMs }
}

/** Writes that update the list of sending domains from the domain's state. */
export function sendingOps(shard: number, domain: DomainState): Op[] {
  const key = sendingKey(shard, domain.accountId)
  const row = JSON.stringify([domain.domainId, domain.failingSinceMs ?? 0, domain.keySinceMs])
  const put = (field: string, isThere: boolean): Op =>
    isThere ? { key, write: 'HSET', args: [field, row] } : { key, write: 'HDEL', args: [field] }
  const isTestOnly = domain.isTestOnly === true && !domain.verified && domain.removedAtMs === null
  return [put(domain.domain, domain.verified), put(testField(domain.domain), isTestOnly)]
}

/** No domain has a slash. */
const TEST = 'test/'

function testField(domain: string): string {
  return TEST + domain
}

/** The fields of the list of sending domains that decide on a domain, for servers of one mode. */
export function sendingFields(domain: string, isTest: boolean): readonly string[] {
  return isTest ? [domain, testField(domain)] : [domain]
}

/** The row of a domain that a server may send from; null if it may not. The facts contain its `sendingFields`. */
export function sendingRow(
  facts: Pick<Facts, 'field'>,
  key: string,
  { domain, isTest }: { readonly domain: string; readonly isTest: boolean },
): string | null {
  return facts.field(key, domain) ?? (isTest ? facts.field(key, testField(domain)) : null)
}

/** The whole list, by domain, as servers of one mode may use it. */
export function sendingRows(rows: ReadonlyMap<string, string>, isTest: boolean): Map<string, string> {
  const found = new Map<string, string>()
  for (const [field, row] of rows) {
    const isOfTests = field.startsWith(TEST)
    if (!isOfTests) found.set(field, row)
    else if (isTest && !rows.has(field.slice(TEST.length))) found.set(field.slice(TEST.length), row)
  }
  return found
}

/** Unpacks a row of the list of domains one may send from. */
export function unpackSending(text: string): SendingRow {
  const [domainId, failingSinceMs, keySinceMs] = JSON.parse(text) as [string, number, number]
  return { domainId, failingSinceMs: failingSinceMs || null, keySinceMs }
}

/** Field of a domain among an account's names. */
export function domainName(domain: string): string {
  return `domain/${domain}`
}

function checkedRecord(record: RecordState, found: RecordResult, nowMs: number): RecordState {
  if (found !== 'ok') return { verified: false, verifiedAtMs: null }
  return record.verified ? record : { verified: true, verifiedAtMs: nowMs }
}

/**
 * Whether mail to a domain's return path is accepted, deferred or refused. Takes the domain, or null for the service's
 * own.
 */
export function computeStanding(
  domain: Pick<DomainState, 'verified' | 'failingSinceMs' | 'warningBeganAtMs'> | null,
  nowMs: number,
): DomainStanding {
  if (domain === null) return 'ok'
  const sinceMs = domain.failingSinceMs ?? domain.warningBeganAtMs
  if (sinceMs === null) return domain.verified ? 'ok' : 'missing'
  return nowMs - sinceMs < GRACE_HOURS * HOUR_MS ? 'missing' : 'gone'
}
