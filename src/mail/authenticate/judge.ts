/**
 * judge - a received mail and its session, judged: SPF, DKIM, DMARC and ARC.
 *
 * States: SPF is checked and the signatures are verified (their report is null if that was ended). Both results become
 * the verdicts here.
 *
 * Spec inbound.authentication
 */

import type { Authentication } from './authentication.ts'
import { checkDmarc, type DmarcReport } from './dmarc.ts'
import type { DnsLookUp } from './look-up.ts'
import { missingParts } from './rounds.ts'
import { checkSender, NO_SENDER, type Sender, type SenderReport } from './sender.ts'
import { checkSignatures, domainsWith, readSignedMail, type SignatureReport } from './signatures.ts'

/** Results, for explaining the verdicts. */
export interface Findings {
  readonly sender: SenderReport
  /** Null if verification was aborted or the header exceeds the limits. */
  readonly signatures: SignatureReport | null
  readonly dmarc: DmarcReport | null
}

/** The verdicts. */
export interface Judgement {
  readonly authentication: Authentication
  /** The DNS did not answer everything: another round may complete it. */
  readonly isTemporary: boolean
  readonly findings: Findings
}

/** Combines the reports. `signatures` is null if verification was aborted or the header exceeds the limits. */
export async function judgeReports(
  { sender, signatures }: Pick<Findings, 'sender' | 'signatures'>,
  lookUp: DnsLookUp,
): Promise<Judgement> {
  const spf = sender.from.verdict
  const spfHelo = sender.helo.verdict
  if (signatures === null) {
    const spent = { spf, spfHelo, dkim: 'permerror', dmarc: 'permerror', dmarcPolicy: null, arc: 'fail' } as const
    return makeJudgement(spent, { sender, signatures, dmarc: null })
  }
  const { dkim, arc, authors, fromFields } = signatures
  const passed = domainsWith(signatures, 'pass')
  const undecided = domainsWith(signatures, 'temperror')
  const dmarc = await checkDmarc({ authors, fromFields, spf, spfDomain: sender.from.domain, passed, undecided }, lookUp)
  const authentication = { spf, spfHelo, dkim, dmarc: dmarc.dmarc, dmarcPolicy: dmarc.dmarcPolicy, arc }
  return makeJudgement(authentication, { sender, signatures, dmarc })
}

function makeJudgement(authentication: Authentication, findings: Findings): Judgement {
  return { authentication, isTemporary: missingParts(authentication).length > 0, findings }
}

/**
 * Judges a mail in one step, without a thread, as on the command line and in tests. A null `sender` is unknown.
 */
export async function judgeMail(
  raw: Buffer,
  { sender, lookUp, nowMs }: { sender: Sender | null; lookUp: DnsLookUp; nowMs: number },
): Promise<Judgement> {
  const [ofSender, signed] = await Promise.all([
    sender === null ? NO_SENDER : checkSender(sender, lookUp),
    readSignedMail(raw),
  ])
  const signatures = signed === null ? null : await checkSignatures(signed, { lookUp, nowMs })
  return judgeReports({ sender: ofSender, signatures }, lookUp)
}
