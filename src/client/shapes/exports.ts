/** exports - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface MessageExport {
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
}

export interface BounceExport {
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
}

export interface SuppressionExport {
  /** Id of the stream */
  streamId?: string
  /** an e-mail address */
  recipient?: string
  /** Reason */
  reason?: 'manual' | 'hard_bounce' | 'unsubscribe' | 'spam_complaint'
  /** Only entries created at this time or later */
  createdFrom?: string
  /** Only entries created before this time */
  createdTo?: string
}

export interface ActivityExport {
  /** Sender, or start of the period */
  from?: string
  /** Recipients, or end of the period */
  to?: string
}

export interface ReportExport {
  /** First day; by default 30 days ago */
  from?: string
  /** End of the period, which is counted in whole UTC days; by default now */
  to?: string
  /** Source address */
  source?: string
  /** Result of DMARC */
  result?: 'pass' | 'fail'
}

export interface TlsReportExport {
  /** First day; by default 30 days ago */
  from?: string
  /** End of the period, which is counted in whole UTC days; by default now */
  to?: string
}
