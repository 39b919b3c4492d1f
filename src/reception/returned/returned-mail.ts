/**
 * returned-mail - mail to the MX listener about our own mail: bounces to return paths, complaints of feedback loops,
 * and mail to postmasters
 *
 * A recipient is refused before DATA if its token is forged or unknown, or its domain is no longer valid. Each bounce
 * and complaint becomes one command, and 250 is sent when it is on disk. All other mail to these addresses is counted
 * and dropped, because no one reads it here.
 *
 * Spec bounce.recipient, bounce.grace, bounce.unread, complaint.address, complaint.arf
 */

import { setTimeout as wait } from 'node:timers/promises'
import type { Ask, AskResult } from '../../../cluster/work.ts'
import type { Report, ReportBody, ReportReply } from '../../actors/message/record-report.ts'
import { clientNetwork } from '../../mail/ip-address.ts'
import { classifyFeedback, readArf } from '../../mail/report/arf.ts'
import { readDsn } from '../../mail/report/dsn.ts'
import type { ReportMail } from '../../mail/report/report-mail.ts'
import {
  isReturnPath,
  parseReturnPath,
  RETURN_PATH_LABEL,
  serviceReturnPathHost,
  type TokenRecipient,
} from '../../mail/return-path.ts'
import type { Secrets } from '../../process/secrets.ts'
import { computeStanding } from '../../state/domain.ts'
import { ERASED_DOMAIN } from '../../state/person/person.ts'
import type { Reader } from '../../views/key.ts'
import { type FoundRecipient, findRecipient } from '../../views/message/return-path.ts'
import type { IncomingMail, RcptAddress } from '../mx-listener.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import type { ReturnedParser } from './returned-parser.ts'
import type { UnreadReports } from './unread-reports.ts'

/** Results of returned mail, for the operator's metrics. */
export type ReturnedKind =
  | 'bounce'
  | 'delay'
  | 'complaint'
  | 'complaint_without_token'
  /** A feedback report of no person's complaint. */
  | 'no_complaint'
  | 'other'
  | 'unreadable'

/** The target of returned mail. */
export type ReturnedTarget =
  | { readonly kind: 'return-path'; readonly found: FoundRecipient }
  /** `fbl`, `abuse`, `postmaster` of the service's own return path. */
  | { readonly kind: 'role' }

export interface ReturnedMailDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly secrets: Secrets
  readonly serviceDomain: string
  readonly parser: ReturnedParser
  /** Keeps reports that could not be read. */
  readonly unread: Pick<UnreadReports, 'keep'>
  readonly received: (kind: ReturnedKind) => void
}

const ROLES: ReadonlySet<string> = new Set(['fbl', 'abuse', 'postmaster'])
/**
 * Bytes of a mail that are kept. A report is the second of its parts, and the quoted header is at the start of the
 * third.
 */
const KEPT_BYTES_MAX = 256 * 1024

/** Number and interval of the retries for a report about a message that is being recalled. */
const RECALL_TRIES = 20
const RECALL_MS = 200

const TAKEN: SmtpAnswer = { code: 250, text: '2.0.0 Ok' }
const UNKNOWN: SmtpAnswer = { code: 550, text: '5.1.1 No such recipient' }
const NO_RELAY: SmtpAnswer = { code: 550, text: '5.7.1 Relaying denied' }
const MISSING_RECORDS: SmtpAnswer = { code: 451, text: '4.4.3 Domain is not set up at the moment' }
const GONE_RECORDS: SmtpAnswer = { code: 550, text: '5.1.2 Domain is no longer set up' }
const UNAVAILABLE: SmtpAnswer = { code: 451, text: '4.3.0 Temporary failure, try again later' }
const UNDER_WAY: SmtpAnswer = { code: 451, text: '4.3.0 Delivery is still under way, try again later' }

/** The handlers of returned mail. */
export interface ReturnedMail {
  /** Checks whether mail to the address is accepted. Returns its target or the refusal. */
  recipient(address: RcptAddress): Promise<{ readonly target: ReturnedTarget } | SmtpAnswer>
  /** Takes a mail for its targets; 250 once its reports are on disk. */
  mail(mail: IncomingMail<unknown>, targets: readonly ReturnedTarget[]): Promise<SmtpAnswer>
}

/** Makes it. */
export function makeReturnedMail(deps: ReturnedMailDeps): ReturnedMail {
  return {
    recipient: (address) => judgeRecipient(deps, address),
    async mail({ pieces, sender, peer }, targets) {
      const bytes = await keepStart(pieces)
      return takeMail(deps, { bytes, targets, isNullSender: sender === null, client: clientNetwork(peer.ip) })
    },
  }
}

/** The first bytes of a mail; the rest is discarded. Rejects if the mail is cut off. */
async function keepStart(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const kept: Buffer[] = []
  let bytes = 0
  for await (const piece of pieces) {
    if (bytes >= KEPT_BYTES_MAX) continue
    const part = piece.subarray(0, KEPT_BYTES_MAX - bytes)
    kept.push(part)
    bytes += part.length
  }
  return Buffer.concat(kept)
}

