/**
 * mx-mail - the handlers of the MX listener: mail to inbound streams, returned mail, aggregate reports, and mail to
 * role addresses that no one reads
 *
 * Spec inbound.recipient, inbound.roles, bounce.recipient, reports.address
 */

import {
  type InboundMailDeps,
  type InboundResult,
  type InboundTarget,
  judgeInbound,
  takeInbound,
} from './inbound-mail.ts'
import type { IncomingMail, MxHandlers, MxTransaction, RcptAddress } from './mx-listener.ts'
import type { ReportMails, ReportResult, ReportTarget } from './reports/report-mail.ts'
import type { ReturnedKind, ReturnedMail, ReturnedTarget } from './returned/returned-mail.ts'
import type { SmtpAnswer } from './smtp-answer.ts'

/** Results of mail to the listener, for the operator's metrics. */
export type ReceivedKind = ReturnedKind | InboundResult | ReportResult | 'dropped' | 'refused_recipient'

/** The target of a recipient. */
export type MailTarget =
  | InboundTarget
  | { readonly kind: 'returned'; readonly target: ReturnedTarget }
  | { readonly kind: 'report'; readonly target: ReportTarget }
  /** Counted and dropped. */
  | { readonly kind: 'dropped' }

export interface MxMailDeps {
  readonly inbound: InboundMailDeps
  readonly returned: ReturnedMail
  readonly reports: ReportMails
  readonly inboundDomain: string
  readonly received: (kind: ReceivedKind) => void
}

/** RFC 2142: addresses that every domain has. */
const DROPPED: ReadonlySet<string> = new Set(['postmaster', 'abuse'])

const TAKEN: SmtpAnswer = { code: 250, text: '2.0.0 Ok' }
const ONE_REPORT: SmtpAnswer = { code: 452, text: '4.5.3 One recipient per transaction' }
const ONE_ACCOUNT: SmtpAnswer = { code: 452, text: '4.5.3 One account per transaction' }

/** Makes the handlers. */
export function makeMxMail(deps: MxMailDeps): MxHandlers<MailTarget> {
  return {
    async recipient(address, transaction) {
      const answer = await judge(deps, address, transaction)
      if (!('target' in answer) && answer.code >= 500) deps.received('refused_recipient')
      return answer
    },
    mail: (mail) => take(deps, mail),
  }
}

async function judge(
  deps: MxMailDeps,
  address: RcptAddress,
  { targets }: MxTransaction<MailTarget>,
): Promise<{ readonly target: MailTarget } | SmtpAnswer> {
  const report = await deps.reports.recipient(address)
  if (report !== null) {
    if (!('target' in report)) return report
    return targets.length > 0 ? ONE_REPORT : { target: { kind: 'report', target: report.target } }
  }
  if (targets.some(({ kind }) => kind === 'report')) return ONE_REPORT
  const inbound = targets.filter((target) => target.kind === 'inbound')
  const hasReturnPaths = targets.some(({ kind }) => kind === 'returned')
  if (address.domain === deps.inboundDomain) {
    if (DROPPED.has(address.localPart.toLowerCase())) return { target: { kind: 'dropped' } }
    const joined = { accountId: inbound[0]?.accountId ?? null, recipients: inbound.length, hasReturnPaths }
    return judgeInbound(deps.inbound, address, joined)
  }
  const answer = await deps.returned.recipient(address)
  if (!('target' in answer)) return answer
  return inbound.length > 0 ? ONE_ACCOUNT : { target: { kind: 'returned', target: answer.target } }
}

async function take(deps: MxMailDeps, mail: IncomingMail<MailTarget>): Promise<SmtpAnswer> {
  const inbound = mail.targets.filter((target) => target.kind === 'inbound')
  const returned = mail.targets.flatMap((target) => (target.kind === 'returned' ? [target.target] : []))
  const report = mail.targets.find((target) => target.kind === 'report')
  if (report !== undefined) return deps.reports.mail(mail, report.target)
  if (inbound.length > 0) return takeInbound(deps.inbound, mail, inbound)
  if (returned.length > 0) return deps.returned.mail(mail, returned)
  for await (const _ of mail.pieces);
  deps.received('dropped')
  return TAKEN
}
