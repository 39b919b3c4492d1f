/** resources - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface Suppression {
  /** Id of the suppression */
  suppressionId: string
  /** Id of the stream */
  streamId: string
  /** Address of the recipient */
  recipient: string
  /** Reason */
  reason: 'manual' | 'hard_bounce' | 'unsubscribe' | 'spam_complaint'
  /** Id of the message */
  messageId: string | null
  /** SMTP reply code; null without a reply */
  code: number | null
  /** Reply of the receiving server; null without a reply */
  response: string | null
  /** Whether an API key can remove the entry */
  liftable: boolean
  /** When it was created */
  createdAt: string
}

export interface SuppressionsBody {
  /** Id of the stream */
  streamId: string
  /** Recipients */
  recipients: readonly string[]
  /**
   * Why the addresses are suppressed; an entry keeps the worse reason. Only the operator can lift the last two.
   * Default: "manual"
   */
  reason?: 'manual' | 'hard_bounce' | 'unsubscribe' | 'spam_complaint'
}

export interface SuppressionsAdded {
  /** Number of entries that were added */
  added: number
  /** Number of entries that existed before */
  existing: number
}

export interface SuppressionSearch {
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
  /** Default: 100 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
}

export interface SuppressionList {
  /** Suppressions, newest first */
  suppressions: Suppression[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}

export interface Domain {
  /** Id of the sending domain */
  domainId: string
  /** Domain name */
  domain: string
  /** Whether the record was found */
  verified: boolean
  /** Whether test servers can send from it although it is not verified; false once it is */
  testOnly: boolean
  /** When it was created */
  createdAt: string
  /** When the DNS records were last checked */
  lastCheckedAt: string | null
  /** Since when deliveries fail; null if the last one succeeded */
  failingSince: string | null
  /** When a verified domain stopped sending; null otherwise */
  unverifiedSince?: string
  /** Since when one record is missing or wrong while the name servers do not answer for the other; absent otherwise */
  undecidedSince?: string
  /** Record of the return path */
  returnPath: {
    /** Type */
    type: 'CNAME'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** DKIM record or results */
  dkim: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** New DKIM record that is not in use yet; null without one */
  pendingDkim?: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** Records with which receivers send their reports about the domain here; `verified` does not need them */
  recommended: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    purpose: 'dmarc_reports' | 'tls_reports'
  }[]
}

export interface DomainBody {
  /** a host name below a public suffix */
  domain: string
  /** Whether test servers can send from it at once, before its DNS records are found. Default: false */
  testOnly?: boolean
}

export interface DomainChecked {
  /** Id of the sending domain */
  domainId: string
  /** Domain name */
  domain: string
  /** Whether the record was found */
  verified: boolean
  /** Whether test servers can send from it although it is not verified; false once it is */
  testOnly: boolean
  /** When it was created */
  createdAt: string
  /** When the DNS records were last checked */
  lastCheckedAt: string | null
  /** Since when deliveries fail; null if the last one succeeded */
  failingSince: string | null
  /** When a verified domain stopped sending; null otherwise */
  unverifiedSince?: string
  /** Since when one record is missing or wrong while the name servers do not answer for the other; absent otherwise */
  undecidedSince?: string
  /** Record of the return path */
  returnPath: {
    /** Type */
    type: 'CNAME'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** DKIM record or results */
  dkim: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** New DKIM record that is not in use yet; null without one */
  pendingDkim?: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    /** Whether the record was found */
    verified: boolean
    /** When it was verified; null until then */
    verifiedAt: string | null
  }
  /** Records with which receivers send their reports about the domain here; `verified` does not need them */
  recommended: {
    /** Type */
    type: 'TXT'
    /** Host name of the DNS record */
    host: string
    /** Value */
    value: string
    purpose: 'dmarc_reports' | 'tls_reports'
  }[]
  /** Result of the last check of the DNS records */
  check: {
    /** Record of the return path */
    returnPath: 'ok' | 'missing' | 'mismatch' | 'dns_error'
    /** DKIM record or results */
    dkim: 'ok' | 'missing' | 'mismatch' | 'dns_error'
    /** New DKIM record that is not in use yet; null without one */
    pendingDkim?: 'ok' | 'missing' | 'mismatch' | 'dns_error'
    /** Records that were found in the DNS */
    found: {
      /** Record of the return path */
      returnPath: string[]
      /** DKIM record or results */
      dkim: string[]
      /** New DKIM record that is not in use yet; null without one */
      pendingDkim?: string[]
    }
  }
}

export interface DomainList {
  /** Sending domains */
  domains: Domain[]
  /** Value of `after` for the next page; null on the last page */
  next: string | null
}

export interface Erasure {
  /** Id of the erasure */
  erasureId: string
  /** Status */
  status: 'pending' | 'done'
  /** When it was created */
  createdAt: string
  /** When it was completed; null until then */
  completedAt: string | null
  /** Address that replaces the erased one */
  pseudonym: string | null
  /** Messages, or their number */
  messages: number | null
  /** Received messages, or their number */
  receivedMessages: number | null
}

export interface LimitEntry {
  /** Resource to which the limit applies */
  scope: 'account' | 'server' | 'test'
  /** Length of the period */
  period: 'minute' | 'month'
  /** Maximum number of entries of a page, or the limit itself */
  limit: number
  /** Number that counts towards the limit */
  used: number
  /** When the count starts from 0 */
  resetsAt: string
}

export interface Server {
  /** Id of the server */
  serverId: string
  /** Name */
  name: string
  /** Whether the server delivers mail (live) or simulates delivery (test) */
  mode: 'live' | 'test'
  /** When it was created */
  createdAt: string
  /** Limits and their use */
  limits: LimitEntry[]
  /** Number of sending domains */
  sendingDomains: {
    /** Domain name */
    domain: string
    /** Since when deliveries fail; null if the last one succeeded */
    failingSince: string | null
  }[]
  /** Whether senders over SMTP get reports by mail; needs `SUBMISSION_DSN=on` */
  bounceMail: boolean
}

export interface StatsEntry {
  /** When it happened */
  at: string
  /** Id of the stream */
  streamId: string
  /** Number of accepted recipients */
  accepted: number
  /** Number of delivered recipients */
  delivered: number
  /** Number of deferred attempts */
  deferred: number
  /** Number of recipients that bounced permanently */
  hardBounced: number
  /** Number of recipients that bounced temporarily */
  softBounced: number
  /** Number of recipients who complained */
  complained: number
  /** Number of recipients who unsubscribed */
  unsubscribed: number
  /** Whether, or how many, recipients are on the suppression list */
  suppressed: number
}

export interface StatsGroup {
  /** When it happened */
  at: string
  /** Site, class, stream id or tag; null for tags that no message of the log names any more */
  group: string | null
  /** Sum of all groups beyond the bounds, whose `group` is `other` */
  other: boolean
  /** Number of delivered recipients */
  delivered: number
  /** Number of deferred attempts */
  deferred: number
  /** Number of recipients that bounced permanently */
  hardBounced: number
  /** Number of recipients that bounced temporarily */
  softBounced: number
  /** Number of recipients who complained */
  complained: number
  /** Number of recipients who unsubscribed */
  unsubscribed: number
  /** Milliseconds from acceptance to hand-over; null with fewer than 20 deliveries */
  handOver: {
    /** Half of the deliveries took at most this long */
    p50Ms: number | null
    /** 95 % of the deliveries took at most this long */
    p95Ms: number | null
  }
}

export interface StatsQuery {
  /** Sender, or start of the period */
  from?: string
  /** Recipients, or end of the period */
  to?: string
  /** Default: "day" */
  by?: 'hour' | 'day' | 'total'
  /** Id of the stream */
  streamId?: string
  /** Counts by receiving site, class, stream or tag in `groups` */
  groupBy?: 'site' | 'class' | 'stream' | 'tag'
}

export interface Stats {
  /** Statistics of each period */
  stats: StatsEntry[]
  /** Counts of each group; empty without `groupBy` */
  groups: StatsGroup[]
}

export interface Page {
  /** Default: 50 */
  limit?: number
  /** Value of `next` of the previous page */
  after?: string
}
