/**
 * dmarc - DMARC (RFC 9989) from what SPF and DKIM have found: alignment, tree walk, the policy that applies.
 *
 * mailauth evaluates it, by the letter of the RFC (`strict`). What it cannot say is added here: a mail that fails only
 * because the DNS could not tell about one of its identities is not judged yet.
 *
 * Spec inbound.authentication.dmarc
 */

import { evaluateDmarc } from 'mailauth/lib/dmarc/index.js'
import { type DkimVerdict, DMARC_POLICIES, type DmarcPolicy, type SpfVerdict } from '../../../schemas/inbound.ts'
import type { LookUp } from './look-up.ts'

/** What was found before. */
export interface DmarcInput {
  /** Addresses of all From fields, and how many fields there are. */
  readonly authors: readonly string[]
  readonly fromFields: number
  readonly spf: SpfVerdict
  /** Of MAIL FROM, '' for none. */
  readonly spfDomain: string
  /** Domains whose signature holds, and those about whose key the DNS could not tell. */
  readonly passed: readonly string[]
  readonly undecided: readonly string[]
}

export interface DmarcReport {
  readonly dmarc: DkimVerdict
  /** Given where it is `fail`. */
  readonly dmarcPolicy: DmarcPolicy | null
}

/** Evaluates DMARC. Never rejects. */
export async function checkDmarc(input: DmarcInput, lookUp: LookUp): Promise<DmarcReport> {
  const spfDomains = input.spf === 'pass' ? [input.spfDomain] : []
  const first = await evaluate(input, { spfDomains, dkimDomains: input.passed, lookUp })
  if (first.dmarc !== 'fail') return first
  const maybeSpf = input.spf === 'temperror' ? [input.spfDomain] : []
  if (maybeSpf.length + input.undecided.length === 0) return first
  const best = await evaluate(input, { spfDomains: maybeSpf, dkimDomains: input.undecided, lookUp })
  return best.dmarc === 'fail' ? first : { dmarc: 'temperror', dmarcPolicy: null }
}

async function evaluate(
  { authors, fromFields }: DmarcInput,
  identities: { spfDomains: readonly string[]; dkimDomains: readonly string[]; lookUp: LookUp },
): Promise<DmarcReport> {
  const { response, reason } = await evaluateDmarc({
    headerFrom: [...authors],
    fromFields,
    spfDomains: [...identities.spfDomains],
    dkimDomains: identities.dkimDomains.map((domain) => ({ domain })),
    resolver: identities.lookUp as (name: string, type: string) => Promise<string[][]>,
    strict: true,
  })
  // RFC 9989 5.3.1: without one Author Domain nothing can be validated.
  if (response === false) return { dmarc: reason === 'no-author-domain' ? 'none' : 'permerror', dmarcPolicy: null }
  const { result } = response.status
  if (result === 'pass' || result === 'none' || result === 'temperror') return { dmarc: result, dmarcPolicy: null }
  if (result !== 'fail') return { dmarc: 'permerror', dmarcPolicy: null }
  return { dmarc: 'fail', dmarcPolicy: DMARC_POLICIES.find((policy) => policy === response.policy) ?? null }
}
