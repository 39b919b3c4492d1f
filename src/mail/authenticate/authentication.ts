/** authentication - the verdicts on a received mail in the words of the contract. Spec inbound.authentication */

import type { ArcVerdict, DkimVerdict, DmarcPolicy, SpfVerdict } from '../../../schemas/inbound.ts'

/** The object of the contract, without `checkedAt`. */
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
