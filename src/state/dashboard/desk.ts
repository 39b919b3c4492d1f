/**
 * desk - the operator's view in a browser: sessions that were opened with the operator's key, and links that open one.
 *
 * A session is a row like a key's, which names the key that it was opened with and ends with it. All links are in one
 * hash: using one removes the others of its key.
 *
 * Keys, all on shard 0: `key:<sha256>` hash `kind` (`operator`), `tokenId` (of the key), `revoked`, `operator` (SHA-256
 * of the key); it expires with the session. `desk-links` hash linkId -> `[SHA-256 of the key, tokenId, ends ms]`; it
 * expires with the last link.
 *
 * Spec operator.session, operator.link
 */

import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { apiKeyKey } from '../keys.ts'
import { deskLinksKey } from './places.ts'

/** Where the operator's keys live. */
export const DESK_SHARD = 0

/** The operator's key behind a session or a link. */
export interface DeskKey {
  /** SHA-256 of the key, hex. */
  readonly operatorHash: string
  readonly tokenId: string
}

export interface DeskLink extends DeskKey {
  readonly endsAtMs: number
}

/** The read of all links. */
export function deskLinksFact(): FactOf<'hash'> {
  return { read: 'hash', key: deskLinksKey(DESK_SHARD) }
}

function packDeskLink({ operatorHash, tokenId, endsAtMs }: DeskLink): string {
  return JSON.stringify([operatorHash, tokenId, endsAtMs])
}

export function unpackDeskLink(text: string): DeskLink {
  const [operatorHash, tokenId, endsAtMs] = JSON.parse(text) as [string, string, number]
  return { operatorHash, tokenId, endsAtMs }
}

/** The valid link of an id, or null. Takes the result of `deskLinksFact`. */
export function deskLinkIn(links: ReadonlyMap<string, string>, linkId: string, nowMs: number): DeskLink | null {
  const packed = links.get(linkId)
  const link = packed === undefined ? null : unpackDeskLink(packed)
  return link !== null && link.endsAtMs > nowMs ? link : null
}

/** The writes of a new link beside those that stay. */
export function deskLinkOps(linkId: string, link: DeskLink, others: readonly Pick<DeskLink, 'endsAtMs'>[]): Op[] {
  const { key } = deskLinksFact()
  const endsAtMs = Math.max(link.endsAtMs, ...others.map((one) => one.endsAtMs))
  return [
    { key, write: 'HSET', args: [linkId, packDeskLink(link)] },
    { key, write: 'PEXPIREAT', args: [String(endsAtMs)] },
  ]
}

/** The writes of a new session. Takes the hash of its token. */
export function deskSessionOps(hash: string, { operatorHash, tokenId }: DeskKey, endsAtMs: number): Op[] {
  const key = apiKeyKey(DESK_SHARD, hash)
  const fields = { kind: 'operator', tokenId, revoked: '', operator: operatorHash }
  return [
    { key, write: 'HSET', args: Object.entries(fields).flat() },
    { key, write: 'PEXPIREAT', args: [String(endsAtMs)] },
  ]
}
