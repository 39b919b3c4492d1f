/**
 * sealed-values - every place in the store that holds a value sealed under the ring, and the value sealed again.
 *
 * Rows of hashes are sealed again here as they are; webhooks are entities, and segments objects of the content store.
 *
 * Keys: `head`, `received-head`, `dkim`, `user`, `egress`, `webhook`, `sealed`
 *
 * Spec secret.rotate
 */

import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { formatKeyOwner } from '../../mail/compose/dkim-key.ts'
import { sourceOfField } from '../egress.ts'
import { isWrittenOff, unpackSealed } from '../message/sealed.ts'
import {
  generationOfMailKey,
  generationOfSecret,
  openMailKey,
  openSecret,
  type SealingRing,
  sealSecret,
  wrapMailKey,
} from './sealing.ts'

/** What sealing again takes. */
export interface Resealing {
  readonly ring: SealingRing
  /** A fresh nonce. */
  readonly nonce: () => Buffer
}

/** A value that needs nothing, cannot be opened with any key, or is sealed again. */
export type Resealed = 'current' | 'unreadable' | { readonly after: string }

/** A row of a hash: its key without the shard and the kind, its field and its text. */
export interface SealedField {
  readonly id: string
  readonly field: string
  readonly text: string
}

/** Context of the signing secrets of webhooks, and of the users and passwords of their URLs. */
export function webhookSecretOwner(serverId: string): string {
  return `webhook secret ${serverId}`
}

/** Context of the secret of a user's authenticator. */
export function totpOwner(userId: string): string {
  return `totp secret ${userId}`
}

/** Context of the password of the relay of a source. */
export function relayPasswordOwner(source: string): string {
  return `relay password ${source}`
}

/** Places of sealed values: in heads, in heads of received mail, and in rows of DKIM keys. */
const STORED_AT = 6
const KEY_AT = 1
const PRIVATE_KEY_AT = 2

/** The kinds of hashes whose rows have sealed values. */
export const SEALED_HASHES = {
  head: ({ ring }, { text }) => resealHead(ring, text),
  'received-head': ({ ring }, { text }) => {
    const packed = unpack(text, 'received-head')
    return then(resealMailKey(ring, packed[KEY_AT] as string), (key) => repack(packed, KEY_AT, key))
  },
  dkim: (deps, { id, field: selector, text }) => {
    const at = id.indexOf(':')
    const owner = formatKeyOwner({ accountId: id.slice(0, at), domain: id.slice(at + 1), selector })
    const packed = JSON.parse(text) as unknown[]
    return then(resealSecret(deps, { sealed: packed[PRIVATE_KEY_AT] as string, owner }), (sealed) =>
      JSON.stringify(packed.with(PRIVATE_KEY_AT, sealed)),
    )
  },
  user: (deps, { id, field, text }) =>
    field === 'totp' && text !== '' ? resealSecret(deps, { sealed: text, owner: totpOwner(id) }) : 'current',
  egress: (deps, { field, text }) => {
    const source = sourceOfField(field)
    return source === null ? 'current' : resealSecret(deps, { sealed: text, owner: relayPasswordOwner(source) })
  },
} satisfies Record<string, (deps: Resealing, row: SealedField) => Resealed>

/** A kind of hash whose rows have sealed values. */
export type SealedHash = keyof typeof SEALED_HASHES

/** A head as it is in a segment, sealed again; the same text if that is not needed, or not possible. */
export function resealedHead(ring: SealingRing, text: string): string {
  const resealed = resealHead(ring, text)
  return typeof resealed === 'string' ? text : resealed.after
}

function resealHead(ring: SealingRing, text: string): Resealed {
  const packed = unpack(text, 'head')
  const stored = packed[STORED_AT]
  if (!Array.isArray(stored)) return 'current'
  return then(resealMailKey(ring, stored[0] as string), (key) => repack(packed, STORED_AT, [key, ...stored.slice(1)]))
}

/** Whether a sealed segment has keys of an earlier generation: its own, or those in its heads. */
export function isFormerSegment(packed: string, current: number): boolean {
  const row = unpackSealed(packed)
  if (row === null || row.generation === 0 || isWrittenOff(row)) return false
  return generationOfMailKey(row.key) < current || (row.headKeys ?? 0) < current
}

/** The key of a mail, sealed again. */
export function resealMailKey(ring: SealingRing, sealed: string): Resealed {
  if (generationOfMailKey(sealed) === ring.sealing().generation) return 'current'
  const key = openMailKey(ring, sealed)
  return key === null ? 'unreadable' : { after: wrapMailKey(ring, key) }
}

/** A secret in base64, sealed again for the same owner. */
export function resealSecret(
  { ring, nonce }: Resealing,
  { sealed, owner }: { readonly sealed: string; readonly owner: string },
): Resealed {
  const bytes = Buffer.from(sealed, 'base64')
  if (generationOfSecret(bytes) === ring.sealing().generation) return 'current'
  const secret = openSecret(ring, { sealed: bytes, owner })
  if (secret === null) return 'unreadable'
  return { after: sealSecret(ring, { secret, owner, nonce: nonce() }).toString('base64') }
}

function then(resealed: Resealed, pack: (after: string) => string): Resealed {
  return typeof resealed === 'string' ? resealed : { after: pack(resealed.after) }
}

function unpack(text: string, name: string): unknown[] {
  return JSON.parse(withoutSum(text, name)) as unknown[]
}

function repack(packed: unknown[], at: number, value: unknown): string {
  return withSum(JSON.stringify(packed.with(at, value)))
}
