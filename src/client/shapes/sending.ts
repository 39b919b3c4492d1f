/** sending - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export type Address = string | {
  /** an e-mail address */
  email: string
  /** Default: null */
  name?: string | null
}

export interface Attachment {
  /** a file name without control characters, slash or backslash */
  name: string
  /** Content, in base64 for attachments */
  content: string
  /** a media type in lower case, type/subtype */
  contentType?: string
  /** a content id without white space, angle brackets or control characters. Default: null */
  contentId?: string | null
}

/** At most 50 recipients in to, cc and bcc together */
export interface Email {
  from: Address
  /** Id of the stream */
  streamId?: string
  /** Recipients, or end of the period */
  to: readonly Address[]
  /** Copy recipients */
  cc?: readonly Address[]
  /** Blind copy recipients */
  bcc?: readonly Address[]
  /** Subject */
  subject: string
  /** Text body */
  text?: string
  /** HTML body */
  html?: string
  /** Default: {} */
  headers?: Record<string, string>
  /** Attached files */
  attachments?: readonly Attachment[]
  /** When the message is sent, with an offset: at most 27 days ahead, 6 on a test server */
  sendAt?: string
  /** text without control characters. Default: null */
  tag?: string | null
  /** Default: {} */
  metadata?: Record<string, string>
}

export interface EmailAnswer {
  /** Id of the message */
  messageId: string
  /** Status */
  status: 'accepted'
  /** When the message was accepted */
  submittedAt: string
  /** Whether it belongs to a test server */
  test: boolean
}

export interface BroadcastBody {
  /** Id of the stream */
  streamId: string
  from: Address
  /** Subject */
  subject: string
  /** Text body */
  text?: string
  /** HTML body */
  html?: string
  /** Default: {} */
  headers?: Record<string, string>
  /** Attached files */
  attachments?: readonly Attachment[]
  /** text without control characters. Default: null */
  tag?: string | null
  /** Default: {} */
  metadata?: Record<string, string>
  /** The messages bring their own `List-Unsubscribe` header: headers have placeholders, and the service adds no link */
  unsubscribe?: 'sender'
  /** When the release begins, with an offset: at most 27 days ahead, 6 on a test server */
  sendAt?: string
  /** Messages, or their number */
  messages: readonly {
    to: Address
    /** Default: {} */
    substitutions?: Record<string, string>
    /** Default: {} */
    metadata?: Record<string, string>
  }[]
}

export interface BroadcastPreviewBody {
  /** Id of the stream */
  streamId: string
  from: Address
  /** Subject */
  subject: string
  /** Text body */
  text?: string
  /** HTML body */
  html?: string
  /** Default: {} */
  headers?: Record<string, string>
  /** Attached files */
  attachments?: readonly Attachment[]
  /** text without control characters. Default: null */
  tag?: string | null
  /** Default: {} */
  metadata?: Record<string, string>
  /** The messages bring their own `List-Unsubscribe` header: headers have placeholders, and the service adds no link */
  unsubscribe?: 'sender'
  /** When the release begins, with an offset: at most 27 days ahead, 6 on a test server */
  sendAt?: string
  /** Messages, or their number */
  messages: readonly {
    to: Address
    /** Default: {} */
    substitutions?: Record<string, string>
    /** Default: {} */
    metadata?: Record<string, string>
  }[]
  /** Default: 0 */
  index?: number
}

export interface BroadcastPreview {
  /** Position, from 0 */
  index: number
  /** Sender, or start of the period */
  from: string
  /** Recipients, or end of the period */
  to: string
  /** Subject */
  subject: string
  /** Text body */
  text: string | null
  /** HTML body */
  html: string | null
  /** Size in bytes */
  sizeBytes: number
}

export interface Broadcast {
  /** Id of the broadcast; null for other messages */
  broadcastId: string
  /** Id of the stream */
  streamId: string
  /** Status */
  status: 'accepted' | 'processing' | 'completed' | 'cancelled'
  /** When it was paused; null if it is not paused */
  pausedAt: string | null
  /** Sender, or start of the period */
  from: string
  /** Subject */
  subject: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** Total number of recipients */
  total: number
  /** Number of recipients released for delivery */
  released: number
  /** Number of recipients that could not be accepted */
  failed: number
  /** Whether, or how many, recipients are on the suppression list */
  suppressed: number
  /** When the message was accepted */
  submittedAt: string
  /** When to send the message */
  sendAt: string | null
  /** When it was completed; null until then */
  completedAt: string | null
}

export interface BroadcastQuery {
  /** Id of the stream */
  streamId?: string
  /** Status */
  status?: 'accepted' | 'processing' | 'completed' | 'cancelled'
  /** Default: 50 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
}

export interface BroadcastList {
  /** Broadcasts, newest first */
  broadcasts: Broadcast[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}
