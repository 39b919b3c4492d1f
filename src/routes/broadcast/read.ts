/**
 * read - parses the body of a broadcast into stored data
 *
 * Spec broadcast.body, request.json, error.issues
 */

import { isUtf8 } from 'node:buffer'
import {
  BROADCAST_BODY,
  BROADCAST_PREVIEW_BODY,
  type BroadcastBody,
  type BroadcastPreviewBody,
} from '../../../schemas/broadcast.ts'
import type { Issue } from '../../../schemas/error.ts'
import { isOvernested } from '../../http/shape/nesting.ts'
import { compileBody } from '../../http/shape/validate.ts'
import { checkBroadcast } from '../../sending/broadcast/check.ts'
import {
  type BroadcastHashes,
  type PreparedBroadcast,
  prepareBroadcast,
  type RenderedMessage,
  renderMessage,
} from '../../sending/broadcast/prepare.ts'
import type { HashKeys } from '../../state/ring/ring.ts'

/** Input of the thread. */
export interface ReadJob {
  readonly pieces: readonly ArrayBuffer[]
  readonly hashKeys: HashKeys
  readonly accountId: string
  readonly serverId: string
  /** Whether one message is only shown. */
  readonly isPreview: boolean
}

/** Result of the thread. */
export type ReadResult = { readonly ok: true; readonly prepared: PreparedBroadcast; readonly streamId: string } | Faulty

/** The result for a preview. */
export type PreviewResult =
  | { readonly ok: true; readonly message: RenderedMessage; readonly index: number; readonly streamId: string }
  | Faulty

/** The issues of a body. */
interface Faulty {
  readonly ok: false
  readonly issues: readonly Issue[]
}

/** Lists and objects of a broadcast with 50,000 messages: four each, and the enclosing ones. */
const NESTED_MAX = 210_000

const check = compileBody<BroadcastBody>(BROADCAST_BODY)
const checkPreview = compileBody<BroadcastPreviewBody>(BROADCAST_PREVIEW_BODY)
const NOT_JSON: Faulty = { ok: false, issues: [{ path: '', message: 'Must be JSON in UTF-8' }] }

/** Reads a body. Takes its bytes in pieces. */
export function parseBroadcast(pieces: readonly Buffer[], hashes: BroadcastHashes): ReadResult {
  const read = readBody(pieces, check)
  if (!read.ok) return read
  return { ok: true, prepared: prepareBroadcast(read.value, hashes), streamId: read.value.streamId.toLowerCase() }
}

/** Reads a body of which one message is shown. Takes its bytes in pieces. Spec broadcast.preview */
export function parsePreview(pieces: readonly Buffer[]): PreviewResult {
  const read = readBody(pieces, checkPreview)
  if (!read.ok) return read
  const { index, streamId, messages } = read.value
  const message = renderMessage(read.value, index)
  if (message !== null) return { ok: true, message, index, streamId: streamId.toLowerCase() }
  return {
    ok: false,
    issues: [{ path: 'index', message: `Must be less than ${messages.length}, the messages of the body` }],
  }
}

function readBody<Body extends BroadcastBody>(
  pieces: readonly Buffer[],
  validate: (value: unknown, hasEscapes: boolean) => { ok: true; value: Body } | Faulty,
): { readonly ok: true; readonly value: Body } | Faulty {
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
  const checked = validate(value, text.includes('\\u'))
  if (!checked.ok) return checked
  const issues = checkBroadcast(checked.value)
  return issues.length > 0 ? { ok: false, issues } : checked
}
