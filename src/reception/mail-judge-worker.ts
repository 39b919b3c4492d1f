/**
 * mail-judge-worker - the body of the thread that verifies signatures with the answers of the DNS that it is given.
 *
 * The first pass reads the mail and returns the parts needed to verify it again, so the bytes are transferred only
 * once.
 */

import type { DnsLookUp } from '../mail/authenticate/look-up.ts'
import {
  checkSignatures,
  readSignedMail,
  type SignatureReport,
  type SignedMail,
} from '../mail/authenticate/signatures.ts'
import { asBuffer, serveJobs } from '../process/serve-jobs.ts'

/** An answer of the DNS: records, or the code of the error. */
export type Answered =
  | { readonly name: string; readonly type: string; readonly records: unknown[] }
  | { readonly name: string; readonly type: string; readonly code: string }

export interface VerifyJob {
  /** The bytes as received, or the parts read from them. */
  readonly mail: { readonly raw: Uint8Array } | { readonly signed: SignedMail }
  readonly checkedAtMs: number
  readonly answers: readonly Answered[]
}

/** With open questions it is not the last word. Null if the mail's header exceeds the limits. */
export type Verification = {
  readonly signed: SignedMail
  readonly report: SignatureReport
  readonly open: readonly { readonly name: string; readonly type: string }[]
} | null

// A mail that the verifier rejects with an error is judged like one that takes too long.
serveJobs(verify)

async function verify({ mail, checkedAtMs, answers }: VerifyJob): Promise<Verification> {
  const signed = 'signed' in mail ? mail.signed : await readSignedMail(asBuffer(mail.raw))
  if (signed === null) return null
  const open = new Map<string, { name: string; type: string }>()
  const lookUp: DnsLookUp = async (name, type) => {
    const known = answers.find((one) => one.name === name && one.type === type)
    if (known !== undefined && 'records' in known) return known.records
    if (known === undefined) open.set(`${type} ${name}`, { name, type })
    const code = known?.code ?? 'ETIMEOUT'
    throw Object.assign(new Error(`${code} ${type} ${name}`), { code })
  }
  const report = await checkSignatures(signed, { lookUp, nowMs: checkedAtMs })
  return { signed, report, open: [...open.values()] }
}
