/**
 * session-from-headers - the sender of a mail in a file, reconstructed from its own header by Return-Path, and the
 * first Received field, from the top, that names a public address. Fields below may be forged, and those above are
 * internal to the receiver.
 */

import { isPublicAddress } from '../ip-address.ts'
import { type HeaderField, readHeaderBlock } from '../mime/header-block.ts'
import { unfold } from '../mime/header-text.ts'

/** Session data from the header. */
export interface SessionFromHeaders {
  /** MAIL FROM, '' for `<>`; null without a Return-Path. */
  readonly address: string | null
  readonly ip: string | null
  readonly helo: string | null
}

const ADDRESS = /\[(?:IPv6:)?([\da-f.:]+)\]/i
/** `from <HELO> (<name> [<address>])`; Exim writes `([<address>] helo=<HELO>)`. */
const FROM = /^\s*from\s+(\S+)/i
const HELO = /\bhelo=([^\s)]+)/i

/** Reads it. */
export function readSessionFromHeaders(raw: Buffer): SessionFromHeaders {
  const { fields } = readHeaderBlock(raw, 0)
  const valuesOf = (wanted: string): string[] =>
    fields.filter((field) => isNamed(field, wanted)).map(({ value }) => unfold(value))
  const path = valuesOf('return-path')[0]
  const address = path === undefined ? null : unwrap(path)
  for (const received of valuesOf('received')) {
    const [by] = received.split(/\sby\s/i)
    const ip = ADDRESS.exec(by ?? '')?.[1]
    if (ip === undefined || !isPublicAddress(ip, [])) continue
    const helo = HELO.exec(by ?? '')?.[1] ?? FROM.exec(received)?.[1] ?? null
    return { address, ip, helo }
  }
  return { address, ip: null, helo: null }
}

/** An address without its brackets; null if it contains others. */
function unwrap(path: string): string | null {
  const bare = path.trim().replace(/^</, '').replace(/>$/, '').trim()
  return /[<>]/.test(bare) ? null : bare
}

function isNamed({ name }: HeaderField, wanted: string): boolean {
  return name.toLowerCase() === wanted
}
