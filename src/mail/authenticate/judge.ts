/**
 * judge - a received mail and its session, judged: SPF, DKIM, DMARC and ARC.
 *
 * States: SPF is asked by whoever took the mail; the signatures are verified in a thread that has its time (its report is
 * null where it was ended); both make the verdicts here.
 *
 * Spec inbound.authentication
 */

import type { Authentication } from './authentication.ts'
import { checkDmarc } from './dmarc.ts'
import type { LookUp } from './look-up.ts'
import { checkSender, type Sender, type SenderReport } from './sender.ts'
import { checkSignatures, type SignatureReport } from './signatures.ts'

/** The verdicts. */
export interface Judgement {
  readonly authentication: Authentication
  /** The DNS could not tell of something: another round may know more. */
  readonly isTemporary: boolean
}

/** Puts the reports together. In: `signatures` is null where verifying was ended, or the header passes the limits. */
export async function judgeReports(
  { sender, signatures }: { sender: SenderReport; signatures: SignatureReport | null },
  lookUp: LookUp,
): Promise<Judgement> {
  const { spf, spfHelo, domain } = sender
  if (signatures === null) {
    const spent = { spf, spfHelo, dkim: 'permerror', dmarc: 'permerror', dmarcPolicy: null, arc: 'fail' } as const
    return { authentication: spent, isTemporary: spf === 'temperror' || spfHelo === 'temperror' }
  }
  const { dkim, arc, ...found } = signatures
  const { dmarc, dmarcPolicy } = await checkDmarc({ ...found, spf, spfDomain: domain }, lookUp)
  return {
    authentication: { spf, spfHelo, dkim, dmarc, dmarcPolicy, arc },
    isTemporary: [spf, spfHelo, dkim, dmarc].includes('temperror') || arc === 'unchecked',
  }
}

/** Judges a mail in one go: where no thread is needed, as on the command line and in tests. */
export async function judgeMail(
  raw: Buffer,
  { sender, lookUp, nowMs }: { sender: Sender; lookUp: LookUp; nowMs: number },
): Promise<Judgement> {
  const [ofSender, ofSignatures] = await Promise.all([
    checkSender(sender, lookUp),
    checkSignatures(raw, { lookUp, nowMs }),
  ])
  return judgeReports({ sender: ofSender, signatures: ofSignatures }, lookUp)
}
