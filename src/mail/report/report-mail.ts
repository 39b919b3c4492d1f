/**
 * report-mail - mail that came back, as far as it has to be understood: top headers, text, parts.
 *
 * Its input is parsed elsewhere, in a thread with a time limit, where everything is bounded.
 */

/** Received mail, taken apart. */
export interface ReportMail {
  /** Names in lower case, values unfolded, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The body as text; HTML without its tags if there is no other text. */
  readonly text: string
  readonly parts: readonly ReportPart[]
  /** The start of the mail as it was received, if no part is a report, because it may contain a broken one. */
  readonly raw?: string
  /** The envelope's sender is empty (RFC 5321 4.5.5). */
  readonly isNullSender?: boolean
}

/** A part that is not shown as text. */
export interface ReportPart {
  /** Media type in lower case. */
  readonly contentType: string
  readonly text: string
}

/** Lines of a block of fields that are read, and characters of one. */
const LINES_MAX = 2000
const VALUE_CHARS_MAX = 4096

/** The first value of a top header, '' if missing. */
export function findHeader({ headers }: ReportMail, name: string): string {
  return headers.find(([own]) => own === name)?.[1] ?? ''
}

/** The text of the first part of one of these types, or null. */
export function findPart({ parts }: ReportMail, ...contentTypes: string[]): string | null {
  return parts.find(({ contentType }) => contentTypes.includes(contentType))?.text ?? null
}

/**
 * Blocks of fields (RFC 5322 2.2) that blank lines divide; names in lower case, values unfolded, the first of a name
 * counts.
 */
export function parseFieldBlocks(text: string): Map<string, string>[] {
  const blocks: Map<string, string>[] = []
  let block = new Map<string, string>()
  let name = ''
  for (const line of text.split(/\r\n|\r|\n/, LINES_MAX)) {
    if (line.trim() === '') {
      if (block.size > 0) blocks.push(block)
      block = new Map()
      name = ''
    } else if (/^[ \t]/.test(line)) {
      if (name !== '') block.set(name, `${block.get(name)} ${line.trim()}`.slice(0, VALUE_CHARS_MAX))
    } else {
      const field = splitField(line)
      name = block.has(field.name) ? '' : field.name
      if (name !== '') block.set(name, field.value)
    }
  }
  if (block.size > 0) blocks.push(block)
  return blocks
}

/** The first line of a field; an empty name for a line that begins no field. */
function splitField(line: string): { name: string; value: string } {
  const colon = line.indexOf(':')
  if (colon <= 0) return { name: '', value: '' }
  const value = line.slice(colon + 1).trim()
  return { name: line.slice(0, colon).trim().toLowerCase(), value: value.slice(0, VALUE_CHARS_MAX) }
}
