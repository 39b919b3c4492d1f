/**
 * dkim-pair - the DKIM key pairs of a sending domain of an account, and the pair that signs a message.
 *
 * A message is signed with the pair that was in use when it was accepted, however often it is tried: pairs of a removed
 * domain, and from before a rotation, are kept until no mail of theirs can be in flight. So they are stored under the
 * domain's name, not its id, which differs once the domain is added again.
 *
 * Key: `dkim:<account>:<domain>`, field = selector, `[in use since ms or 0, public key, sealed private key]`
 *
 * Spec dkim.signed
 */

import type { Fact, Op } from '../../cluster/behaviour.ts'
import { DAY_MS } from './calendar.ts'
import { dkimKey } from './keys.ts'

/** Retries span two days; the rest is for mail that was held. */
const REMAINS_MS = 30 * DAY_MS
/** A hundred years, because "no expiry" cannot be expressed as a write. */
const STAYS_MS = 36_500 * DAY_MS
/** Pairs kept beside the one in use; beyond that the oldest go. */
const FORMER_MAX = 15

export interface DkimPair {
  readonly selector: string
  /** Since when it signs; 0 = it does not yet. */
  readonly sinceMs: number
  /** Base64, as in the DNS record. */
  readonly publicKey: string
  readonly sealedPrivateKey: string
}

/** Whose pairs. */
export interface PairPlace {
  readonly shard: number
  readonly accountId: string
  /** In lower case. */
  readonly domain: string
}

/** The pair of a field; or null. */
export function unpackPair(selector: string, packed: string | null | undefined): DkimPair | null {
  if (packed === undefined || packed === null) return null
  const [sinceMs, publicKey, sealedPrivateKey] = JSON.parse(packed) as [number, string, string]
  return { selector, sinceMs, publicKey, sealedPrivateKey }
}

/** The pair in use at a moment, of all stored ones, or null. */
export function pairAt(rows: ReadonlyMap<string, string>, atMs: number): DkimPair | null {
  let found: DkimPair | null = null
  for (const pair of pairsOf(rows))
    if (pair.sinceMs > 0 && pair.sinceMs <= atMs && pair.sinceMs > (found?.sinceMs ?? 0)) found = pair
  return found
}

/** Writes that store a pair in addition to the existing ones (`rows`), and keep all while the domain exists. */
export function keepPairOps(
  place: PairPlace,
  rows: ReadonlyMap<string, string>,
  of: { readonly pair: DkimPair; readonly nowMs: number },
): Op[] {
  const { selector } = of.pair
  const key = keyOf(place)
  const former = pairsOf(rows)
    .filter((pair) => pair.selector !== selector)
    .sort((one, other) => other.sinceMs - one.sinceMs)
    .slice(FORMER_MAX)
    .map((pair) => pair.selector)
  const ops: Op[] = [{ key, write: 'HSET', args: [selector, packPair(of.pair)] }]
  if (former.length > 0) ops.push({ key, write: 'HDEL', args: former })
  if (rows.size > 0) ops.push({ key, write: 'PEXPIREAT', args: [String(of.nowMs + STAYS_MS)] })
  return ops
}

/** The read of one pair. */
export function pairFact({ shard, accountId, domain }: PairPlace, selector: string): Fact & { read: 'fields' } {
  return { read: 'fields', key: dkimKey(shard, accountId, domain), fields: [selector] }
}

/** The write that makes a stored pair sign from `sinceMs` on. */
export function activateOps(place: PairPlace, pair: DkimPair, sinceMs: number): Op[] {
  return [{ key: keyOf(place), write: 'HSET', args: [pair.selector, packPair({ ...pair, sinceMs })] }]
}

/** The writes that let the pairs of a removed domain expire once no mail of it can be in flight. */
export function endPairsOps(place: PairPlace, nowMs: number): Op[] {
  return [{ key: keyOf(place), write: 'PEXPIREAT', args: [endOfRemainsMs(nowMs)] }]
}

/** When the remaining data of a removed domain is removed. */
export function endOfRemainsMs(nowMs: number): string {
  return String(nowMs + REMAINS_MS)
}

function packPair({ sinceMs, publicKey, sealedPrivateKey }: DkimPair): string {
  return JSON.stringify([sinceMs, publicKey, sealedPrivateKey])
}

function keyOf({ shard, accountId, domain }: PairPlace): string {
  return dkimKey(shard, accountId, domain)
}

function pairsOf(rows: ReadonlyMap<string, string>): DkimPair[] {
  return Array.from(rows, ([selector, packed]) => unpackPair(selector, packed) as DkimPair)
}
