/**
 * reply-words - the words of a refusal for matching, reduced to the server that wrote them, and without names
 *
 * A person may be called `spam`, a host `mx1.policy.example`: addresses, host names, URLs and numbers of the network
 * are cut out before any word is read. Only names of well-known blocklists are kept, as one word.
 */

/** Characters of a reply that are read. */
const CHARS_MAX = 512
/** Depth of replies within replies, because a gateway quotes the next server, which quotes the next. */
const DEPTH_MAX = 3

/** A quoted reply: Postfix and Exchange put words before it, Cisco's gateways put the text in quotation marks. */
const QUOTED =
  /(?:\bsaid: ?|\breplied: ?|-> ?|\breturned '|\bresponded with |\bsmtp; ?|<<< )([2-5]\d\d(?:[ -].*|$))|\b([45]\d\d)[- ]'([^']{1,500})/
/** Before a quoted reply: it is about the sender's address, even if it mentions a "user". */
const OF_SENDER = /\bsender\b|\bcall-?(back|out)\b|\bmail ?from\b|\breturn path\b/i
/** The text after a quoted reply, by quoting server. */
const AFTER_QUOTED = /\(in reply to [^)]{0,80}\).*$|\(delivery attempts: \d+\).*$/i

/** An address, its placeholder, or a name in angle brackets: `@` in their place. */
const ADDRESS =
  /<{1,2}[^<>\s]{0,320}>{1,2}|"[^"]{1,64}"@[^\s<>"',;]{1,255}|[^\s<>"'(),:;@[\]]{1,64}@[^\s<>"'(),:;@[\]]{1,255}/g
const URL = /\b(?:https?:\/\/|www\.)[^\s<>"]{1,500}/gi
/** Labels with dots between them. */
const HOST = /(?<![\w.#])(?:[a-z0-9_-]{1,63}\.){1,10}[a-z]{2,24}(?![\w.-]*\w)/gi
/** `RESOLVER.ADR.RecipNotFound` and similar tokens are words; so is `Mailbox full.Please`, with its missing blank. */
const EXCHANGE_WORD = /^(?:resolver|storedrv|transport|smtpsend|agent|routing|queue)\./i
const TWO_WORDS =
  /^[a-z]+\.(?!(?:[a-z]{2}|com|net|org|edu|gov|mil|info|biz|name|pro|app|dev|cloud|online|site|shop|store|email|mail|tech|xyz|club|live|local|lan|internal|example|invalid|test)$)[a-z]+$/i
const LIST_HOST =
  /(?:^|[./])(?:spamhaus|spamcop|barracudacentral|sorbs|abuseat|mailspike|cloudmark|invaluement|senderscore|senderbase|uceprotect|spamrats|dnswl)\.(?:org|net|com)(?![\w-])/i
const URL_LIST_HOST = /(?:^|[./])(?:surbl|uribl)\.(?:org|com)(?![\w-])/i
const IPV4 = /\b\d{1,3}(?:\.\d{1,3}){3}\b/g
const IPV6 = /(?<![\w:])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){0,6}(?![\w:])/gi

/** The reply that decides, and how it was come by. */
export interface ReplyWords {
  /** Code first; names are cut out. At most 512 characters. */
  readonly text: string
  /** Reply code of the quoted server, null if no reply is quoted. */
  readonly quotedCode: number | null
}

/** The words of a reply in one line. Of nested replies the innermost counts. Never fails. */
export function readWords(response: string): ReplyWords {
  const quoted = quotedReply(response)
  const text = cutNames((quoted ?? response).slice(0, CHARS_MAX))
  return { text, quotedCode: quoted === null ? null : Number(quoted.slice(0, 3)) }
}

/** The innermost reply that a reply of one line quotes, code first; null for none. */
export function quotedReply(response: string): string | null {
  let found: string | null = null
  let rest = response.slice(0, CHARS_MAX)
  for (let depth = 0; depth < DEPTH_MAX; depth += 1) {
    const match = QUOTED.exec(rest)
    if (match === null || OF_SENDER.test(rest.slice(0, match.index))) break
    found = (match[1] ?? `${match[2]} ${match[3]}`).replace(/^(\d{3})-/, '$1 ')
    rest = found.slice(3)
  }
  return found === null ? null : found.replace(AFTER_QUOTED, '').trim()
}

/**
 * The line with `@` for addresses, `~` for hosts and URLs, `#` for addresses of the network. In: at most 512
 * characters.
 */
export function cutNames(line: string): string {
  return line
    .replace(URL, nameOf)
    .replace(ADDRESS, '@')
    .replace(IPV4, '#')
    .replace(IPV6, '#')
    .replace(HOST, (host) => (EXCHANGE_WORD.test(host) || TWO_WORDS.test(host) ? host : nameOf(host)))
}

function nameOf(host: string): string {
  if (LIST_HOST.test(host)) return 'dnsbl'
  return URL_LIST_HOST.test(host) ? 'surbl' : '~'
}
