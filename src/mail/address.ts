/**
 * address - the grammar of an e-mail address and of its domain
 *
 * Much narrower than RFC 5321 4.1.2: without quoted local parts, address literals, comments and folding, and ASCII
 * only.
 *
 * An envelope's recipient is wider: `parseEnvelope` splits what RCPT takes for those who route by its domain (RFC 5321
 * 4.1.1.3).
 *
 * Spec address.grammar
 */

import { domainToASCII } from 'node:url'
import { ADDRESS_CHARS_MAX, DOMAIN_CHARS_MAX, LABEL_CHARS_MAX, LOCAL_PART_CHARS_MAX } from '../../schemas/limits.ts'

const LOCAL_CHARS = makeCharSet("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_'+-")
const LABEL_CHARS = makeCharSet('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-')
const DOT = 0x2e
const HYPHEN = 0x2d

/** A parsed address, or the result that the text is not one. */
export type ParsedAddress =
  | {
      readonly ok: true
      /** Local part as written, domain in lower case. */
      readonly address: string
      readonly localPart: string
      /** In lower case. */
      readonly domain: string
    }
  | { readonly ok: false }

const NOT_AN_ADDRESS: ParsedAddress = { ok: false }

/** The two parts of a recipient as RCPT takes it. */
export interface EnvelopeAddress {
  readonly local: string
  /** A-labels, lower case. */
  readonly domain: string
}

/** Parses an address from any text. Never throws. Spec address.grammar */
export function parseAddress(text: string): ParsedAddress {
  if (!isAddress(text)) return NOT_AN_ADDRESS
  const at = text.indexOf('@')
  const localPart = text.slice(0, at)
  const domain = text.slice(at + 1).toLowerCase()
  return { ok: true, address: `${localPart}@${domain}`, localPart, domain }
}

/** Whether the text is an address of the grammar. Linear, and bounded by 254 characters. Spec address.grammar */
export function isAddress(text: string): boolean {
  if (text.length > ADDRESS_CHARS_MAX) return false
  const at = text.indexOf('@')
  return at > 0 && at <= LOCAL_PART_CHARS_MAX && isLocalPart(text, at) && isDomainFrom(text, at + 1)
}

/**
 * Whether the text is a domain of the grammar, with two labels or more, the last one alphabetic. Spec address.grammar
 */
export function isDomain(text: string): boolean {
  return text.length <= DOMAIN_CHARS_MAX && isDomainFrom(text, 0)
}

function isLocalPart(text: string, end: number): boolean {
  let afterDot = true
  for (let index = 0; index < end; index++) {
    const char = text.charCodeAt(index)
    if (char === DOT) {
      if (afterDot) return false
      afterDot = true
    } else if (LOCAL_CHARS[char] === 1) {
      afterDot = false
    } else {
      return false
    }
  }
  return !afterDot
}

function isDomainFrom(text: string, from: number): boolean {
  let start = from
  for (let index = from; index < text.length; index++) {
    const char = text.charCodeAt(index)
    if (char === DOT) {
      if (!isLabel(text, start, index)) return false
      start = index + 1
    } else if (LABEL_CHARS[char] !== 1) {
      return false
    }
  }
  return start > from && isLabel(text, start, text.length) && isTopLabel(text, start)
}

function isLabel(text: string, start: number, end: number): boolean {
  const chars = end - start
  return (
    chars >= 1 && chars <= LABEL_CHARS_MAX && text.charCodeAt(start) !== HYPHEN && text.charCodeAt(end - 1) !== HYPHEN
  )
}

function isTopLabel(text: string, start: number): boolean {
  if (text.length - start < 2) return false
  for (let index = start; index < text.length; index++) {
    const lower = text.charCodeAt(index) | 0x20
    if (lower < 0x61 || lower > 0x7a) return false
  }
  return true
}

function makeCharSet(chars: string): Uint8Array {
  const set = new Uint8Array(128)
  for (const char of chars) set[char.charCodeAt(0)] = 1
  return set
}

/** The two parts of an address; null if it cannot be sent as plain SMTP (RFC 6531 is not supported). */
export function parseEnvelope(address: string): EnvelopeAddress | null {
  const at = address.lastIndexOf('@')
  const domain = domainToASCII(address.slice(at + 1)).toLowerCase()
  const local = address.slice(0, Math.max(at, 0))
  if (domain === '' || local === '' || /[^\x21-\x7e]|[<>]/.test(local)) return null
  return { local, domain }
}
