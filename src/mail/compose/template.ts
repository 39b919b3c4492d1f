/**
 * template - text with placeholders: read once, filled for each recipient
 *
 * `{{name}}`, blanks inside the braces allowed. Every other `{{` is a fault, so that no `{{#if}}` of another product
 * goes out to 50,000 people as it is. One pass: values are never expanded again.
 *
 * Guarantees: linear in text and values.
 *
 * Spec broadcast.placeholders
 */

import { SUBSTITUTION_NAME_CHARS_MAX } from '../../../schemas/limits.ts'

/** Filled by the service, for each recipient. */
export const UNSUBSCRIBE_NAME = 'unsubscribeUrl'

const PLACEHOLDER = new RegExp(`\\{\\{[ \\t]*([A-Za-z0-9_]{1,${SUBSTITUTION_NAME_CHARS_MAX}})[ \\t]*\\}\\}`, 'y')
const OPENING = '{{'
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** A text, cut at its placeholders: `texts` has one more than `names`. */
export interface Template {
  readonly texts: readonly string[]
  readonly names: readonly string[]
}

/** Substitutions by name. */
export type Substitutions = Readonly<Record<string, string>>

/** Reads a text; null if a `{{` in it begins no placeholder. */
export function parseTemplate(text: string): Template | null {
  const texts: string[] = []
  const names: string[] = []
  let from = 0
  for (let at = text.indexOf(OPENING); at !== -1; at = text.indexOf(OPENING, from)) {
    PLACEHOLDER.lastIndex = at
    const [whole, name] = PLACEHOLDER.exec(text) ?? []
    // `{{{name}}}` means raw text elsewhere. Here it must not look as if it did.
    if (whole === undefined || name === undefined) return null
    texts.push(text.slice(from, at))
    names.push(name)
    from = at + whole.length
  }
  texts.push(text.slice(from))
  return { texts, names }
}

/** Fills a text. Takes a value for every name. */
export function fillText({ texts, names }: Template, values: Substitutions): string {
  let filled = texts[0] as string
  for (const [index, name] of names.entries()) filled += (values[name] ?? '') + texts[index + 1]
  return filled
}

/** Fills HTML: `& < > " '` in a value are escaped. */
export function fillHtml(template: Template, values: Substitutions): string {
  // Without a prototype: `__proto__` is a name like any other.
  const escaped: Record<string, string> = Object.create(null)
  for (const name of new Set(template.names)) escaped[name] = escapeHtml(values[name] ?? '')
  return fillText(template, escaped)
}

/** A value, escaped for HTML. */
export function escapeHtml(value: string): string {
  return value.replace(/[&<>"']/g, (char) => ENTITIES[char] as string)
}
