/**
 * local-part - the local part of an inbound address: `<stream id>[+<anything>]`
 *
 * Spec inbound.recipient
 */

import { MAILBOX_HASH_CHARS_MAX } from '../../../schemas/limits.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const UUID_CHARS = 36

/** The parsed local part of an inbound address. */
export interface InboundLocalPart {
  /** In lower case. */
  readonly streamId: string
  /** The original spelling, if it differs. */
  readonly spelledId: string | null
  /** The text after the first plus sign, or null. */
  readonly mailboxHash: string | null
}

/** Parses the local part of an inbound address; null if it names no stream or its hash is too long. */
export function parseInboundLocalPart(localPart: string): InboundLocalPart | null {
  const plus = localPart.indexOf('+')
  const spelled = plus < 0 ? localPart : localPart.slice(0, plus)
  const hash = plus < 0 ? '' : localPart.slice(plus + 1)
  const streamId = spelled.toLowerCase()
  if (spelled.length !== UUID_CHARS || !UUID.test(streamId) || hash.length > MAILBOX_HASH_CHARS_MAX) return null
  return { streamId, spelledId: spelled === streamId ? null : spelled, mailboxHash: hash === '' ? null : hash }
}
