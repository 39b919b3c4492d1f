/**
 * key - whose key it is: looked up by its hash
 *
 * All fields of a key's row except `revoked` never change, so known keys are cached; unknown keys are not. Callers
 * check that a cached key is still live: a turn in the state of its owner, a view in the same read as its data
 * (`ownerOfRow`).
 *
 * A session of the dashboard is a row like that of a key, and is read every time. Its proof is `<level>.<SHA-256>`,
 * and the row must still allow that level.
 *
 * Keys: `key:<sha256>` (kind, accountId, serverId, tokenId, mode, streamId, revoked; for sessions also userId, level,
 * since, seen, confirmed; for an operator's session also operator)
 */

import type { FactOf, FactValue, ValueOf, ViewFact } from '../../cluster/behaviour.ts'
import { SHARDS } from '../../cluster/id.ts'
import type { OperatorRole } from '../../schemas/operator/role.ts'
import type { Level } from '../../schemas/route.ts'
import { roleOfField } from '../state/api-key.ts'
import { holdsLevel, parseProof, SESSION_FIELDS, type SessionRow, sessionOfRow } from '../state/dashboard/session.ts'
import { apiKeyKey } from '../state/keys.ts'

/** The values of facts, each by its kind, in their order. */
export type Values<Facts extends readonly ViewFact[]> = { readonly [Place in keyof Facts]: ValueOf<Facts[Place]> }

/** Reads facts of one shard in one step; null when the store did not answer. */
export type Reader = <const Facts extends readonly ViewFact[]>(
  shard: number,
  facts: Facts,
) => Promise<Values<Facts> | null>

/** A reader over a store, whose answers are in the order of the facts, each of the fact's kind. */
export function makeReader(store: {
  read(shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[] | null>
}): Reader {
  return ((shard, facts) => store.read(shard, facts)) as Reader
}

/** Fields of every key, which never change. */
interface Key {
  readonly tokenId: string
  readonly hash: string
  /** The user, if the key is derived from a session. */
  readonly userId?: string
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

/** A key of the operator, or a session opened with one. */
export interface OperatorKey extends Key {
  readonly kind: 'operator'
  /** For a session, the SHA-256 of the key that opened it and with which it ends; null for a key. */
  readonly operatorHash: string | null
  /** Unknown here for a session, for which the role of its key applies. */
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

/** The shard and the hash of a presented key. */
export interface SoughtKey {
  readonly shard: number
  readonly hash: string
}

/** Maximum number of cached keys: some 10 MB. */
const REMEMBERED_MAX = 20_000
const FIELDS = ['kind', 'accountId', 'serverId', 'tokenId', 'mode', 'streamId', 'revoked', 'operator', 'role'] as const
const ALL_FIELDS = [...FIELDS, ...SESSION_FIELDS.filter((field) => !FIELDS.some((known) => known === field))]

/** The fact that holds the row of a key, or of a session. In: the key's hash, or the proof of a session. */
export function keyFact(shard: number, proof: string): FactOf<'fields'> {
  return { read: 'fields', key: apiKeyKey(shard, parseProof(proof)?.hash ?? proof), fields: ALL_FIELDS }
}

/** The owner in a row; null if there is no such key or it was revoked. */
export function ownerOfRow(proof: string, row: readonly (string | null)[] | undefined): KeyOwner | null {
  const session = parseProof(proof)
  const hash = session?.hash ?? proof
  if (session !== null || row?.[0] === 'session') return parseSession(hash, session?.level ?? 'r', row ?? [])
  const [kind, accountId, serverId, tokenId, mode, streamId, revoked, operator, role] = row ?? []
  if (!tokenId || revoked) return null
  if (kind === 'operator')
    return { kind, tokenId, hash, operatorHash: operator || null, role: roleOfField(kind, role) ?? 'admin' }
  if (kind === 'account' && accountId) return { kind, accountId, tokenId, hash }
  if (kind !== 'server' || !accountId || !serverId || !streamId || (mode !== 'live' && mode !== 'test')) return null
  return { kind, accountId, serverId, tokenId, mode, defaultStreamId: streamId, hash }
}

function parseSession(hash: string, level: Level, values: readonly (string | null)[]): SessionKey | null {
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
    // The map is in order of last use, so its first entry is evicted.
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
