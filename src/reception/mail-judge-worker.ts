/**
 * mail-judge-worker - the body of the thread that judges mails with the answers of the DNS that it is given.
 *
 * The first pass reads the mail and returns the parts needed to judge it again, so the bytes are transferred only
 * once. Signatures whose questions are all answered are not verified again.
 */

import { type Judgement, judgeReports } from '../mail/authenticate/judge.ts'
import type { DnsLookUp } from '../mail/authenticate/look-up.ts'
import { checkSender, type Sender } from '../mail/authenticate/sender.ts'
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

/** A mail, the parts read from it, or the final report on its signatures. Null: it cannot be verified. */
type Mail = { readonly signed: SignedMail } | { readonly report: SignatureReport } | null

export interface JudgeJob {
  readonly mail: { readonly raw: Uint8Array } | Mail
  readonly sender: Sender
  readonly checkedAtMs: number
  readonly answers: readonly Answered[]
}

/** With open questions it is not the last word. */
export interface Judged {
  readonly mail: Mail
  readonly judgement: Judgement
  readonly open: readonly { readonly name: string; readonly type: string }[]
}

// A mail that the verifier rejects with an error is judged like one that takes too long.
serveJobs(judge)

async function judge({ mail, sender, checkedAtMs, answers }: JudgeJob): Promise<Judged> {
  const open = new Map<string, { name: string; type: string }>()
  const lookUp: DnsLookUp = async (name, type) => {
    const known = answers.find((one) => one.name === name && one.type === type)
    if (known !== undefined && 'records' in known) return known.records
    if (known === undefined) open.set(`${type} ${name}`, { name, type })
    const code = known?.code ?? 'ETIMEOUT'
    throw Object.assign(new Error(`${code} ${type} ${name}`), { code })
  }
  const read = mail !== null && 'raw' in mail ? await readMail(mail.raw) : mail
  const signatures = await verify(read, { lookUp, nowMs: checkedAtMs })
  const next = signatures !== null && open.size === 0 ? { report: signatures } : read
  const ofSender = await checkSender(sender, lookUp)
  const judgement = await judgeReports({ sender: ofSender, signatures }, lookUp)
  return { mail: next, judgement, open: [...open.values()] }
}

async function readMail(raw: Uint8Array): Promise<Mail> {
  const signed = await readSignedMail(asBuffer(raw))
  return signed === null ? null : { signed }
}

async function verify(mail: Mail, of: { lookUp: DnsLookUp; nowMs: number }): Promise<SignatureReport | null> {
  if (mail === null) return null
  return 'report' in mail ? mail.report : checkSignatures(mail.signed, of)
}
