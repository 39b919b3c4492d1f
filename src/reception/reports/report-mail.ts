/**
 * report-mail - mail to the addresses of aggregate reports: authenticated, read, and counted before its 250
 *
 * States of a mail: coming, into memory -> judged -> read in a thread -> counted by the commit of `count-report` ->
 * 250. It leaves nothing behind before the commit. If the 250 is lost, the reporter sends the report again, and it is
 * found to be counted.
 *
 * Spec reports.address, reports.bounds, reports.apart, reports.once
 */

import { hash } from 'node:crypto'
import { shardOf } from '../../../cluster/id.ts'
import type { Ask } from '../../../cluster/work.ts'
import { REPORT_PACKED_BYTES_MAX } from '../../../schemas/limits.ts'
import type { CountReportBody, CountReportReply } from '../../actors/report/count-report.ts'
import type { Judgement } from '../../mail/authenticate/judge.ts'
import { clientNetwork } from '../../mail/ip-address.ts'
import { isReportMailbox, parseReportMailbox } from '../../mail/report-address.ts'
import { serviceReturnPathHost } from '../../mail/return-path.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { DomainState } from '../../state/domain.ts'
import { entityFact, parseState } from '../../views/entity.ts'
import type { Reader } from '../../views/key.ts'
import type { MailJudge } from '../mail-judge.ts'
import type { IncomingMail, RcptAddress } from '../mx-listener.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import { MailMemory } from './mail-memory.ts'
import type { CountedReport, ReadReport } from './read-report.ts'
import type { ReportReader } from './report-reader.ts'

/** Why a mail has no report to count. */
type NoReport = Extract<ReadReport, { issue: unknown }>['issue'] | 'unreadable'

/** Results of mail to these addresses, for the operator's metrics. */
export type ReportResult = `report_${CountReportReply | NoReport}`

/** The target of a report. */
export interface ReportTarget {
  readonly domainId: string
  readonly domain: string
}

export interface ReportMailDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly secrets: Pick<Secrets, 'tokenKey'>
  readonly serviceDomain: string
  /** The name by which this server judges mail. */
  readonly receiver: string
  readonly judges: Pick<MailJudge, 'judge'>
  readonly reader: ReportReader
  readonly received: (kind: ReportResult) => void
}

/** The handlers of reports. */
export interface ReportMails {
  /** Checks an address. Returns its target or the refusal; null if it is no address of reports. */
  recipient(address: RcptAddress): Promise<{ readonly target: ReportTarget } | SmtpAnswer | null>
  /** Takes a mail; 250 once its report is counted, or counts for nothing. */
  mail(mail: IncomingMail<unknown>, target: ReportTarget): Promise<SmtpAnswer>
}

/** Bytes of a mail: its file in base64, and room for the rest. */
const RAW_BYTES_MAX = Math.ceil((REPORT_PACKED_BYTES_MAX * 4) / 3) + 1024 * 1024
/** Characters of the hash of a report's id: 132 bits. */
const ID_CHARS = 22

const TAKEN: SmtpAnswer = { code: 250, text: '2.0.0 Ok' }
const UNKNOWN: SmtpAnswer = { code: 550, text: '5.1.1 No such recipient' }
const UNAVAILABLE: SmtpAnswer = { code: 451, text: '4.3.0 Temporary failure, try again later' }
const UNDECIDED: SmtpAnswer = { code: 451, text: '4.7.24 The sender could not be authenticated now, try again later' }
const TOO_MANY: SmtpAnswer = { code: 451, text: '4.7.1 Too many reports about this domain today, try again tomorrow' }
const TOO_BIG: SmtpAnswer = { code: 552, text: '5.3.4 Report too big' }
const NO_REPORT: SmtpAnswer = { code: 554, text: '5.6.0 The mail has no aggregate report that can be read' }

