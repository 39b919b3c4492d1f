/** verify-mail - a mail read and verified in one go, as the thread does it pass by pass. */
import type { LookUp } from '../../../src/mail/authenticate/look-up.ts'
import { checkSignatures, readSignedMail, type SignatureReport } from '../../../src/mail/authenticate/signatures.ts'

/** What the signatures of a mail say; null where its header passes the limits. */
export async function verifyMail(
  raw: Buffer,
  options: { lookUp: LookUp; nowMs: number },
): Promise<SignatureReport | null> {
  const signed = await readSignedMail(raw)
  return signed === null ? null : checkSignatures(signed, options)
}
