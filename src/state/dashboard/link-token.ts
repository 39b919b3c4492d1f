/**
 * link-token - the token of a link, which only this installation makes: the link's id, and a MAC over it
 *
 * Spec link.once
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { makeLinkId, shardOfLink } from './link.ts'

export const LINK_ID_BYTES = 16
const TOKEN = /^([0-9a-f]{34})\.([\w-]{43})$/

/** A link's id. Takes its shard, and `LINK_ID_BYTES` of randomness. */
export function newLinkId(shard: number, random: Buffer): string {
  return makeLinkId(shard, random.toString('hex'))
}

/** The token of a link. */
export function formatLinkToken(linkId: string, key: Buffer): string {
  return `${linkId}.${computeMac(linkId, key).toString('base64url')}`
}

/** The dashboard's URL for a browser. It has a host name, which browsers trust without TLS, unlike an IP address. */
export function dashboardBase(baseUrl: string): string {
  return baseUrl.replace(/^(https?:\/\/)(?:127\.0\.0\.1|\[::1\])(?=[:/]|$)/, '$1localhost')
}

/** The URL of a link, whose token is in the fragment and never reaches a server. */
export function linkUrl(baseUrl: string, linkId: string, key: Buffer): string {
  return `${baseUrl}/dashboard/link#${formatLinkToken(linkId, key)}`
}

/** Reads a token; null if this installation has not made it. */
export function parseLinkToken(token: string, key: Buffer): { readonly linkId: string; readonly shard: number } | null {
  const [, linkId = '', mac = ''] = TOKEN.exec(token) ?? []
  const shard = shardOfLink(linkId)
  if (shard === null || !timingSafeEqual(Buffer.from(mac, 'base64url'), computeMac(linkId, key))) return null
  return { linkId, shard }
}

function computeMac(linkId: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(linkId).digest()
}
