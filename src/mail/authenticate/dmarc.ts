/**
 * dmarc - DMARC (RFC 9989) from the results of SPF and DKIM: alignment, tree walk, the policy that applies.
 *
 * mailauth evaluates it, strictly by the RFC (`strict`). One case is added here: a mail that fails only because the DNS
 * did not answer about one of its identities is not judged yet.
 *
 * Spec inbound.authentication.dmarc
 */

import { evaluateDmarc } from 'mailauth/lib/dmarc/index.js'
import { type DkimVerdict, DMARC_POLICIES, type DmarcPolicy, type SpfVerdict } from '../../../schemas/inbound.ts'
import type { DnsLookUp } from './look-up.ts'
import { clip } from './reason.ts'

/** Earlier results. */
export interface DmarcInput {
  /** Addresses of all From fields, and how many fields there are. */
  readonly authors: readonly string[]
  readonly fromFields: number
  readonly spf: SpfVerdict
  /** Of MAIL FROM, '' for none. */
  readonly spfDomain: string
  /** Domains with a valid signature, and those whose key the DNS did not return. */
  readonly passed: readonly string[]
  readonly undecided: readonly string[]
}

export interface DmarcReport {
  readonly dmarc: DkimVerdict
  /** Set if the verdict is `fail`. */
  readonly dmarcPolicy: DmarcPolicy | null
  /** The reason for no verdict or for an error, if the verifier gives one. */
  readonly reason: string | null
  /** The record that applies, and the domain that has it. */
  readonly record: string | null
  readonly policyDomain: string | null
  /** The aligned identities: the domain of MAIL FROM, and that of a signature. */
  readonly aligned: { readonly spf: string | null; readonly dkim: string | null }
}

const NOTHING_FOUND = { record: null, policyDomain: null, aligned: { spf: null, dkim: null } } as const

/** Evaluates DMARC. Never rejects. */
export async function checkDmarc(input: DmarcInput, lookUp: DnsLookUp): Promise<DmarcReport> {
  const spfDomains = input.spf === 'pass' ? [input.spfDomain] : []
  const first = await evaluate(input, { spfDomains, dkimDomains: input.passed, lookUp })
  if (first.dmarc !== 'fail') return first
  const maybeSpf = input.spf === 'temperror' ? [input.spfDomain] : []
  if (maybeSpf.length + input.undecided.length === 0) return first
  const best = await evaluate(input, { spfDomains: maybeSpf, dkimDomains: input.undecided, lookUp })
  if (best.dmarc === 'fail') return first
  const reason = 'the DNS did not answer for an identity that would align'
  return { ...first, dmarc: 'temperror', dmarcPolicy: null, reason }
}

async function evaluate(
  { authors, fromFields }: DmarcInput,
  identities: { spfDomains: readonly string[]; dkimDomains: readonly string[]; lookUp: DnsLookUp },
): Promise<DmarcReport> {
  const { response, reason } = await evaluateDmarc({
    headerFrom: [...authors],
    fromFields,
    spfDomains: [...identities.spfDomains],
    dkimDomains: identities.dkimDomains.map((domain) => ({ domain })),
    resolver: identities.lookUp as (name: string, type: string) => Promise<string[][]>,
    strict: true,
  })
  // Without exactly one Author Domain nothing can be validated (RFC 9989 5.3.1).
  if (response === false) {
    const dmarc = reason === 'no-author-domain' ? 'none' : 'permerror'
    return { ...NOTHING_FOUND, dmarc, dmarcPolicy: null, reason: reason ?? null }
  }
  const { result } = response.status
  const found = {
    reason: clip(response.error ?? null),
    record: clip(response.rr ?? null),
    policyDomain: response.policyDomain ?? null,
    aligned: { spf: response.alignment?.spf.result ?? null, dkim: response.alignment?.dkim.result ?? null },
  }
  if (result === 'pass' || result === 'none' || result === 'temperror')
    return { ...found, dmarc: result, dmarcPolicy: null }
  if (result !== 'fail') return { ...found, dmarc: 'permerror', dmarcPolicy: null }
  const dmarcPolicy = DMARC_POLICIES.find((policy) => policy === response.policy) ?? null
  return { ...found, dmarc: 'fail', dmarcPolicy }
}