/** Makes the handlers. */
export function makeReportMails(deps: ReportMailDeps): ReportMails {
  const memory = new MailMemory(RAW_BYTES_MAX)
  const host = serviceReturnPathHost(deps.serviceDomain)
  return {
    async recipient({ localPart, domain }) {
      if (domain !== host || !isReportMailbox(localPart)) return null
      const domainId = parseReportMailbox(deps.secrets.tokenKey, localPart)
      const shard = domainId === null ? null : shardOf(domainId)
      if (domainId === null || shard === null) return UNKNOWN
      const seen = await deps.read(shard, [entityFact(shard, { kind: 'domain', id: domainId })])
      if (seen === null) return UNAVAILABLE
      const found = parseState<DomainState>(seen[0])
      if (found === null || found.removedAtMs !== null) return UNKNOWN
      return { target: { domainId, domain: found.domain } }
    },
    async mail(mail, target) {
      const client = clientNetwork(mail.peer.ip)
      const held = await memory.keep(mail.pieces, client)
      if (held === 'full') return UNAVAILABLE
      if (held === 'too_large') {
        deps.received('report_too_large')
        return TOO_BIG
      }
      try {
        return await take(deps, { mail, raw: held.bytes, client, target })
      } finally {
        held.release()
      }
    },
  }
}

interface Taken {
  readonly mail: IncomingMail<unknown>
  readonly raw: Uint8Array
  readonly client: string
  readonly target: ReportTarget
}

async function take(deps: ReportMailDeps, { mail, raw, client, target }: Taken): Promise<SmtpAnswer> {
  const { receiver, judges, reader, nowMs } = deps
  const sender = { address: mail.sender ?? '', ip: mail.peer.ip, helo: mail.peer.helo, receiver }
  const judged = await judges.judge({ raw, sender, checkedAtMs: nowMs() }).judgement
  if (judged === null) return UNAVAILABLE
  const { dmarc } = judged.authentication
  if (dmarc === 'temperror') return UNDECIDED
  const isAuthenticated = dmarc === 'pass'
  const reporter = authorDomain(judged)
  const read = await reader.read({ raw, domain: target.domain, reporter }, { client, isAuthenticated })
  if (read === 'busy') return UNAVAILABLE
  if (read === 'unreadable' || 'issue' in read) {
    const issue = read === 'unreadable' ? read : read.issue
    deps.received(`report_${issue}`)
    return answerOf(issue)
  }
  return count(deps, target, { read, reporter, isAuthenticated })
}

function answerOf(issue: NoReport): SmtpAnswer {
  if (issue === 'other_domain') return TAKEN
  return issue === 'too_large' ? TOO_BIG : NO_REPORT
}

interface Counting {
  readonly read: CountedReport
  readonly reporter: string
  readonly isAuthenticated: boolean
}

async function count(
  deps: ReportMailDeps,
  { domainId }: ReportTarget,
  { read, reporter, isAuthenticated }: Counting,
): Promise<SmtpAnswer> {
  const { head, added, rows, messages } = read
  const { kind, organization, reportId, beginMs, endMs } = head
  const body: CountReportBody = {
    domainId,
    id: idOf([isAuthenticated ? 'authenticated' : 'apart', kind, reporter, reportId]),
    report: { kind, reporter, organization, reportId, beginMs, endMs, rows, messages, authenticated: isAuthenticated },
    added: isAuthenticated ? added : { policy: 0, rows: [] },
  }
  const asked = await deps.ask(shardOf(domainId) as number, { name: 'count-report', cmdId: deps.newCmdId(), body })
  if (asked.kind !== 'answer') return UNAVAILABLE
  const reply = asked.reply as CountReportReply
  deps.received(`report_${reply}`)
  return reply === 'over_limit' && isAuthenticated ? TOO_MANY : TAKEN
}

function idOf(parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url').slice(0, ID_CHARS)
}

/** The domain of the only author; '' if there is no single one. */
function authorDomain({ findings }: Judgement): string {
  const [author = '', ...others] = findings.signatures?.authors ?? []
  return others.length > 0
    ? ''
    : author
        .slice(author.lastIndexOf('@') + 1)
        .toLowerCase()
        .slice(0, 253)
}
