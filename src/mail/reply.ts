/**
 * reply - SMTP replies (RFC 5321 4.2) as one line of text, and what can be read from that line.
 *
 * A reply often repeats the recipient's address. What is kept of a reply is kept with a placeholder in its place, so that
 * an erased address is not left behind in it.
 */

/** Characters of a reply that are kept. */
const RESPONSE_CHARS_MAX = 512

/** Stands for the recipient's address in a kept reply. */
const PLACEHOLDER = '<rcpt>'
const ADDRESS_LIKE = /[^\s<>"'(),:;@]+@[^\s<>"'(),:;@]+/g
const REPLY_LINE = /^(\d{3})(?:[ -]|$)[ \t]*(.*)$/
const ENHANCED = /^[245]\.\d{1,3}\.\d{1,3}(?= |$)/

export interface SmtpReply {
  /** Null for a line that does not begin with a reply code: the peer does not speak SMTP. */
  readonly code: number | null
  /** Enhanced status code (RFC 3463), null when there is none right after the reply code. */
  readonly enhanced: string | null
  readonly text: string
}

/**
 * One line from a reply as received, code first: `554-5.7.1 a`, `554 5.7.1 b` becomes `554 5.7.1 a b`.
 * Repeated codes go, control characters and runs of blanks become one space, the end is cut at 512 characters.
 */
export function formatReply(raw: string): string {
  // The cap comes first too: a peer may send up to 64 KiB, and no pattern should run over that.
  const lines = raw.slice(0, RESPONSE_CHARS_MAX * 8).split(/\r\n|\r|\n/)
  let code = ''
  let enhanced = ''
  const texts: string[] = []
  for (const line of lines) {
    const match = REPLY_LINE.exec(line)
    let text = match ? match[2]! : line
    if (match && code === '') code = match[1]!
    const found = match ? ENHANCED.exec(text)?.[0] : undefined
    if (found !== undefined && (enhanced === '' || found === enhanced)) {
      enhanced = found
      text = text.slice(found.length)
    }
    texts.push(text)
  }
  return capText([code, enhanced, ...texts].join(' '))
}

/** Reads a one-line reply; never fails. */
export function parseReply(line: string): SmtpReply {
  const match = /^([2-5]\d\d)(?: |$)/.exec(line)
  if (!match) return { code: null, enhanced: null, text: line }
  const rest = line.slice(match[0].length)
  const enhanced = ENHANCED.exec(rest)?.[0] ?? null
  return { code: Number(match[1]), enhanced, text: rest.slice(enhanced?.length ?? 0).trim() }
}

/** Any text as one trimmed line of at most 512 characters; no half of a surrogate pair is left at the end. */
export function capText(text: string): string {
  const line = text.replace(/[\u0000-\u0020\u007f-\u009f]+/g, ' ').trim()
  return line
    .slice(0, RESPONSE_CHARS_MAX)
    .replace(/\p{Surrogate}/gu, '')
    .trimEnd()
}

/** The reply with the recipient's address, in whatever case, replaced by a placeholder. */
export function maskAddress(response: string, address: string): string {
  const needle = address.toLowerCase()
  const lower = response.toLowerCase()
  // Lower-casing that changes the length (U+0130) would shift the places; then all non-ASCII is given up.
  if (lower.length !== response.length) return maskAddress(response.replace(/[^\x20-\x7e]/g, '?'), address)
  let masked = ''
  let from = 0
  for (let at = lower.indexOf(needle); needle !== '' && at >= 0; at = lower.indexOf(needle, from)) {
    masked += response.slice(from, at) + PLACEHOLDER
    from = at + needle.length
  }
  return masked + response.slice(from)
}

/** The reply with whatever looks like an address replaced: for who reads it beside no recipient. In: at most 512 characters. */
export function maskAddresses(response: string): string {
  return response.replace(ADDRESS_LIKE, PLACEHOLDER)
}

/** The kept reply with the address (or its pseudonym) put back, at most 512 characters. */
export function unmaskAddress(response: string, address: string): string {
  return capText(response.split(PLACEHOLDER).join(address))
}
