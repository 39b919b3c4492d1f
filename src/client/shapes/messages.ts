/** messages - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface RecipientEntry {
  /** Address of the recipient */
  recipient: string
  /** Name */
  name: string | null
  /** Kind of the stream */
  kind: 'to' | 'cc' | 'bcc'
  /** Status */
  status:
    | 'accepted'
    | 'scheduled'
    | 'suppressed'
    | 'deferred'
    | 'delivered'
    | 'bounced'
    | 'cancelled'
    | 'failed'
  /** When the status last changed */
  statusAt: string
  /** Number of attempts so far */
  attempts: number
  /** When the next attempt is due; null if none is planned */
  nextAttemptAt: string | null
  /** SMTP reply code; null without a reply */
  code: number | null
  /** Reply of the receiving server; null without a reply */
  response: string | null
  /** When the recipient complained; null without a complaint */
  complainedAt: string | null
  /** When the recipient unsubscribed; null otherwise */
  unsubscribedAt: string | null
}

export interface MessageEvent {
  /** Name of the event */
  event: 'delivered' | 'bounced' | 'deferred' | 'spam_complaint' | 'unsubscribed'
  /** Address of the recipient */
  recipient: string
  /** When it happened */
  occurredAt: string
  /** Route of the attempt that caused the event; null if no mail server was tried */
  route: {
    /** Name of the mail server that the attempt ended at */
    host: string
    /** Its IP address; null if none was connected to */
    address: string | null
    /** Local IP address of the connection; null without a session */
    sourceAddress: string | null
    /** TLS version, such as TLSv1.3; null in plaintext */
    tlsVersion: string | null
    /** Cipher suite; null in plaintext */
    cipher: string | null
    /** Whether the certificate is valid for the host */
    certificateVerified: boolean
    /** Mode of the MTA-STS policy; null if there is none */
    mtaSts: 'enforce' | 'testing' | null
    /**
     * Result of the check against the TLSA records of the mail server (DANE): `encrypted` if none can be used and TLS
     * is required; null if it has none or `DNSSEC` is off
     */
    dane: 'verified' | 'encrypted' | 'failed' | null
    /** Whether an earlier message had opened the connection */
    connectionReused: boolean
    /** Milliseconds of the DNS and MTA-STS lookups */
    dnsMs: number | null
    /** Milliseconds of the TCP connection; null if reused */
    connectMs: number | null
    /** Milliseconds of the TLS handshake; null in plaintext or if reused */
    tlsMs: number | null
    /** Milliseconds from MAIL to the last reply */
    transactionMs: number | null
  } | null
  /** Details of the event */
  details: {
    /** SMTP reply code; null without a reply */
    code?: number | null
    /** Reply of the receiving server; null without a reply */
    response?: string | null
    /** Class of the bounce */
    classification?: string | null
    /** Whether the bounce is permanent */
    hard?: boolean
    /** Whether delivery ended because the time for retries was over */
    expired?: boolean
    /** Feedback type of the complaint report */
    feedbackType?: string | null
    /** How the message was submitted, or the source of the entry */
    source?: 'link' | 'one_click'
  }
}

export interface MessageSummary {
  /** Id of the message */
  messageId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** How the message was submitted, or the source of the entry */
  source: 'api' | 'smtp' | 'broadcast'
  /** Status */
  status:
    | 'accepted'
    | 'scheduled'
    | 'suppressed'
    | 'deferred'
    | 'delivered'
    | 'bounced'
    | 'cancelled'
    | 'failed'
    | 'mixed'
  /** Whether it belongs to a test server */
  test: boolean
  /** Sender, or start of the period */
  from: {
    /** Email address */
    email: string
    /** Name */
    name: string | null
  }
  /** Subject */
  subject: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** When the message was accepted */
  submittedAt: string
  /** When to send the message */
  sendAt: string | null
  /** Size in bytes */
  sizeBytes: number | null
  /** Number of attachments */
  attachmentCount: number
  /** Recipients */
  recipients: RecipientEntry[]
  /** Whether the content is still stored */
  contentAvailable: boolean
  /** When the content is deleted */
  contentExpiresAt: string
}

