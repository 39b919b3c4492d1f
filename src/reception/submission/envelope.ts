/**
 * envelope - addresses and parameters of MAIL and RCPT, as the listener of submission accepts them
 *
 * The library decodes xtext and refuses unknown values of RET and NOTIFY (`replies.ts` corrects its replies); what it
 * does not check is checked here (RFC 3461 4).
 *
 * Spec submission.envelope, submission.reports
 */

import { domainToASCII } from 'node:url'
import type { SMTPServerAddress } from 'smtp-server'
import { parseAddress } from '../../mail/address.ts'
import type { EnvelopeReports } from '../../sending/smtp-form.ts'
import { NOTIFY } from '../../state/message/bounce-mail.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import { BAD_PARAMETER, BAD_RECIPIENT, BAD_VALUE } from './replies.ts'

/** Parameters of MAIL that are offered, and the one that RFC 4954 5 wants wherever AUTH is. */
const MAIL_PARAMETERS: ReadonlySet<string> = new Set(['SIZE', 'BODY', 'AUTH'])
const MAIL_REPORT_PARAMETERS: ReadonlySet<string> = new Set([...MAIL_PARAMETERS, 'RET', 'ENVID'])
/** RCPT offers none without reports. */
const RCPT_PARAMETERS: ReadonlySet<string> = new Set()
const RCPT_REPORT_PARAMETERS: ReadonlySet<string> = new Set(['NOTIFY', 'ORCPT'])
/** Characters of ENVID and ORCPT (RFC 3461 4.2, 4.4), once decoded. */
const ENVID = /^[\x20-\x7e]{1,100}$/
const ORCPT = /^[\x20-\x7e]{1,500}$/
const NOTIFY_WORDS: Readonly<Record<string, number>> = {
  SUCCESS: NOTIFY.success,
  FAILURE: NOTIFY.failure,
  DELAY: NOTIFY.delay,
}

/** An address of the envelope in its canonical form; null if it is not valid. */
export function readRecipient({ address }: SMTPServerAddress): string | null {
  const at = address.lastIndexOf('@')
  const parsed = parseAddress(`${address.slice(0, Math.max(at, 0))}@${domainToASCII(address.slice(at + 1))}`)
  return parsed.ok ? parsed.address : null
}

/** Why the parameters of MAIL are refused; null if they are not. */
export function refuseMail(address: SMTPServerAddress, offersReports: boolean): SmtpAnswer | null {
  if (hasOther(address, offersReports ? MAIL_REPORT_PARAMETERS : MAIL_PARAMETERS)) return BAD_PARAMETER
  const { ENVID: envid } = argsOf(address)
  return envid !== undefined && !ENVID.test(envid) ? BAD_VALUE : null
}

/** Why a recipient is refused; null if it is not. */
export function refuseRecipient(address: SMTPServerAddress, offersReports: boolean): SmtpAnswer | null {
  if (hasOther(address, offersReports ? RCPT_REPORT_PARAMETERS : RCPT_PARAMETERS)) return BAD_PARAMETER
  const { ORCPT: orcpt } = argsOf(address)
  if (orcpt !== undefined && !ORCPT.test(orcpt)) return BAD_VALUE
  return readRecipient(address) === null ? BAD_RECIPIENT : null
}

/** The recipients of an envelope, and its parameters about reports; null if none are offered. */
export function readEnvelope(
  { mailFrom, rcptTo }: { readonly mailFrom: SMTPServerAddress | false; readonly rcptTo: readonly SMTPServerAddress[] },
  offersReports: boolean,
): { readonly recipients: readonly string[]; readonly reports: EnvelopeReports | null } {
  const read = rcptTo.flatMap((one) => {
    const address = readRecipient(one)
    return address === null ? [] : [{ address, notify: readNotify(one, address) }]
  })
  const recipients = read.map(({ address }) => address)
  if (!offersReports || mailFrom === false) return { recipients, reports: null }
  const sender = readRecipient(mailFrom)?.toLowerCase() ?? ''
  const notify = read.map((one) => one.notify)
  return { recipients, reports: { mailFrom: sender, envid: argsOf(mailFrom).ENVID ?? null, notify } }
}

/** The bits of a recipient. Without NOTIFY failures are reported (RFC 3461 4.1). */
function readNotify(address: SMTPServerAddress, recipient: string): number {
  const { NOTIFY: words, ORCPT: orcpt } = argsOf(address)
  const bits =
    words === undefined
      ? NOTIFY.failure
      : words.split(',').reduce((sum, word) => sum | (NOTIFY_WORDS[word.toUpperCase()] ?? 0), 0)
  const isSame = orcpt?.toLowerCase() === `rfc822;${recipient.toLowerCase()}`
  return bits === 0 ? 0 : bits | (isSame ? NOTIFY.same : 0)
}

/** Whether an address came with a parameter that is not among the known ones. */
function hasOther({ args }: SMTPServerAddress, known: ReadonlySet<string>): boolean {
  return Object.keys(args || {}).some((name) => !known.has(name))
}

function argsOf({ args }: SMTPServerAddress): Readonly<Partial<Record<string, string>>> {
  return (args || {}) as Record<string, string>
}
