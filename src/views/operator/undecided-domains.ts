/**
 * undecided-domains - verified domains without a conclusive look-up for a day: one record is missing or wrong, and the
 * other cannot be looked up, so the domain neither fails nor is checked
 *
 * Keys: `undecided` of every shard, `domain:<id>`
 *
 * Spec domain.states, operator.health
 */

import { SHARDS } from '../../../cluster/id.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { undecidedKey } from '../../state/keys.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import type { ReadKeys } from '../read-keys.ts'
import { makeTtlCache } from '../ttl-cache.ts'

/** Domains of a shard that are read. */
const DOMAINS_MAX = 100
/** As long as the warning would have lasted. */
const UNDECIDED_MS = DAY_MS
/** One read serves all callers within this time. */
const FRESH_MS = 3_000

export interface UndecidedDomain {
  readonly domain: string
  readonly sinceMs: number
}

/** The domains, longest undecided first, at most 100 of a shard; null if a store did not answer. */
export async function readUndecidedDomains(read: Reader, nowMs: number): Promise<readonly UndecidedDomain[] | null> {
  const lists = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => readShard(read, shard, nowMs)))
  if (lists.includes(null)) return null
  return lists.flatMap((list) => list ?? []).sort((one, other) => one.sinceMs - other.sinceMs)
}

async function readShard(read: Reader, shard: number, nowMs: number): Promise<UndecidedDomain[] | null> {
  const max = nowMs - UNDECIDED_MS
  const seen = await read(shard, [{ read: 'sorted', key: undecidedKey(shard), min: 0, max, count: DOMAINS_MAX }])
  if (seen === null || seen[0].length === 0) return seen === null ? null : []
  const states = await read(
    shard,
    seen[0].map(([id]) => entityFact(shard, domainRef(id))),
  )
  if (states === null) return null
  return seen[0].flatMap(([, sinceMs], at) => {
    const state = parseState<DomainState>(states[at])
    return state === null ? [] : [{ domain: state.domain, sinceMs }]
  })
}

export interface DomainFigureDeps {
  readonly readKeys: ReadKeys
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** The shards owned by this process. */
  readonly shards: () => readonly number[]
}

/** Figures by name. */
export type DomainFigures = () => Promise<Readonly<Record<string, number>>>

/** Counts the domains of this process's shards, at most every three seconds. */
export function makeDomainFigures({ readKeys, nowMs, shards }: DomainFigureDeps): DomainFigures {
  const look = async () => {
    const args = [0, nowMs() - UNDECIDED_MS]
    const counts = await readKeys(
      'zcount',
      shards().map((shard) => ({ shard, key: undecidedKey(shard), args })),
    )
    return counts === null ? null : { domainsUndecided: counts.reduce((sum, count) => sum + count, 0) }
  }
  return makeTtlCache({ first: { domainsUndecided: 0 }, freshMs: FRESH_MS, nowMs, look })
}
