/**
 * dsn - what mail to a return path says of the delivery: a report by RFC 3464, or the words of a mail system without one.
 *
 * The recipient is never read from it: the return path names it, and whoever forwarded the mail reports another address.
 * Guarantees: `bounce` only where the mail says that delivery has ended; a delay, an answer of a person or of a machine,
 * and anything that is not understood is none. `hard` only by the rules for replies (`classify.ts`).
 *
 * Spec bounce.dsn, bounce.text
 */

import { classifyReply } from '../classify.ts'
import { capText, formatReply, maskAddress, parseReply } from '../reply.ts'
import { findFailure, isDelay } from './dsn-text.ts'
import { parseFieldBlocks, partOf, type ReportMail } from './report-mail.ts'

/** What came back. */
export type Dsn =
  | {
      readonly kind: 'bounce'
      /** Reply code of the server that refused, null where none is told. */
      readonly code: number | null
      /** One line; addresses in it are masked. */
      readonly response: string | null
      readonly classification: string
      readonly hard: boolean
      readonly expired: boolean
    }
  /** Delivery goes on, or has succeeded. */
  | { readonly kind: 'delay' }
  /** Not about a delivery at all: an automatic answer, a person's words. */
  | { readonly kind: 'other' }

/** Class of what was given up after many tries. */
const EXPIRED_CLASS = 'MessageExpired'
const STATUS = /\b([245])\.(\d{1,3})\.(\d{1,3})\b/
/** RFC 3463 3.5: delivery time expired. */
const EXPIRED_STATUS = /^[45]\.4\.7$/
/** Actions after which delivery goes on, or has succeeded. */
const GOES_ON: ReadonlySet<string> = new Set(['delayed', 'delivered', 'relayed', 'expanded'])

/** Reads a mail. In: the recipient's address, masked in what is kept; '' where it is not known any more. */
export function readDsn(mail: ReportMail, address: string): Dsn {
  const report = partOf(mail, 'message/delivery-status', 'message/global-delivery-status')
  const told = report === null ? null : readReport(report, address)
  if (told !== null) return told
  const failure = findFailure(mail)
  if (failure === null) return { kind: isDelay(mail) ? 'delay' : 'other' }
  return failure.expired ? expired(failure.line, [address]) : refused(failure.line, [address])
}

/** A delivery-status part (RFC 3464 2): null where no group of it tells of a recipient. */
function readReport(text: string, address: string): Dsn | null {
  const groups = parseFieldBlocks(text).filter((group) => group.has('action') || group.has('final-recipient'))
  if (groups.length === 0) return null
  const failed = groups.find((group) => actionOf(group) === 'failed')
  if (failed === undefined) return groups.some((group) => GOES_ON.has(actionOf(group))) ? { kind: 'delay' } : null
  const masked = [address, ...addressesOf(failed)]
  const status = STATUS.exec(failed.get('status') ?? '')?.[0] ?? null
  const diagnostic = diagnosticOf(failed)
  if (status?.startsWith('4') || (status !== null && EXPIRED_STATUS.test(status)))
    return expired(diagnostic?.isReply ? diagnostic.line : lineOf(status, diagnostic), masked)
  if (diagnostic?.isReply) return refused(diagnostic.line, masked)
  return refused(lineOf(status, diagnostic), masked)
}

/** RFC 3464 2.3.3; some write another word, or none, where the status says enough. */
function actionOf(group: ReadonlyMap<string, string>): string {
  const action = (group.get('action') ?? '').toLowerCase().replace(/[^a-z].*$/, '')
  const isKnown = action === 'failed' || GOES_ON.has(action)
  return !isKnown && (group.get('status') ?? '').trim().startsWith('5') ? 'failed' : action
}

/** RFC 3464 2.3.6: `smtp; 550 5.1.1 ...`. */
function diagnosticOf(group: ReadonlyMap<string, string>): { line: string; isReply: boolean } | null {
  const value = group.get('diagnostic-code')
  if (value === undefined) return null
  const text = value.slice(value.indexOf(';') + 1).trim()
  const line = formatReply(text.replace(/^(?:<[^>]{0,254}>\.{0,3}\s*|host\s\S{1,254}\ssaid:\s)/i, ''))
  return { line, isReply: parseReply(line).code !== null }
}

function lineOf(status: string | null, diagnostic: { line: string } | null): string {
  return capText([status, diagnostic?.line].filter(Boolean).join(' '))
}

/** Recipients by RFC 3464 2.3.1 and 2.3.2: another one than ours where mail was forwarded, and nobody's business. */
function addressesOf(group: ReadonlyMap<string, string>): string[] {
  return ['final-recipient', 'original-recipient']
    .map((name) => (group.get(name) ?? '').replace(/^[^;]*;/, '').replace(/[<>\s]/g, ''))
    .filter((text) => text.includes('@'))
}

function refused(line: string, addresses: readonly string[]): Dsn {
  const { code } = parseReply(line)
  if (code !== null && code < 500) return expired(line, addresses)
  // Without a reply of SMTP the words alone decide; they are read as those of a refusal.
  const asReply = code === null ? `550 ${line}` : line
  const { classification, temporary, hard } = classifyReply({ phase: 'dot', response: asReply })
  return {
    kind: 'bounce',
    code,
    response: line === '' ? null : mask(line, addresses),
    classification: line === '' ? 'Uncategorized' : classification,
    hard: hard && line !== '',
    expired: temporary,
  }
}

function expired(line: string, addresses: readonly string[]): Dsn {
  const { code } = parseReply(line)
  const response = line === '' ? null : mask(line, addresses)
  return { kind: 'bounce', code, response, classification: EXPIRED_CLASS, hard: false, expired: true }
}

function mask(line: string, addresses: readonly string[]): string {
  let masked = line
  for (const address of addresses) masked = maskAddress(masked, address)
  return capText(masked)
}
