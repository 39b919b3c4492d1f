/**
 * link-rules - which links of a message may be requested: never one whose request could do something
 *
 * Spec message.checks
 */

/** Characters of a token that is worth something. */
const TOKEN_CHARS_MIN = 20
const TOKEN = /[a-z0-9_~.+=-]{20,}/gi
const HREF_CHARS_MAX = 2_048
/** As a URL writes them: the usual port of its scheme is ''. */
export const LINK_PORTS: readonly string[] = ['', '80', '443']

/** Why a link is not requested. */
export type Unchecked =
  | 'not_web'
  | 'credentials'
  | 'port_not_allowed'
  | 'unsubscribe'
  | 'token'
  | 'private_address'
  | 'limit'

export interface LinkRules {
  readonly baseUrl: string
  /** Links of the message's List-Unsubscribe. */
  readonly unsubscribes: ReadonlySet<string>
  /** In place of our own. */
  readonly ports?: readonly string[]
}

/** The address of a link that may be requested, or why it may not. */
export function readTarget(href: string, { baseUrl, unsubscribes, ports = LINK_PORTS }: LinkRules): URL | Unchecked {
  const url = href.length <= HREF_CHARS_MAX && URL.canParse(href) ? new URL(href) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'not_web'
  if (url.username !== '' || url.password !== '') return 'credentials'
  if (!ports.includes(url.port)) return 'port_not_allowed'
  if (unsubscribes.has(href) || unsubscribes.has(url.href) || isOurs(url, baseUrl)) return 'unsubscribe'
  return hasToken(url) ? 'token' : url
}

/** The service's own unsubscribe links. */
function isOurs(url: URL, baseUrl: string): boolean {
  const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null
  return base !== null && url.host === base.host && url.pathname.includes('/u/')
}

/** Whether path or query contain a run of characters that looks like a token: long, and not the words of a title. */
export function hasToken({ pathname, search }: Pick<URL, 'pathname' | 'search'>): boolean {
  const text = decoded(pathname + search)
  for (const [run] of text.matchAll(TOKEN)) {
    const isMixed = /\d/.test(run) || (/[a-z]/.test(run) && /[A-Z]/.test(run))
    if (isMixed || run.split(/[_~.+=-]/).some((word) => word.length >= TOKEN_CHARS_MIN)) return true
  }
  return false
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // The text is not UTF-8, so its encoded form is checked.
    return text
  }
}