async function judgeRecipient(
  deps: ReturnedMailDeps,
  { localPart, domain }: RcptAddress,
): Promise<{ readonly target: ReturnedTarget } | SmtpAnswer> {
  const own = serviceReturnPathHost(deps.serviceDomain)
  if ((domain === own || domain === '') && ROLES.has(localPart.toLowerCase())) return { target: { kind: 'role' } }
  // Senders that resolve a CNAME before they write the envelope use the target of the domain's record.
  const isOwn = domain === own || domain === '' || domain.endsWith(`.${own}`)
  const sending = domain.startsWith(`${RETURN_PATH_LABEL}.`) ? domain.slice(RETURN_PATH_LABEL.length + 1) : null
  if (!isOwn && sending === null) return NO_RELAY
  if (!isReturnPath(localPart)) return isOwn ? UNKNOWN : NO_RELAY
  const named = parseReturnPath(deps.secrets.tokenKey, localPart)
  if (named === null) return UNKNOWN
  const found = await findRecipient(deps.read, named, sending)
  if (found === 'unavailable') return UNAVAILABLE
  if (found === null) return UNKNOWN
  const standing = computeStanding(found.domain, deps.nowMs())
  if (standing === 'missing') return MISSING_RECORDS
  return standing === 'gone' ? GONE_RECORDS : { target: { kind: 'return-path', found } }
}

/** A mail that has come whole, as far as it is kept. */
interface Taken {
  readonly bytes: Buffer
  readonly targets: readonly ReturnedTarget[]
  readonly isNullSender: boolean
  readonly client: string
}

/** Each recipient has its own command; the first that cannot be executed now defers the whole mail. */
async function takeMail(deps: ReturnedMailDeps, { bytes, targets, isNullSender, client }: Taken): Promise<SmtpAnswer> {
  const parsed = await deps.parser.parse(bytes, client)
  if (parsed === 'busy') return UNAVAILABLE
  if (parsed === 'unreadable') {
    deps.received('unreadable')
    return (await deps.unread.keep(bytes, client)) ? TAKEN : UNAVAILABLE
  }
  const mail = { ...parsed, isNullSender }
  for (const target of targets) {
    const answer = target.kind === 'role' ? await takeArf(deps, mail) : await takeDsn(deps, mail, target.found)
    if (answer.code !== 250) return answer
  }
  return TAKEN
}

/** A mail to a return path. Some feedback loops write there too. */
async function takeDsn(deps: ReturnedMailDeps, mail: ReportMail, found: FoundRecipient): Promise<SmtpAnswer> {
  const arf = readArf(mail)
  if (arf !== null) return takeArf(deps, mail)
  const dsn = readDsn(mail, found.address)
  deps.received(dsn.kind)
  return dsn.kind === 'bounce' ? record(deps, found, dsn) : TAKEN
}

/** Spec complaint.arf */
async function takeArf(deps: ReturnedMailDeps, mail: ReportMail): Promise<SmtpAnswer> {
  const arf = readArf(mail)
  if (arf === null || classifyFeedback(arf.feedbackType) === 'none') {
    deps.received(arf === null ? 'other' : 'no_complaint')
    return TAKEN
  }
  const { tokenKey } = deps.secrets
  const named = arf.returnPaths.map((address) => tokenIn(tokenKey, address)).find((one) => one !== null)
  // A valid token is enough, even if its domain has changed since: a recipient who complained must not get further
  // mail.
  const found = named === undefined ? null : await findRecipient(deps.read, named, null)
  if (found === 'unavailable') return UNAVAILABLE
  if (found === null) {
    deps.received(arf.messageId === null ? 'other' : 'complaint_without_token')
    return TAKEN
  }
  deps.received('complaint')
  return record(deps, found, { kind: 'complaint', feedbackType: arf.feedbackType })
}

function tokenIn(tokenKey: Buffer, address: string): TokenRecipient | null {
  const at = address.lastIndexOf('@')
  return at < 0 ? null : parseReturnPath(tokenKey, address.slice(0, at))
}

/** Asks for the report to be recorded; 250 means that it is, or that it counts for nothing. */
async function record(deps: ReturnedMailDeps, found: FoundRecipient, report: Report): Promise<SmtpAnswer> {
  const { shard, accountId, item, address } = found
  const isKnown = address !== '' && !address.endsWith(ERASED_DOMAIN)
  const body: ReportBody = { item, hmac: isKnown ? deps.secrets.addressHmac(accountId, address) : null, report }
  for (let tries = 1; ; tries += 1) {
    const result: AskResult = await deps.ask(shard, { name: 'record-report', cmdId: deps.newCmdId(), body })
    if (result.kind !== 'answer') return UNAVAILABLE
    const reply = result.reply as ReportReply
    if (reply === 'open') return UNDER_WAY
    if (reply !== 'sealed') return TAKEN
    // The message is on its way back from its segment.
    if (tries === RECALL_TRIES) return UNAVAILABLE
    await wait(RECALL_MS)
  }
}
