/** received - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface ReceivedSummary {
  /** Id of the received message */
  inboundMessageId: string
  /** Id of the stream */
  streamId: string
  /** When the message was received */
  receivedAt: string
  /** Recipient address of the SMTP transaction */
  envelopeRecipient: string
  /** Part of the recipient address after the plus sign */
  mailboxHash: string | null
  /** Size in bytes */
  sizeBytes: number
  /** Number of attachments */
  attachmentCount: number
  /** Whether there is a text body */
  hasText: boolean
  /** Whether there is an HTML body */
  hasHtml: boolean
  /** Results of SPF, DKIM, ARC and DMARC */
  authentication: {
    /** Result of the SPF check of the envelope sender */
    spf:
      | 'pass'
      | 'fail'
      | 'softfail'
      | 'neutral'
      | 'none'
      | 'temperror'
      | 'permerror'
      | 'unchecked'
    /** Result of the SPF check of the HELO name */
    spfHelo:
      | 'pass'
      | 'fail'
      | 'softfail'
      | 'neutral'
      | 'none'
      | 'temperror'
      | 'permerror'
      | 'unchecked'
    /** DKIM record or results */
    dkim: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror' | 'unchecked'
    /** Result of the DMARC check */
    dmarc: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror' | 'unchecked'
    /** DMARC policy of the From domain */
    dmarcPolicy: 'none' | 'quarantine' | 'reject' | null
    /** Result of the ARC check */
    arc: 'none' | 'pass' | 'fail' | 'unchecked'
    /** When it was checked */
    checkedAt: string | null
  }
  /** Why parts of the message could not be parsed; null if all could */
  parseIssue:
    | 'no_headers'
    | 'header_block_too_large'
    | 'too_many_headers'
    | 'too_many_parts'
    | 'nesting_too_deep'
    | 'missing_boundary'
    | 'decoded_too_large'
    | 'parse_timeout'
    | 'parser_error'
    | 'truncated_multipart'
    | 'too_many_attachments'
    | 'unknown_transfer_encoding'
    | 'undecodable_container'
    | 'filename_sanitised'
    | 'control_chars_stripped'
    | 'multiple_from'
    | 'duplicate_header'
    | 'malformed_header_dropped'
    | 'address_list_truncated'
    | 'header_value_truncated'
    | null
  /** Whether the content is still stored */
  contentAvailable: boolean
  /** When the content is deleted */
  contentExpiresAt: string
  /** Sender, or start of the period */
  from: {
    /** Email address */
    address: string
    /** Name */
    name: string | null
  } | null
  /** Subject */
  subject: string | null
  /** Date header of the message */
  date: string | null
}

export interface ReceivedMessage {
  /** Id of the received message */
  inboundMessageId: string
  /** Id of the stream */
  streamId: string
  /** When the message was received */
  receivedAt: string
  /** Recipient address of the SMTP transaction */
  envelopeRecipient: string
  /** Part of the recipient address after the plus sign */
  mailboxHash: string | null
  /** Size in bytes */
  sizeBytes: number
  /** Number of attachments */
  attachmentCount: number
  /** Whether there is a text body */
  hasText: boolean
  /** Whether there is an HTML body */
  hasHtml: boolean
  /** Results of SPF, DKIM, ARC and DMARC */
  authentication: {
    /** Result of the SPF check of the envelope sender */
    spf:
      | 'pass'
      | 'fail'
      | 'softfail'
      | 'neutral'
      | 'none'
      | 'temperror'
      | 'permerror'
      | 'unchecked'
    /** Result of the SPF check of the HELO name */
    spfHelo:
      | 'pass'
      | 'fail'
      | 'softfail'
      | 'neutral'
      | 'none'
      | 'temperror'
      | 'permerror'
      | 'unchecked'
    /** DKIM record or results */
    dkim: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror' | 'unchecked'
    /** Result of the DMARC check */
    dmarc: 'pass' | 'fail' | 'none' | 'temperror' | 'permerror' | 'unchecked'
    /** DMARC policy of the From domain */
    dmarcPolicy: 'none' | 'quarantine' | 'reject' | null
    /** Result of the ARC check */
    arc: 'none' | 'pass' | 'fail' | 'unchecked'
    /** When it was checked */
    checkedAt: string | null
  }
  /** Why parts of the message could not be parsed; null if all could */
  parseIssue:
    | 'no_headers'
    | 'header_block_too_large'
    | 'too_many_headers'
    | 'too_many_parts'
    | 'nesting_too_deep'
    | 'missing_boundary'
    | 'decoded_too_large'
    | 'parse_timeout'
    | 'parser_error'
    | 'truncated_multipart'
    | 'too_many_attachments'
    | 'unknown_transfer_encoding'
    | 'undecodable_container'
    | 'filename_sanitised'
    | 'control_chars_stripped'
    | 'multiple_from'
    | 'duplicate_header'
    | 'malformed_header_dropped'
    | 'address_list_truncated'
    | 'header_value_truncated'
    | null
  /** Whether the content is still stored */
  contentAvailable: boolean
  /** When the content is deleted */
  contentExpiresAt: string
  /** Sender, or start of the period */
  from: {
    /** Email address */
    address: string
    /** Name */
    name: string | null
  } | null
  /** Subject */
  subject: string | null
  /** Date header of the message */
  date: string | null
  /** Sender and recipient of the SMTP transaction */
  envelope: {
    /** Address of the sender */
    sender: string | null
  } | null
  /** Reply-To header of the message */
  replyTo: {
    /** Email address */
    address: string
    /** Name */
    name: string | null
  }[]
  /** Recipients, or end of the period */
  to: {
    /** Email address */
    address: string
    /** Name */
    name: string | null
  }[]
  /** Number of addresses in To */
  toCount: number
  /** Copy recipients */
  cc: {
    /** Email address */
    address: string
    /** Name */
    name: string | null
  }[]
  /** Number of addresses in Cc */
  ccCount: number
  /** Message-ID header of the message */
  messageIdHeader: string | null
  /** In-Reply-To header of the message */
  inReplyTo: string | null
  /** References header of the message */
  references: string[]
  /** Message headers */
  headers: {
    /** Name */
    name: string
    /** Value */
    value: string
  }[]
  /** Text body */
  text: string | null
  /** HTML body */
  html: string | null
  /** Attached files */
  attachments: {
    /** Position of the attachment, from 0 */
    position: number
    /** Name */
    name: string | null
    /** Media type */
    contentType: string
    /** Content-ID of an inline file, for `cid:` links in the HTML */
    contentId: string | null
    /** Size in bytes */
    size: number
    /** Whether the file is shown inside the HTML body */
    inline: boolean
  }[]
  /** Whether the content was left out because of its size */
  contentOmitted: 'too_large' | 'expired' | null
}

export interface ReceivedSearch {
  /** Id of the stream */
  streamId?: string
  /** Address as in mail: any text before the last @ */
  from?: string
  /** Address as in mail: any text before the last @ */
  recipient?: string
  /** Part of the recipient address after the plus sign */
  mailboxHash?: string
  /** Only messages received at this time or later */
  receivedFrom?: string
  /** Only messages received before this time */
  receivedTo?: string
  /** Default: 50 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
}

export interface ReceivedList {
  /** Messages, or their number */
  messages: ReceivedSummary[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}
