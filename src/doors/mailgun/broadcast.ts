/**
 * broadcast - a form with `recipient-variables` becomes the body of POST /v1/broadcasts
 *
 * `%recipient.name%` becomes a placeholder of ours. Braces that would begin one become placeholders themselves.
 */

import type { Issue } from '../../../schemas/error.ts'
import { SUBSTITUTION_NAME_CHARS_MAX, SUBSTITUTIONS_MAX } from '../../../schemas/limits.ts'

/** Recipients of one request, as Mailgun bounds them. */
const RECIPIENTS_MAX = 1_000
const FIELD = 'recipient-variables'
const PLACEHOLDER = /%recipient\.([^%\s]{1,100})%|%(unsubscribe_url)%/g
/** Mailgun's own mailbox for unsubscribes, which does not exist here. */
const THEIR_MAILBOX = /(?:^|,)\s*<%tag_unsubscribe_email%>/g
const NAME = new RegExp(`^[A-Za-z0-9_]{1,${SUBSTITUTION_NAME_CHARS_MAX}}$`)
const LINK = 'unsubscribeUrl'
/** Begins our names for variables whose own name is none of ours; a number follows. */
const OWN_NAME = 'variable_'
/** A Message-ID of its own for each recipient. Each of our messages has one anyway. */
const OWN_MESSAGE_ID = /^<%recipient\.[^%\s]{1,100}%>$/
/** Maximum pairs of braces in the texts of one message, because each becomes a placeholder seven times as long. */
const BRACES_MAX = 10_000
/** Escapes that clients use in values for HTML, because Mailgun inserts values unchanged. */
const ENTITIES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&#39;': "'",
  '&#x27;': "'",
  '&#x60;': '`',
  '&#x3D;': '=',
}
const ENTITY = new RegExp(Object.keys(ENTITIES).join('|'), 'g')
const BRACES = { braces_two: '{{', braces_one: '{' } as const

type Body = Readonly<Record<string, unknown>>
type Variables = Readonly<Record<string, unknown>>

/** A mapped broadcast, or the problems of the form. */
export type MappedBroadcast = { readonly body: Record<string, unknown> } | { readonly issues: readonly Issue[] }

/** Maps a message with the variables of its recipients. Takes the message in the form of our own route. */
export function mapBroadcast(message: Body, { variables: json, streamId }: { variables: string; streamId: string }) {
  const { to, cc, bcc, headers: given = {}, subject, text, html, ...rest } = message
  const issues: Issue[] = []
  const variables = parseVariables(json, issues)
  const recipients = Array.isArray(to) ? to : []
  if (recipients.length > RECIPIENTS_MAX)
    issues.push({ path: 'to', message: `Must have at most ${RECIPIENTS_MAX} recipients` })
  for (const [path, value] of Object.entries({ cc, bcc }))
    if (value !== undefined) issues.push({ path, message: `Must not be given with ${FIELD}` })
  if (issues.length > 0) return { issues }
  const names = new Names(escapedIn(variables))
  const texts = Object.fromEntries(
    Object.entries({ subject, text, html }).flatMap(([name, value]) =>
      typeof value === 'string'
        ? [[name, names.template(value, { hasLink: name !== 'subject', isHtml: name === 'html' })]]
        : [],
    ),
  )
  const { headers, ownsList } = convertHeaders(given as Readonly<Record<string, string>>, names, issues)
  issues.push(...names.issues())
  if (issues.length > 0) return { issues }
  const messages = recipients.map((one: string | { readonly email: string }) => {
    const address = typeof one === 'string' ? one : one.email
    return { to: one, substitutions: names.values(variables.get(address.toLowerCase()) ?? {}) }
  })
  const unsubscribe = ownsList ? { unsubscribe: 'sender' } : {}
  return { body: { ...rest, ...texts, headers, streamId, ...unsubscribe, messages } }
}

/** Translates a field of ours to the name in the form. */
export function broadcastField(path: string): string {
  if (/^messages\.\d+\.to\b/.test(path)) return 'to'
  return /^messages\b/.test(path) ? FIELD : path
}

/** Variables by address in lower case. */
function parseVariables(json: string, issues: Issue[]): ReadonlyMap<string, Variables> {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  try {
    const read = JSON.parse(json) as Readonly<Record<string, Variables>>
    if (isObject(read) && Object.values(read).every(isObject))
      return new Map(Object.entries(read).map(([address, values]) => [address.toLowerCase(), values]))
  } catch {
    // As any other text that is no such object.
  }
  issues.push({ path: FIELD, message: 'Must be JSON: an object of variables for each address' })
  return new Map()
}

