/**
 * key - the form of an API key: made, and read back without a look-up
 *
 * `<kind>_<8 public characters>_<32 random characters><6 of checksum>`, all base62. The first two public characters
 * carry the shard of the owner. Only the SHA-256 of the whole is ever stored.
 *
 * Spec key.format
 */

import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { KeyOwner } from '../views/key.ts'

export type { KeyOwner } from '../views/key.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Value of each base62 character by its code. */
const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => Math.max(0, BASE62.indexOf(String.fromCharCode(code))))
const PUBLIC_CHARS = 8
const SHARD_CHARS = 2
const RANDOM_CHARS = 32
const CHECKSUM_CHARS = 6
const TOKEN = /^(sk|sk_test|ak|ok|os|ss)_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/

/** Shards that two base62 characters can name. */
export const KEY_SHARDS_MAX = 62 ** SHARD_CHARS

export type TokenKind = 'sk' | 'sk_test' | 'ak' | 'ok' | 'os' | 'ss'

/** A key of the right form; whether it is known is another question. */
export interface ParsedKey {
  readonly kind: TokenKind
  readonly shard: number
  /** Kind and public characters, to recognise a key by. */
  readonly prefix: string
  /** SHA-256 of the whole key, in hex. */
  readonly hash: string
}

/** A key just made; `token` is shown once. */
export interface MadeKey {
  readonly token: string
  readonly prefix: string
  readonly hash: string
}

/**
 * Looks a key up; null: unknown or revoked. May answer at once when it has the owner in memory, and then does not know
 * whether the key was revoked since; `fresh` asks the store in any case.
 */
export type KeyFinder = (parsed: ParsedKey, fresh?: boolean) => KeyOwner | null | Promise<KeyOwner | null>

/** Makes a key. Takes its kind and the shard of its owner (0 to 3843; RangeError outside). Spec key.format */
export function makeKey(kind: TokenKind, shard: number): MadeKey {
  if (!Number.isInteger(shard) || shard < 0 || shard >= KEY_SHARDS_MAX) throw new RangeError('Shard out of range')
  const prefix = `${kind}_${formatBase62(shard, SHARD_CHARS)}${makeRandom(PUBLIC_CHARS - SHARD_CHARS)}`
  const body = `${prefix}_${makeRandom(RANDOM_CHARS)}`
  const token = body + computeChecksum(body)
  return { token, prefix, hash: hashToken(token) }
}

/** Reads a key from any text; null unless form and checksum are right. Spec key.format */
export function parseKey(text: string): ParsedKey | null {
  const kind = TOKEN.exec(text)?.[1]
  if (kind === undefined) return null
  const bodyEnd = text.length - CHECKSUM_CHARS
  if (parseBase62(text.slice(bodyEnd)) !== crc32(text.slice(0, bodyEnd))) return null
  const publicStart = kind.length + 1
  const shard = parseBase62(text.slice(publicStart, publicStart + SHARD_CHARS))
  return { kind: kind as TokenKind, shard, prefix: text.slice(0, publicStart + PUBLIC_CHARS), hash: hashToken(text) }
}

function hashToken(token: string): string {
  return hash('sha256', token, 'hex')
}

function computeChecksum(text: string): string {
  return formatBase62(crc32(text), CHECKSUM_CHARS)
}

function makeRandom(chars: number): string {
  let text = ''
  while (text.length < chars) text += BASE62.charAt(randomInt(BASE62.length))
  return text
}

function formatBase62(number: number, chars: number): string {
  let text = ''
  for (let rest = number; text.length < chars; rest = Math.floor(rest / 62)) text = BASE62.charAt(rest % 62) + text
  return text
}

function parseBase62(text: string): number {
  let number = 0
  for (let at = 0; at < text.length; at += 1) number = number * 62 + (DIGITS[text.charCodeAt(at)] ?? 0)
  return number
}
