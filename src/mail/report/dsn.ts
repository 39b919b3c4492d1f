/**
 * dsn - mail to a return path: a report by RFC 3464, or the text of a mail system without one.
 *
 * The recipient is never read from it, because the return path names it, and a forwarder reports another address.
 * Guarantees: `bounce` only if the mail reports that delivery has ended; a delay, an answer of a person or machine,
 * and anything not understood is not a bounce. `hard` only by the rules for replies (`classify.ts`).
 *
 * Spec bounce.dsn, bounce.text
 */

import { classifyReply } from '../classify.ts'
import { capText, formatReply, maskAddress, parseReply } from '../reply.ts'
import { quotedReply } from '../reply-words.ts'
import { findFailure, findReply, isDelay, isMailSystem } from './dsn-text.ts'
import { findHeader, findPart, parseFieldBlocks, type ReportMail } from './report-mail.ts'

/** A returned mail. */
export type Dsn =
  | {
      readonly kind: 'bounce'
      /** Reply code of the server that refused, null if none is given. */
      readonly code: number | null
      /** One line; addresses in it are masked. */
      readonly response: string | null
      readonly classification: string
      readonly hard: boolean
      readonly expired: boolean
    }
  /** Delivery continues, or has succeeded. */
  | { readonly kind: 'delay' }
  /** Not about a delivery, such as an automatic answer or a person's text. */
  | { readonly kind: 'other' }

/** Class of a delivery that was abandoned after many tries. */
const EXPIRED_CLASS = 'MessageExpired'
const STATUS = /\b([245])\.(\d{1,3})\.(\d{1,3})\b/
/** RFC 3463 3.5: delivery time expired. Exchange Online: 300 for any reason, 316 and 317 without a connection. */
const EXPIRED_STATUS = /^[45]\.4\.(?:7|300|31[67])$/
/** The mail identifies itself as a report. */
const REPORT_TYPE = /multipart\/report|delivery-status/i
/** Actions after which delivery continues, or has succeeded. */
const GOES_ON: ReadonlySet<string> = new Set(['delayed', 'delivered', 'relayed', 'expanded'])

/** Reads a mail. Takes the recipient's address, which is masked in the result; '' if it is no longer known. */
export function readDsn(mail: ReportMail, address: string): Dsn {
  const report = findPart(mail, 'message/delivery-status', 'message/global-delivery-status') ?? looseReport(mail)
  const told = report === null ? null : readReport(report, mail, address)
  if (told !== null) return told
  const failure = findFailure(mail)
  if (failure === null) return { kind: isDelay(mail) ? 'delay' : 'other' }
  return failure.expired ? expired(failure.line, address) : refused(failure.line, null, address)
}

/**
 * The fields of a report that is no part of the mail. Its boundary differs from the one in the header, or it was
 * attached as text. Only mail systems are trusted: our own message may mention bounces, and a reply may quote it.
 */
function looseReport(mail: ReportMail): string | null {
  const { raw = '' } = mail
  const start = raw.search(/^(Final-Recipient|Original-Recipient|Action|Status):/im)
  if (start < 0 || !(isMailSystem(mail) || REPORT_TYPE.test(findHeader(mail, 'content-type')))) return null
  const [group] = parseFieldBlocks(raw.slice(start))
  return group?.has('action') && group.has('final-recipient') ? raw.slice(start) : null
}

/** A delivery-status part (RFC 3464 2); null if none of its groups is about a recipient. */
function readReport(text: string, mail: ReportMail, address: string): Dsn | null {
  const groups = parseFieldBlocks(text).filter((group) => group.has('action') || group.has('final-recipient'))
  if (groups.length === 0) return null
  const failed = groups.find((group) => parseAction(group) === 'failed')
  if (failed === undefined) return groups.some((group) => GOES_ON.has(parseAction(group))) ? { kind: 'delay' } : null
  const status = STATUS.exec(failed.get('status') ?? '')?.[0] ?? null
  const diagnostic = parseDiagnostic(failed)
  const code = diagnostic === null ? null : parseCode(diagnostic)
  // A permanent refusal counts as one, even if the reporting server gives it another class (a Postfix that bounces
  // softly, a gateway).
  if (code !== null && code >= 500 && !isExpiry(status, diagnostic)) return refused(diagnostic ?? '', status, address)
  const line = code === null ? capText([status, diagnostic].filter(Boolean).join(' ')) : (diagnostic ?? '')
  if (status?.startsWith('4') || isExpiry(status, diagnostic)) return expired(line, address)
  const said = code === null && (status === null || /\.0\.0$/.test(status)) ? findReply(mail) : null
  return refused(said ?? line, status, address)
}

/** RFC 3463 3.5: delivery time expired. A reply with its own code means something else. */
function isExpiry(status: string | null, diagnostic: string | null): boolean {
  const { enhanced } = parseReply(diagnostic ?? '')
  return EXPIRED_STATUS.test(enhanced ?? status ?? '')
}

/** RFC 3464 2.3.3; some write another word, or none, if the status is sufficient. */
function parseAction(group: ReadonlyMap<string, string>): string {
  const action = (group.get('action') ?? '').toLowerCase().replace(/[^a-z].*$/, '')
  const isKnown = action === 'failed' || GOES_ON.has(action)
  return !isKnown && (group.get('status') ?? '').trim().startsWith('5') ? 'failed' : action
}

/** RFC 3464 2.3.6: `smtp; 550 5.1.1 ...` in one line; null for none. */
function parseDiagnostic(group: ReadonlyMap<string, string>): string | null {
  const value = group.get('diagnostic-code')
  if (value === undefined) return null
  const text = value.slice(value.indexOf(';') + 1).trim()
  return formatReply(text.replace(/^(?:<[^>]{0,254}>\.{0,3}\s*|host\s\S{1,254}\ssaid:\s|#)/i, ''))
}

/** The reply code of a line, otherwise of the reply that it quotes, as gateways do. */
function parseCode(line: string): number | null {
  return parseReply(line).code ?? parseReply(quotedReply(line) ?? '').code
}

/**
 * Takes the reply, and the status of the report (RFC 3463), which is more precise than a reply without an enhanced
 * code.
 */
function refused(line: string, status: string | null, address: string): Dsn {
  const code = parseCode(line)
  if (code !== null && code < 500) return expired(line, address)
  const { classification, temporary, hard } = classifyReply({ phase: 'dot', response: asReply(line, status) })
  return {
    kind: 'bounce',
    code,
    response: line === '' ? null : capText(maskAddress(line, address)),
    classification: line === '' ? 'Uncategorized' : classification,
    hard: hard && line !== '',
    expired: temporary,
  }
}

/** A line as a reply that can be classified. Without an SMTP code its words are read as a refusal. */
function asReply(line: string, status: string | null): string {
  const { code, enhanced } = parseReply(line)
  if (code === null) return `550 ${line}`
  const isTold = status?.startsWith('5') === true && !/\.0\.0$/.test(status)
  return enhanced === null && isTold ? `${code} ${status} ${line.slice(4)}` : line
}

function expired(line: string, address: string): Dsn {
  const response = line === '' ? null : capText(maskAddress(line, address))
  return { kind: 'bounce', code: parseCode(line), response, classification: EXPIRED_CLASS, hard: false, expired: true }
}
