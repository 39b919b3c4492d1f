/**
 * send - the command that asks for messages to be accepted, and its answer.
 *
 * It already has all values that need the installation's secret: HMACs of addresses, hashes of tags and of the
 * Idempotency-Key. Text and html are not: content travels beside it, as blobs or written before under its final name.
 *
 * Spec send.normal, send.answer
 */

import type { ContentPart } from '../../state/message/content-part.ts'
import type { HeadAttachment, RawContent, StoredContent } from '../../state/message/head.ts'
import type { IdempotencyInput } from '../../state/message/idempotency.ts'
import type { LanePrefix } from '../../state/message/item.ts'
import type { RecipientKind, SourceLetter } from '../../state/message/log-entry.ts'
import type { LimitScope } from '../../state/quota.ts'
import type { Refused } from '../authorization/refusal.ts'

export interface SendSender {
  readonly address: string
  /** In lower case. */
  readonly domain: string
  readonly name: string | null
  /** HMAC within the account, 22 characters. */
  readonly hmac: string
}

export interface SendRecipient extends SendSender {
  readonly kind: RecipientKind
}

/** One message of a send. */
export interface SendItem {
  /** As named by the client; null for the server's default stream. */
  readonly streamId: string | null
  readonly from: SendSender
  /** Each address once, at least one, at most 50. */
  readonly recipients: readonly SendRecipient[]
  readonly subject: string
  readonly tag: string | null
  /** Hash of the tag within the server. */
  readonly tagHash: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly attachments: readonly HeadAttachment[]
  readonly content: {
    /** Parts in Redis, or in the command. */
    readonly parts: readonly ContentPart[]
    /** Content already written to the content store; null if there is none. */
    readonly stored: StoredContent | null
  }
  /** A message received whole; null if it is composed from these fields. */
  readonly raw: RawContent | null
  /** Bytes as built; null if its upper bound is small enough. */
  readonly builtBytes: number | null
  /** When it is sent, ms; null: at once. */
  readonly sendAtMs: number | null
  readonly lane: LanePrefix
}

export interface SendBody {
  readonly accountId: string
  readonly serverId: string
  /** Whether the server is a test server, which never changes. */
  readonly test: boolean
  /** SHA-256 of the server key, hex; the turn checks that it is live. */
  readonly keyHash: string
  /** Whether sending requires an active subscription. */
  readonly billing: boolean
  readonly defaultStreamId: string
  readonly source: SourceLetter
  readonly idempotency: IdempotencyInput | null
  readonly messages: readonly SendItem[]
  /** Whether refusals name the message's `index`. */
  readonly batch: boolean
  /** Whether each message is accepted or refused on its own; absent for all or none. */
  readonly partial?: true
}

/** One message that was accepted. */
export interface AcceptedMessage {
  readonly messageId: string
  /** The time in its id. */
  readonly submittedAtMs: number
  /** Places of the suppressed recipients; absent if there are none, or the answer is a replay. */
  readonly suppressed?: readonly number[]
}

/** The remainder of a per-minute limit. */
export interface RateLeft {
  readonly scope: LimitScope
  readonly limit: number
  readonly left: number
  readonly resetsAtMs: number
}

export interface Accepted {
  readonly kind: 'accepted'
  /** In the order of the request. */
  readonly messages: readonly AcceptedMessage[]
  /** The messages of a partial send that were refused, in the order of the request; absent: none. */
  readonly refused?: readonly RefusedMessage[]
  readonly test: boolean
  /** Whether this answer was given before, to the same request under the same Idempotency-Key. */
  readonly replayed: boolean
  readonly rate: readonly RateLeft[]
}

/** A message of a partial send that was refused. */
export interface RefusedMessage extends Pick<Refused, 'code' | 'extra'> {
  /** Its place in the request, from 0. */
  readonly place: number
}

export type SendReply = Accepted | Refused
