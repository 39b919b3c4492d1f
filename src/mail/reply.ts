/**
 * reply - SMTP replies (RFC 5321 4.2) as one line of text, and the codes in that line.
 *
 * A reply often repeats the recipient's address, and now and then another's. Replies are stored with placeholders
 * instead of addresses.
 */

/** Characters of a reply that are kept. */
const RESPONSE_CHARS_MAX = 512

/** Stands for the recipient's address in a kept reply, and is put back. */
const PLACEHOLDER = '<rcpt>'
/** Stands for any other address, for good. */
const OTHER = '<address>'
/** The sign itself, as URLs (RFC 3986 2.1), return paths (VERP) and RFC 3461 4 write it, or in brackets. */
const AT = /@|[%=+]40|[([]at[)\]]/i
/** A local part in quotes (RFC 5321 4.1.2). */
const QUOTED = /"(?:[^"\\]|\\.){1,254}"@[^\s<>"(),:;@]*/g
/**
 * The sign is followed by a domain, an address literal (RFC 5321 4.1.3), or the end, because a reply may be cut there.
 */
const ADDRESS_LIKE = /[^\s<>"(),:;@]+@(?:\[[^\]\s]*\]?|[^\s<>"'(),:;@]*[^\s<>"'(),:;@.])?/g
const ENCODED = /[^\s<>"(),:;@/?&#]+ ?(?:[%=+]40|[([]at[)\]]) ?(?:[a-z0-9-]+\.)+[a-z]{2,}/gi
/**
 * Characters allowed around an address within one word: `rcpt=`, brackets, but nothing that would make it a longer one.
 */
const BEFORE = /^(?:[a-z]{1,12}=)?[^\p{L}\p{N}.+_=-]*$/iu
const BEHIND = /^[^\p{L}\p{N}.-]*$/u
const REPLY_LINE = /^(\d{3})(?:[ -]|$)[ \t]*(.*)$/
const ENHANCED = /^[245]\.\d{1,3}\.\d{1,3}(?= |$)/

export interface SmtpReply {
  /** Null for a line that does not begin with a reply code. The peer is not an SMTP server. */
  readonly code: number | null
  /** Enhanced status code (RFC 3463), null if none follows the reply code. */
  readonly enhanced: string | null
  readonly text: string
}

/**
 * One line from a reply as received, code first: `554-5.7.1 a`, `554 5.7.1 b` becomes `554 5.7.1 a b`.
 * Repeated codes go, control characters and runs of blanks become one space, the end is cut at 512 characters.
 */
export function formatReply(raw: string): string {
  // The text is capped first, because a peer may send up to 64 KiB, too much for the patterns.
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

/**
 * Any text as one trimmed line of at most 512 characters; it never ends in half of a surrogate pair, or in a part of an
 * address that would not be recognized.
 */
export function capText(text: string): string {
  const line = text.replace(/[\u0000-\u0020\u007f-\u009f]+/g, ' ').trim()
  return line
    .slice(0, findEnd(line))
    .replace(/\p{Surrogate}/gu, '')
    .trimEnd()
}

/** The place to cut a line: its maximum length, or before the last word if that contains an address. */
function findEnd(line: string): number {
  if (line.length <= RESPONSE_CHARS_MAX) return line.length
  const start = line.lastIndexOf(' ', RESPONSE_CHARS_MAX)
  const end = line.indexOf(' ', RESPONSE_CHARS_MAX)
  const word = line.slice(start + 1, end < 0 ? line.length : end)
  return AT.test(word) ? start + 1 : RESPONSE_CHARS_MAX
}

/**
 * The reply in the form for storage. The recipient's address, in any case, is replaced by a placeholder that is later
 * put back, and everything else that looks like an address (the target of a forwarding, the sender, one in a URL) by a
 * permanent one. Takes at most a few kilobytes of text, and the address, '' for none.
 */
export function maskAddress(response: string, address: string): string {
  if (!AT.test(response)) return response
  const own = address.toLowerCase()
  return response
    .replace(QUOTED, OTHER)
    .replace(ADDRESS_LIKE, (word) => maskWord(word, own))
    .replace(ENCODED, OTHER)
}

function maskWord(word: string, own: string): string {
  const at = own === '' ? -1 : word.toLowerCase().indexOf(own)
  if (at < 0) return OTHER
  const [before, behind] = [word.slice(0, at), word.slice(at + own.length)]
  return BEFORE.test(before) && BEHIND.test(behind) ? before + PLACEHOLDER + behind : OTHER
}

/** The kept reply with the address (or its pseudonym) put back, at most 512 characters. */
export function unmaskAddress(response: string, address: string): string {
  return capText(response.split(PLACEHOLDER).join(address))
}