export interface Message {
  /** Id of the message */
  messageId: string
  /** Id of the stream */
  streamId: string
  /** Id of the broadcast; null for other messages */
  broadcastId: string | null
  /** How the message was submitted, or the source of the entry */
  source: 'api' | 'smtp' | 'broadcast'
  /** Status */
  status:
    | 'accepted'
    | 'scheduled'
    | 'suppressed'
    | 'deferred'
    | 'delivered'
    | 'bounced'
    | 'cancelled'
    | 'failed'
    | 'mixed'
  /** Whether it belongs to a test server */
  test: boolean
  /** Sender, or start of the period */
  from: {
    /** Email address */
    email: string
    /** Name */
    name: string | null
  }
  /** Subject */
  subject: string | null
  /** Label of the kind of mail */
  tag: string | null
  /** Your own keys and values */
  metadata: Record<string, string>
  /** When the message was accepted */
  submittedAt: string
  /** When to send the message */
  sendAt: string | null
  /** Size in bytes */
  sizeBytes: number | null
  /** Number of attachments */
  attachmentCount: number
  /** Recipients */
  recipients: RecipientEntry[]
  /** Whether the content is still stored */
  contentAvailable: boolean
  /** When the content is deleted */
  contentExpiresAt: string
  /** Message-ID header of the message */
  messageIdHeader: string
  /** Message headers */
  headers: Record<string, string>
  /** Text body */
  text: string | null
  /** HTML body */
  html: string | null
  /** Attached files */
  attachments: {
    /** Name */
    name: string
    /** Media type */
    contentType: string
    /** Content-ID of an inline file, for `cid:` links in the HTML */
    contentId: string | null
    /** Size in bytes */
    size: number
    /** Whether the file is shown inside the HTML body */
    inline: boolean
  }[]
  /** Links of the HTML body and of the text body, in their order */
  links: {
    /** The part of the message that has the link */
    part: 'html' | 'text'
    /** Where the link leads */
    href: string
    /** Its words; null in plain text */
    text: string | null
  }[]
  /** Images of the HTML body */
  images: {
    /** Address of the image */
    src: string
    /** Its alternative text; null if it has none */
    alt: string | null
  }[]
  /** Names of events, or the events themselves */
  events: MessageEvent[]
}

export interface MessageSearch {
  /** Id of the stream */
  streamId?: string
  /** Id of the broadcast; null for other messages */
  broadcastId?: string
  /** an e-mail address */
  recipient?: string
  /** Text in the address or the name of a recipient, in any case */
  recipientContains?: string
  /** an e-mail address */
  from?: string
  /** text without control characters */
  tag?: string
  /** Your own keys and values */
  metadata?: Record<string, string>
  /** Words that the subject contains, in any order, while the content of the message is stored */
  subject?: string
  /** Status */
  status?:
    | 'accepted'
    | 'scheduled'
    | 'suppressed'
    | 'deferred'
    | 'delivered'
    | 'bounced'
    | 'cancelled'
    | 'failed'
    | 'mixed'
  /** A recipient has had this event */
  event?: 'delivered' | 'bounced' | 'deferred' | 'spam_complaint' | 'unsubscribed'
  /** Receiving site of a recipient, as statistics name it: `google` or a domain */
  site?: string
  /** Class of the bounce of a recipient */
  classification?: string
  /** How the message was submitted, or the source of the entry */
  source?: 'api' | 'smtp' | 'broadcast'
  /** Only messages accepted at this time or later */
  submittedFrom?: string
  /** Only messages accepted before this time */
  submittedTo?: string
  /** Default: 50 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
  /** Seconds to wait until something matches; the page is empty if nothing does. Not with `after` */
  waitSeconds?: number
}

export interface MessageList {
  /** Messages, or their number */
  messages: MessageSummary[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}

export interface Checks {
  findings: {
    /** The check that found it */
    check:
      | 'client_support'
      | 'missing_text'
      | 'html_too_large'
      | 'image_alt'
      | 'list_unsubscribe'
    /** Line of the HTML, from 1; null if it is about the whole message */
    line: number | null
    /** What is wrong, for people */
    message: string
    /** Percent of mail clients with full, partial and no support of a feature; null for other checks */
    clients: {
      full: number
      /** Whether each message is accepted or refused on its own */
      partial: number
      none: number
    } | null
    /** A page about the finding */
    url: string | null
  }[]
  /** Links of the HTML body and of the text body, in their order */
  links: {
    /** The part of the message that has the link */
    part: 'html' | 'text'
    /** Line within that part, from 1 */
    line: number
    /** Where the link leads */
    href: string
    /** Whether it answers, after at most 3 redirects */
    result: 'ok' | 'broken' | 'timeout' | 'not_checked'
    /** Status of the last answer; null if there was none */
    status: number | null
    /**
     * Why it is broken or not checked: `not_requested`, `token`, `unsubscribe`, `private_address`, `limit`, `rate`, ...
     */
    reason: string | null
  }[]
}
