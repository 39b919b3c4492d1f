/**
 * suppression - the suppression lists of a server, as its key's owner and the operator see them
 *
 * A search walks the server's list from the newest entry down; one for an address looks at its place on each stream
 * alone. An entry of the list whose row is gone, or holds another suppression, was lifted and is not there.
 *
 * Keys: `suppressions:<server>`, `suppressed:<stream>:<x>`, `names:<account>`, `person:<account>:<x…>`
 *
 * Spec suppression.search, suppression.entry, list.page
 */

import type { Entry, FactOf } from '../../cluster/behaviour.ts'
import { homeShard, idOfEntry, msOf, shardOf } from '../../cluster/id.ts'
import { SUPPRESSIONS_LOOKED_AT_MAX } from '../../schemas/limits.ts'
import type { SuppressionEntry } from '../../schemas/suppression.ts'
import { unmaskAddress } from '../mail/reply.ts'
import { namesKey, suppressionsKey } from '../state/keys.ts'
import { formatPseudonym } from '../state/person/person.ts'
import type { StreamState } from '../state/stream.ts'
import { streamRef } from '../state/stream.ts'
import {
  isLiftable,
  parsePlace,
  placeFact,
  type Suppression,
  type SuppressionPlace,
  type SuppressionReason,
  suppressedKeyOf,
  unpackSuppression,
} from '../state/suppression.ts'
import { lowerBound, upperBound } from './bound.ts'
import { entityFact, parseState } from './entity.ts'
import { formatInstant } from './instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'
import { readPersons } from './person.ts'
import { readTogether } from './read-together.ts'

/** Entries read in one step of a walk. */
const STEP_ENTRIES = 1000

/** Whose lists are looked at. */
export interface ListOwner {
  readonly accountId: string
  readonly serverId: string
  readonly defaultStreamId: string
}

/** The filters; null for any. */
export interface SuppressionFilter {
  readonly streamId: string | null
  /** HMAC of an address within the account. */
  readonly hmac: string | null
  readonly reason: SuppressionReason | null
  readonly fromMs: number | null
  /** Before this instant. */
  readonly toMs: number | null
  readonly limit: number
  /** Below this id. */
  readonly after: string | null
}

/** A suppression with the stream that it is on. */
interface Found extends SuppressionPlace {
  readonly entry: Suppression
}

/** Local part of the pseudonym of an erased address, derived from its HMAC. */
type PseudonymOf = (hmac: string) => string

interface FoundPage {
  readonly found: readonly Found[]
  readonly next: string | null
}

export interface SuppressionPage {
  readonly suppressions: SuppressionEntry[]
  readonly next: string | null
}

/** A page of the suppressions of a server. In: `keyHash`, that of a server's key, or null for the operator. */
export async function searchSuppressions(
  read: Reader,
  owner: ListOwner,
  { keyHash, filter, pseudonymOf }: { keyHash: string | null; filter: SuppressionFilter; pseudonymOf: PseudonymOf },
): Promise<SuppressionPage | 'unauthorized' | 'stream_not_found' | 'unavailable'> {
  const shard = homeShard(owner.accountId)
  const { streamId } = filter
  const isElsewhere = streamId !== null && shardOf(streamId) !== shard
  const seen = await readTogether(read, shard, [
    keyHash === null ? [] : [keyFact(shard, keyHash)],
    streamId === null || isElsewhere ? [] : [entityFact(shard, streamRef(streamId))],
  ])
  if (seen === null) return 'unavailable'
  const [[key], [found]] = seen
  if (keyHash !== null && ownerOfRow(keyHash, key) === null) return 'unauthorized'
  const stream = parseState<StreamState>(found)
  if (streamId !== null && (isElsewhere || stream?.serverId !== owner.serverId)) return 'stream_not_found'
  const page =
    filter.hmac === null ? await walk(read, owner, filter) : await look(read, owner, { ...filter, hmac: filter.hmac })
  return page === null ? 'unavailable' : formatPage(read, owner, { page, pseudonymOf })
}

/** One suppression of the key's server. */
export async function readSuppression(
  read: Reader,
  owner: ServerKey,
  { suppressionId, pseudonymOf }: { suppressionId: string; pseudonymOf: PseudonymOf },
): Promise<SuppressionEntry | 'unauthorized' | 'not_found' | 'unavailable'> {
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const id = suppressionId.toLowerCase()
  const isHere = shardOf(id) === shard
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    ...(isHere ? [placeFact(shard, { serverId, suppressionId: id })] : []),
  ])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const rows = await readRows(read, shard, seen[1] ?? [])
  if (rows === null) return 'unavailable'
  const found = rows.filter((row) => row !== null)
  const page = await formatPage(read, owner, { page: { found, next: null }, pseudonymOf })
  return page === 'unavailable' ? page : (page.suppressions[0] ?? 'not_found')
}

