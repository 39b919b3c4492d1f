/**
 * qp-plain - quoted-printable for plain text: ASCII without controls, lines that end in CRLF
 *
 * It writes the same bytes as `encode` and `wrap` of nodemailer for such a text, without checking each character: a
 * line is only encoded if necessary, and cut after the last blank or stop near its end. The test compares both over
 * random texts.
 *
 * RFC 2045 6.7
 */

/** Octets of a line with its soft break. */
const LINE_OCTETS_MAX = 76
/** A line is preferably cut after a blank or a stop in its last third. */
const MARGIN = 25
const CRLF = '\r\n'
const SOFT_BREAK = '=\r\n'
const BLANK_END = /[ \t]$/
const [TAB, BLANK, EQUALS] = [0x09, 0x20, 0x3d]
/** 1 for the characters after which a line is preferably cut. */
const IS_STOP = new Uint8Array(128)
for (const stop of ' \t.,!?') IS_STOP[stop.charCodeAt(0)] = 1

/**
 * Encodes and wraps a text. In: tabs, CRLF and U+0020 to U+007E; more than one line's octets, or it is wrapped where
 * nodemailer leaves it alone.
 */
export function encodePlain(text: string): string {
  let encoded = ''
  let start = 0
  for (let end = text.indexOf(CRLF); end >= 0; end = text.indexOf(CRLF, start)) {
    encoded += wrapLine(escapeLine(text.slice(start, end)), true)
    start = end + CRLF.length
  }
  return encoded + wrapLine(escapeLine(text.slice(start)), false)
}

/** A line without its end: `=`, and a blank at the end, would be read as something else. */
function escapeLine(line: string): string {
  const escaped = line.includes('=') ? line.replaceAll('=', '=3D') : line
  const last = escaped.charCodeAt(escaped.length - 1)
  if (last !== BLANK && last !== TAB) return escaped
  return escaped.replace(BLANK_END, last === BLANK ? '=20' : '=09')
}

/** A line with soft breaks; `isEnded`: CRLF follows, which matters if it would not fit. */
function wrapLine(line: string, isEnded: boolean): string {
  const all = isEnded ? line.length + CRLF.length : line.length
  let wrapped = ''
  let start = 0
  while (!isEnded || all - start > LINE_OCTETS_MAX) {
    const cut = cutAt(line, start, all)
    if (cut >= all) return wrapped + line.slice(start)
    wrapped += line.slice(start, cut) + SOFT_BREAK
    start = cut
  }
  return wrapped + line.slice(start) + CRLF
}

/** The end of the piece that begins at `start`; with its soft break it fits in one line. */
function cutAt(line: string, start: number, all: number): number {
  const end = Math.min(start + LINE_OCTETS_MAX, all)
  const isFull = end < all
  const leastStop = end - start > LINE_OCTETS_MAX - MARGIN ? end - MARGIN : end
  for (let at = end - 1; at >= leastStop; at -= 1) {
    if (IS_STOP[line.charCodeAt(at)] === 1) return isFull && at === end - 1 ? at : at + 1
  }
  if (!isFull) return end
  // An escape is not torn apart.
  for (let at = end - 1; at >= end - 3; at -= 1) if (line.charCodeAt(at) === EQUALS) return at
  return end - 1
}
