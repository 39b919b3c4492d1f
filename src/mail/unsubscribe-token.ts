/**
 * unsubscribe-token - what an unsubscribe link names: a recipient of a message, its server and stream, and the person
 *
 * A token is 128 characters of base32: `type<<4|keyId` (1 byte), the message's uuid (16), the recipient's index (1),
 * the uuids of server and stream (32), the keyed hash of the person's address (17: 132 bits), HMAC-SHA256 over all
 * these, truncated to 13 bytes. The server is included because an id alone names only a shard; the person, because the
 * link must work after the address has been erased; the stream, because it must work after the message has left the
 * log. Without the key no valid token can be made.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { decodeBase32, encodeBase32 } from './base32.ts'
import type { TokenRecipient } from './return-path.ts'

/** Whom a link unsubscribes. */
export interface UnsubscribeTarget extends TokenRecipient {
  /** uuid */
  readonly serverId: string
  /** uuid of the broadcast stream. */
  readonly streamId: string
  /** Keyed hash of the address within its account, 22 characters of base64url. */
  readonly hmac: string
}

/** Which of up to 16 keys signed: there is one, until the installation's secret can be changed. */
const KEY_ID = 0
/** 1 is that of return paths (`return-path.ts`). */
const TOKEN_TYPE = 2
const SERVER_AT = 18
const STREAM_AT = 34
const PERSON_AT = 50
const PERSON_BYTES = 17
const PERSON_CHARS = 22
const MAC_AT = PERSON_AT + PERSON_BYTES
const MAC_BYTES = 13
const TOKEN_BYTES = MAC_AT + MAC_BYTES
const TOKEN_PATTERN = /^[a-z2-7]{128}$/

/** The token of a recipient, 128 characters. Takes the key that signs tokens. */
export function formatUnsubscribeToken(
  key: Buffer,
  { messageId, recipient, serverId, streamId, hmac }: UnsubscribeTarget,
): string {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  bytes[0] = (TOKEN_TYPE << 4) | KEY_ID
  bytes.write(messageId.replaceAll('-', ''), 1, 'hex')
  bytes[17] = recipient
  bytes.write(serverId.replaceAll('-', ''), SERVER_AT, 'hex')
  bytes.write(streamId.replaceAll('-', ''), STREAM_AT, 'hex')
  // 22 characters are 132 bits; two unused bits fill the last byte.
  bytes.write(`${hmac}AA`, PERSON_AT, PERSON_BYTES, 'base64url')
  computeMac(key, bytes).copy(bytes, MAC_AT)
  return encodeBase32(bytes)
}

/** The link of a token. Takes the service's public address. */
export function formatUnsubscribeUrl(baseUrl: string, token: string): string {
  return `${baseUrl.replace(/\/+$/, '')}/u/${token}`
}

/** Data of a token, in any case; null for one made without the key. */
export function parseUnsubscribeToken(key: Buffer, token: string): UnsubscribeTarget | null {
  const lower = token.toLowerCase()
  if (!TOKEN_PATTERN.test(lower)) return null
  const bytes = decodeBase32(lower)
  // Compared in constant time: how much of a guess was right must not show.
  if (!timingSafeEqual(computeMac(key, bytes), bytes.subarray(MAC_AT))) return null
  if (bytes[0] !== ((TOKEN_TYPE << 4) | KEY_ID)) return null
  return {
    messageId: uuidAt(bytes, 1),
    recipient: bytes[17] as number,
    serverId: uuidAt(bytes, SERVER_AT),
    streamId: uuidAt(bytes, STREAM_AT),
    hmac: bytes.toString('base64url', PERSON_AT, MAC_AT).slice(0, PERSON_CHARS),
  }
}

function uuidAt(bytes: Buffer, at: number): string {
  const hex = bytes.toString('hex', at, at + 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

function computeMac(key: Buffer, bytes: Buffer): Buffer {
  return createHmac('sha256', key).update(bytes.subarray(0, MAC_AT)).digest().subarray(0, MAC_BYTES)
}