/** Walks from the newest entry down, within the bound of one search. */
async function walk(
  read: Reader,
  { accountId, serverId }: ListOwner,
  filter: SuppressionFilter,
): Promise<FoundPage | null> {
  const shard = homeShard(accountId)
  const { limit, fromMs } = filter
  const found: Found[] = []
  const from = lowerBound(fromMs)
  let to = upperBound(filter)
  for (let looked = 0; looked < SUPPRESSIONS_LOOKED_AT_MAX; looked += STEP_ENTRIES) {
    const seen = await read(shard, [
      { read: 'newest', key: suppressionsKey(shard, serverId), from, to, count: STEP_ENTRIES },
    ])
    const entries = seen?.[0]
    const rows = entries === undefined ? null : await readRows(read, shard, entries)
    if (entries === undefined || rows === null) return null
    for (const row of rows) {
      if (row === null || !matches(row, filter)) continue
      if (found.length === limit) return { found, next: found.at(-1)?.entry.suppressionId ?? null }
      found.push(row)
    }
    const last = entries.at(-1)
    if (last === undefined || entries.length < STEP_ENTRIES) return { found, next: null }
    to = `(${last.id}`
  }
  return { found, next: idOfEntry(to.slice(1), shard) }
}

/** The place of one address on each stream that it may be on. */
async function look(
  read: Reader,
  owner: ListOwner,
  filter: SuppressionFilter & { readonly hmac: string },
): Promise<FoundPage | null> {
  const shard = homeShard(owner.accountId)
  const { hmac } = filter
  const streamIds = filter.streamId === null ? await readStreamIds(read, owner) : [filter.streamId]
  const places = streamIds?.map((streamId) => ({ streamId, hmac }))
  const seen =
    places === undefined
      ? null
      : await read(
          shard,
          places.map((place) => rowFact(shard, place)),
        )
  if (places === undefined || seen === null) return null
  const { limit, after, fromMs, toMs } = filter
  const found = seen
    .flatMap((row, index) => foundOf(row, places[index]) ?? [])
    .filter((row) => matches(row, filter))
    .filter(({ entry: { suppressionId } }) => {
      const ms = msOf(suppressionId)
      return (after === null || suppressionId < after) && ms >= (fromMs ?? 0) && ms < (toMs ?? Number.POSITIVE_INFINITY)
    })
    .sort((one, other) => (one.entry.suppressionId < other.entry.suppressionId ? 1 : -1))
  const page = found.slice(0, limit)
  return { found: page, next: found.length > limit ? (page.at(-1)?.entry.suppressionId ?? null) : null }
}

/** Streams of the server; null when the store did not answer. */
async function readStreamIds(
  read: Reader,
  { accountId, serverId, defaultStreamId }: ListOwner,
): Promise<readonly string[] | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [{ read: 'hash', key: namesKey(shard, accountId) }])
  if (seen === null) return null
  const ids = new Set([defaultStreamId])
  for (const [name, id] of seen[0]) if (name.startsWith(`stream/${serverId}/`)) ids.add(id)
  return [...ids]
}

/** The rows of entries, null for a lifted suppression; null instead of the list if the store did not answer. */
async function readRows(
  read: Reader,
  shard: number,
  entries: readonly Entry[],
): Promise<readonly (Found | null)[] | null> {
  const places = entries.map(parsePlace)
  const known = places.filter((place) => place !== null)
  const seen = await read(
    shard,
    known.map((place) => rowFact(shard, place)),
  )
  if (seen === null) return null
  const values = seen.values()
  return entries.map(({ id }, index) => {
    const place = places[index] ?? null
    const row = place === null ? null : foundOf(values.next().value, place)
    return row?.entry.suppressionId === idOfEntry(id, shard) ? row : null
  })
}

function rowFact(shard: number, place: SuppressionPlace): FactOf<'fields'> {
  return { read: 'fields', key: suppressedKeyOf(shard, place), fields: [place.hmac] }
}

function foundOf(row: readonly (string | null)[] | undefined, place: SuppressionPlace | undefined): Found | null {
  const packed = row?.[0] ?? null
  return packed === null || place === undefined ? null : { ...place, entry: unpackSuppression(packed) }
}

function matches({ streamId, entry }: Found, filter: SuppressionFilter): boolean {
  return (
    (filter.streamId === null || filter.streamId === streamId) &&
    (filter.reason === null || filter.reason === entry.reason)
  )
}

async function formatPage(
  read: Reader,
  { accountId }: ListOwner,
  { page: { found, next }, pseudonymOf }: { page: FoundPage; pseudonymOf: PseudonymOf },
): Promise<SuppressionPage | 'unavailable'> {
  const numbers = found.map(({ entry }) => entry.number)
  const persons = await readPersons(read, { shard: homeShard(accountId), accountId, numbers })
  if (persons === null) return 'unavailable'
  const suppressions = found.map(({ streamId, hmac, entry }, index): SuppressionEntry => {
    const { suppressionId, reason, messageId, code, response } = entry
    // The row of an erased person is removed with the last message; the pseudonym is then derived from the entry.
    const recipient = persons[index] || formatPseudonym(pseudonymOf(hmac))
    return {
      suppressionId,
      streamId,
      recipient,
      reason,
      messageId,
      code,
      response: response === null ? null : unmaskAddress(response, recipient),
      liftable: isLiftable(reason),
      createdAt: formatInstant(msOf(suppressionId)),
    }
  })
  return { suppressions, next }
}
