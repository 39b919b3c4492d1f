/** verify-mail - a mail read and verified in one go, as the thread does it pass by pass. */
import type { DnsLookUp } from '../../../src/mail/authenticate/look-up.ts'
import { checkSignatures, readSignedMail, type SignatureReport } from '../../../src/mail/authenticate/signatures.ts'

/** The results of a mail's signatures; null if its header exceeds the limits. */
export async function verifyMail(
  raw: Buffer,
  options: { lookUp: DnsLookUp; nowMs: number },
): Promise<SignatureReport | null> {
  const signed = await readSignedMail(raw)
  return signed === null ? null : checkSignatures(signed, options)
}
