/**
 * mailbox - mailboxes as applications write them into a text: `a@b`, `Name <a@b>`, `"Acme, Inc" <a@b>`, and with a bare
 * comma in the name
 *
 * A text without a mailbox becomes one with that text as its address: our own check then refuses it by name.
 *
 * RFC 5322 3.4
 */

/** A mailbox as our own routes take it. */
export interface Mailbox {
  readonly email: string
  readonly name: string | null
}

/** A longer text is no mailbox: our own check refuses it. */
const MAILBOX_CHARS_MAX = 2_000
/** Pieces between commas that one text is split into; the rest of the text stays one piece. */
const PIECES_MAX = 5_000
const NAMED = /^([^<>]*)<([^<>]*)>$/
const QUOTED = /^"((?:[^"\\]|\\.)*)"$/
/** Characters that a name has only in quotes, RFC 5322 3.2.3. */
const SPECIALS = /[()<>[\]:;@\\,."]/

/** Reads one mailbox. */
export function parseMailbox(text: string): Mailbox {
  if (text.length > MAILBOX_CHARS_MAX) return { email: text, name: null }
  const trimmed = text.trim()
  const [, before, email = ''] = NAMED.exec(trimmed) ?? []
  if (before === undefined) return { email: trimmed, name: null }
  const name = unquote(before.trim())
  return { email: email.trim(), name: name === '' ? null : name }
}

/** Reads mailboxes with commas between them. A piece without an @ belongs to the name that follows. */
export function parseMailboxes(text: string): Mailbox[] {
  if (!text.includes(',')) return text.trim() === '' ? [] : [parseMailbox(text)]
  const found: Mailbox[] = []
  let pending = ''
  for (const piece of splitAtCommas(text)) {
    pending = pending === '' ? piece : `${pending},${piece}`
    if (!piece.includes('@')) continue
    found.push(parseMailbox(pending))
    pending = ''
  }
  if (pending.trim() !== '') found.push(parseMailbox(pending))
  return found
}

/** Writes a mailbox into a text or a header. */
export function formatMailbox({ email, name }: Mailbox): string {
  if (name === null) return email
  return `${SPECIALS.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : name} <${email}>`
}

function unquote(text: string): string {
  const [, inner] = QUOTED.exec(text) ?? []
  return inner === undefined ? text : inner.replace(/\\(.)/g, '$1')
}

/** Commas within quotes and within angle brackets are part of a piece. */
function splitAtCommas(text: string): string[] {
  const pieces: string[] = []
  let isQuoted = false
  let isInBrackets = false
  let start = 0
  for (let at = 0; at < text.length && pieces.length < PIECES_MAX; at += 1) {
    const char = text[at]
    if (isQuoted && char === '\\') at += 1
    else if (char === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (char === '<') isInBrackets = true
    else if (char === '>') isInBrackets = false
    else if (char === ',' && !isInBrackets) {
      pieces.push(text.slice(start, at))
      start = at + 1
    }
  }
  pieces.push(text.slice(start))
  return pieces.filter((piece) => piece.trim() !== '')
}
