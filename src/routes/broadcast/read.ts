/**
 * read - the body of a broadcast, from its bytes to what is stored of it
 *
 * Spec broadcast.body, request.json, error.issues
 */

import { isUtf8 } from 'node:buffer'
import { BROADCAST_BODY, type BroadcastBody } from '../../../schemas/broadcast.ts'
import type { Issue } from '../../../schemas/error.ts'
import { isOvernested } from '../../http/shape/nesting.ts'
import { compileBody } from '../../http/shape/validate.ts'
import { checkBroadcast } from '../../sending/broadcast/check.ts'
import { type BroadcastHashes, type PreparedBroadcast, prepareBroadcast } from '../../sending/broadcast/prepare.ts'

/** What the thread is given. */
export interface ReadJob {
  readonly pieces: readonly ArrayBuffer[]
  readonly secretKey: string
  readonly accountId: string
  readonly serverId: string
}

/** What it makes of it. */
export type ReadResult =
  | { readonly ok: true; readonly prepared: PreparedBroadcast; readonly streamId: string }
  | { readonly ok: false; readonly issues: readonly Issue[] }

/** Lists and objects of a broadcast with 50,000 messages: four of each, and what stands around them. */
const NESTED_MAX = 210_000

const check = compileBody<BroadcastBody>(BROADCAST_BODY)
const NOT_JSON: ReadResult = { ok: false, issues: [{ path: '', message: 'Must be JSON in UTF-8' }] }

/** Reads a body. In: its bytes in pieces. */
export function parseBroadcast(pieces: readonly Buffer[], hashes: BroadcastHashes): ReadResult {
  const bytes = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  if (!isUtf8(bytes)) return NOT_JSON
  const text = bytes.toString('utf8')
  if (isOvernested(text, NESTED_MAX)) return NOT_JSON
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return NOT_JSON
  }
  const checked = check(value, text.includes('\\u'))
  if (!checked.ok) return checked
  const issues = checkBroadcast(checked.value)
  if (issues.length > 0) return { ok: false, issues }
  return { ok: true, prepared: prepareBroadcast(checked.value, hashes), streamId: checked.value.streamId.toLowerCase() }
}
