/**
 * key - whose key it is: looked up by its hash
 *
 * All of a key's row but `revoked` never changes, so what was found is remembered, and an unknown key is not. That a
 * remembered key is still live is checked by who uses it: a turn in its owner's state, a view in the same round trip as
 * what it reads (`ownerOfRow`).
 *
 * A session of the dashboard is a row like a key's, and is looked up anew each time. Who reads for it proves himself by
 * `<level>.<SHA-256>`: the row must still allow that level.
 *
 * Keys: `key:<sha256>` (kind, accountId, serverId, tokenId, mode, streamId, revoked; of sessions also userId, level,
 * since, seen, confirmed; of an operator's session also operator)
 */

import type { FactOf, FactValue, ValueOf, ViewFact } from '../../cluster/behaviour.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { OperatorRole } from '../../schemas/operator/role.ts'
import type { Level } from '../../schemas/route.ts'
import { roleOfField } from '../state/api-key.ts'
import { holdsLevel, parseProof, SESSION_FIELDS, type SessionRow, sessionOfRow } from '../state/dashboard/session.ts'
import { apiKeyKey } from '../state/keys.ts'

/** What facts read, each by its kind, in their order. */
export type Values<Facts extends readonly ViewFact[]> = { readonly [Place in keyof Facts]: ValueOf<Facts[Place]> }

/** Reads facts of one shard in one step; null when the store did not answer. */
export type Reader = <const Facts extends readonly ViewFact[]>(
  shard: number,
  facts: Facts,
) => Promise<Values<Facts> | null>

/** A reader over a store: its answers stand in the order of the facts, each of the kind that was asked for. */
export function makeReader(store: {
  read(shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[] | null>
}): Reader {
  return ((shard, facts) => store.read(shard, facts)) as Reader
}

/** What every key has; all of it stays true for as long as there is the key. */
interface Key {
  readonly tokenId: string
  readonly hash: string
}

/** A key that sends, of one server. */
export interface ServerKey extends Key {
  readonly kind: 'server'
  readonly accountId: string
  readonly serverId: string
  readonly mode: 'live' | 'test'
  readonly defaultStreamId: string
}

/** A key that administers the servers and domains of one account. */
export interface AccountKey extends Key {
  readonly kind: 'account'
  readonly accountId: string
}

/** A key of the operator, or a session that was opened with one. */
export interface OperatorKey extends Key {
  readonly kind: 'operator'
  /** Of a session the SHA-256 of the key that it was opened with, and with which it ends; null: it is a key itself. */
  readonly operatorHash: string | null
  /** Of a session it is unknown here: that of its key holds. */
  readonly role: OperatorRole
}

/** A session of the dashboard. */
export interface SessionKey extends Key {
  readonly kind: 'session'
  readonly accountId: string
  readonly row: SessionRow
}

/** Whose key it is. */
export type KeyOwner = ServerKey | AccountKey | OperatorKey | SessionKey

/** A key to look for: the shard that it names, and its hash. */
export interface SoughtKey {
  readonly shard: number
  readonly hash: string
}

/** Keys remembered at once: some 10 MB. */
const REMEMBERED_MAX = 20_000
const FIELDS = ['kind', 'accountId', 'serverId', 'tokenId', 'mode', 'streamId', 'revoked', 'operator', 'role'] as const
const ALL_FIELDS = [...FIELDS, ...SESSION_FIELDS.filter((field) => !FIELDS.some((known) => known === field))]

/** The fact that holds the row of a key, or of a session. In: its hash, or the proof of a session. */
export function keyFact(shard: number, proof: string): FactOf<'fields'> {
  return { read: 'fields', key: apiKeyKey(shard, parseProof(proof)?.hash ?? proof), fields: ALL_FIELDS }
}

/** The owner that a row tells of; null when there is no such key or it was revoked. */
export function ownerOfRow(proof: string, row: readonly (string | null)[] | undefined): KeyOwner | null {
  const session = parseProof(proof)
  const hash = session?.hash ?? proof
  if (session !== null || row?.[0] === 'session') return sessionOf(hash, session?.level ?? 'r', row ?? [])
  const [kind, accountId, serverId, tokenId, mode, streamId, revoked, operator, role] = row ?? []
  if (!tokenId || revoked) return null
  if (kind === 'operator')
    return { kind, tokenId, hash, operatorHash: operator || null, role: roleOfField(kind, role) ?? 'admin' }
  if (kind === 'account' && accountId) return { kind, accountId, tokenId, hash }
  if (kind !== 'server' || !accountId || !serverId || !streamId || (mode !== 'live' && mode !== 'test')) return null
  return { kind, accountId, serverId, tokenId, mode, defaultStreamId: streamId, hash }
}

function sessionOf(hash: string, level: Level, values: readonly (string | null)[]): SessionKey | null {
  const row = sessionOfRow(new Map(ALL_FIELDS.map((field, at) => [field, values[at] ?? null])))
  if (row === null || !holdsLevel(row.level, level)) return null
  return { kind: 'session', accountId: row.accountId, tokenId: row.sessionId, hash, row }
}

/** Makes the edge's look-up of keys. It throws when the store does not answer, which the edge answers with 503. */
export function makeKeyFinder(
  read: Reader,
  rememberedMax: number = REMEMBERED_MAX,
): (key: SoughtKey, fresh?: boolean) => KeyOwner | null | Promise<KeyOwner | null> {
  const remembered = new Map<string, KeyOwner>()
  const remember = (owner: KeyOwner): KeyOwner => {
    // What was used last is last in the map, so its first entry is the one to forget.
    remembered.delete(owner.hash)
    if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value as string)
    remembered.set(owner.hash, owner)
    return owner
  }
  const look = async ({ shard, hash }: SoughtKey): Promise<KeyOwner | null> => {
    const facts = await read(shard, [keyFact(shard, hash)])
    if (facts === null) throw new Error('The store did not answer')
    const owner = ownerOfRow(hash, facts[0])
    if (owner?.kind === 'session') return owner
    if (owner !== null) return remember(owner)
    remembered.delete(hash)
    return null
  }
  return (parsed, fresh = false) => {
    const known = fresh ? undefined : remembered.get(parsed.hash)
    if (known !== undefined) return remember(known)
    return parsed.shard < SHARDS ? look(parsed) : null
  }
}