/** Variables of which a value is escaped. */
function escapedIn(variables: ReadonlyMap<string, Variables>): ReadonlySet<string> {
  const names = new Set<string>()
  for (const values of variables.values())
    for (const [name, value] of Object.entries(values))
      if (typeof value === 'string' && value.search(ENTITY) !== -1) names.add(name)
  return names
}

function convertHeaders(
  given: Readonly<Record<string, string>>,
  names: Names,
  issues: Issue[],
): { readonly headers: Readonly<Record<string, string>>; readonly ownsList: boolean } {
  const ownsList = Object.keys(given).some((name) => name.toLowerCase() === 'list-unsubscribe')
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (name.toLowerCase() === 'message-id' && OWN_MESSAGE_ID.test(value)) continue
    const own = value.replace(THEIR_MAILBOX, '').trim()
    if (!ownsList && own.search(PLACEHOLDER) >= 0)
      issues.push({ path: `h:${name}`, message: 'Variables are filled in headers only with a header List-Unsubscribe' })
    headers[name] = ownsList ? names.template(own, { hasLink: false, isHtml: false }) : own
  }
  return { headers, ownsList }
}

/** A text of a message: whether it may have the link of the service, and whether our own route escapes its values. */
interface Place {
  readonly hasLink: boolean
  readonly isHtml: boolean
}

/** A variable with the form of its values. */
interface Used {
  readonly name: string
  /** Our own name. */
  readonly own: string
  /** Its values are escaped once, by our own route. */
  readonly isUnescaped: boolean
}

/** The variables that a message uses, with our names for them. */
class Names {
  readonly #escaped: ReadonlySet<string>
  readonly #used = new Map<string, Used>()
  readonly #braces = new Set<keyof typeof BRACES>()
  #bracePairs = 0
  #isFull = false

  /** Takes the variables whose values are escaped. */
  constructor(escaped: ReadonlySet<string>) {
    this.#escaped = escaped
  }

  /** The bounds that the texts pass. */
  issues(): Issue[] {
    const issues: Issue[] = []
    if (this.#isFull) issues.push({ path: FIELD, message: `Must be at most ${SUBSTITUTIONS_MAX} variables` })
    if (this.#bracePairs > BRACES_MAX) issues.push({ path: '', message: `Texts have more than ${BRACES_MAX} times {{` })
    return issues
  }

  /** Converts a text to our template. */
  template(text: string, { hasLink, isHtml }: Place): string {
    let made = ''
    let from = 0
    for (const found of text.matchAll(PLACEHOLDER)) {
      const [whole, name, link] = found
      if (link !== undefined && !hasLink) continue
      made += `${this.#literal(text.slice(from, found.index), true)}{{${name === undefined ? LINK : this.#nameOf(name, isHtml)}}}`
      from = found.index + whole.length
    }
    return made + this.#literal(text.slice(from), false)
  }

  /** The values of one recipient for every variable that is used. */
  values(variables: Variables): Readonly<Record<string, string>> {
    const values: Record<string, string> = {}
    for (const { name, own, isUnescaped } of this.#used.values()) {
      const value = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (typeof value !== 'string' && typeof value !== 'number') continue
      const text = String(value)
      values[own] = isUnescaped ? text.replace(ENTITY, (entity) => ENTITIES[entity] as string) : text
    }
    for (const name of this.#braces) values[name] = BRACES[name]
    return values
  }

  /** Mailgun allows more characters in a name. */
  #nameOf(name: string, isHtml: boolean): string {
    const isUnescaped = isHtml && this.#escaped.has(name)
    const key = isUnescaped ? `${name} unescaped` : name
    const known = this.#used.get(key)
    if (known !== undefined) return known.own
    if (this.#used.size === SUBSTITUTIONS_MAX) {
      this.#isFull = true
      return ''
    }
    const isTaken = name === LINK || name.startsWith(OWN_NAME) || Object.hasOwn(BRACES, name)
    const own = !isUnescaped && NAME.test(name) && !isTaken ? name : `${OWN_NAME}${this.#used.size}`
    this.#used.set(key, { name, own, isUnescaped })
    return own
  }

  #literal(text: string, isBeforePlaceholder: boolean): string {
    return text.replace(/\{+/g, (run, at: number) => {
      const isLast = isBeforePlaceholder && at + run.length === text.length
      if (run.length === 1 && !isLast) return run
      const two = Math.floor(run.length / 2)
      this.#bracePairs += two
      if (this.#bracePairs > BRACES_MAX) return run
      if (two > 0) this.#braces.add('braces_two')
      if (run.length % 2 === 1) this.#braces.add('braces_one')
      return '{{braces_two}}'.repeat(two) + (run.length % 2 === 1 ? '{{braces_one}}' : '')
    })
  }
}
