/** authentication - the verdicts on a received mail in the words of the contract. Spec inbound.authentication */

export const SPF_VERDICTS = [
  'pass',
  'fail',
  'softfail',
  'neutral',
  'none',
  'temperror',
  'permerror',
  'unchecked',
] as const
export const DKIM_VERDICTS = ['pass', 'fail', 'none', 'temperror', 'permerror', 'unchecked'] as const
export const ARC_VERDICTS = ['none', 'pass', 'fail', 'unchecked'] as const
export const DMARC_POLICIES = ['none', 'quarantine', 'reject'] as const

export type SpfVerdict = (typeof SPF_VERDICTS)[number]
/** DKIM and DMARC have the same words. */
export type DkimVerdict = (typeof DKIM_VERDICTS)[number]
export type ArcVerdict = (typeof ARC_VERDICTS)[number]
export type DmarcPolicy = (typeof DMARC_POLICIES)[number]

/** The object of the contract, but for `checkedAt`. */
export interface Authentication {
  /** For the MAIL FROM address. */
  readonly spf: SpfVerdict
  readonly spfHelo: SpfVerdict
  readonly dkim: DkimVerdict
  readonly dmarc: DkimVerdict
  /** Given where DMARC failed. */
  readonly dmarcPolicy: DmarcPolicy | null
  readonly arc: ArcVerdict
}

/** Until the checks have run. */
export const UNCHECKED: Authentication = {
  spf: 'unchecked',
  spfHelo: 'unchecked',
  dkim: 'unchecked',
  dmarc: 'unchecked',
  dmarcPolicy: null,
  arc: 'unchecked',
}
