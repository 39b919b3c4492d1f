/** reports - types of the contract, generated from schemas/ by test/contract.ts with --write; do not edit */

export interface ReportsQuery {
  /** First day; by default 30 days ago */
  from?: string
  /** End of the period, which is counted in whole UTC days; by default now */
  to?: string
  /** Source address */
  source?: string
  /** Result of DMARC */
  result?: 'pass' | 'fail'
  /** Adds the rows up in `groups` */
  groupBy?: 'day' | 'source'
  /** Default: 50 */
  limit?: number
  /** `next` of the page before */
  after?: string
}

export interface Reports {
  /** DMARC policy as the last report states it; null before the first one */
  policy: {
    p: string
    sp: string
    np: string
    adkim: string
    aspf: string
    pct: string
  } | null
  totals: {
    /** Messages, or their number */
    messages: number
    /** Messages that passed DMARC */
    passed: number
    /** Messages that failed: with p=reject, receivers reject them */
    failed: number
    dkimPassed: number
    spfPassed: number
    quarantined: number
    rejected: number
    /** Failed messages of this service */
    ownFailed: number
  }
  /** Rows; empty with `groupBy` */
  reports: {
    /** Begin of the UTC day */
    day: string
    /** Source address; null for all rows beyond the bounds of a day */
    source: string | null
    /** Whether the source is a sending address of this service */
    own: boolean
    /** Messages, or their number */
    messages: number
    /** Result of DMARC: DKIM or SPF passed for an aligned domain */
    result: 'pass' | 'fail'
    /** Whether an aligned signature passed */
    dkim: 'pass' | 'fail'
    /** Whether SPF passed for an aligned domain */
    spf: 'pass' | 'fail'
    /** What receivers did by the policy */
    disposition: 'none' | 'quarantine' | 'reject'
    /** Why receivers did not follow the policy, such as `forwarded` */
    override: string | null
    /** Domain of From */
    headerFrom: string
    /** Result of the signature that explains the outcome best */
    dkimResult: string | null
    /** Domain of that signature */
    dkimDomain: string | null
    /** Selector of that signature */
    dkimSelector: string | null
    /** Result of SPF */
    spfResult: string | null
    /** Domain that SPF was checked for */
    spfDomain: string | null
  }[]
  /** Empty without `groupBy` */
  groups: {
    /** Begin of the day, or the source address; `other` for all beyond the bounds */
    group: string
    /** Whether it is a sending address of this service */
    own: boolean
    /** Messages, or their number */
    messages: number
    /** Messages that passed DMARC */
    passed: number
    /** Messages that failed: with p=reject, receivers reject them */
    failed: number
    dkimPassed: number
    spfPassed: number
    quarantined: number
    rejected: number
  }[]
  /** Where the next page begins; null after the last one */
  next: string | null
}

export interface TlsReportsQuery {
  /** First day; by default 30 days ago */
  from?: string
  /** End of the period, which is counted in whole UTC days; by default now */
  to?: string
  /** Default: 50 */
  limit?: number
  /** `next` of the page before */
  after?: string
}

export interface TlsReports {
  totals: {
    sessions: number
    succeeded: number
    /** Number of sessions that failed */
    failed: number
  }
  reports: {
    /** Begin of the UTC day */
    day: string
    /** Domain of the reporter; null for all rows beyond the bounds of a day */
    reporter: string | null
    /** `sts`, `tlsa` or `no-policy-found`; empty beyond the bounds of a day */
    policyType: string
    /** Type of the failure; null for sessions that succeeded */
    result: string | null
    /** Mail server of the domain */
    receivingMx: string | null
    /** Address of the sending server */
    sendingIp: string | null
    /** Code of the reason, as the reporter states it */
    reason: string | null
    sessions: number
  }[]
  /** Where the next page begins; null after the last one */
  next: string | null
}

export interface ReceivedReportsQuery {
  /** Default: 50 */
  limit?: number
  /** `next` of the page before */
  after?: string
}

export interface ReceivedReports {
  reports: {
    /** Kind of the stream */
    kind: 'dmarc' | 'tls'
    /** When the message was received */
    receivedAt: string
    /** Domain that its mail comes from */
    reporter: string
    /** Whether its mail passed DMARC. Other reports are in no sum */
    authenticated: boolean
    /** Name that the reporter gives itself */
    organization: string
    /** Reporter's id of the report */
    reportId: string
    /** Begin of its period */
    from: string
    /** End of its period */
    to: string
    /** Rows before they were added up */
    rows: number
    /** Messages, or sessions of a TLS report */
    messages: number
  }[]
  /** Where the next page begins; null after the last one */
  next: string | null
}
