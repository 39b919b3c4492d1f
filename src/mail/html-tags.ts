/**
 * html-tags - the tags of a text of HTML, in their order, as a browser's tokenizer finds them
 *
 * No tree is built, and a reader never goes back. The content of elements that hold no markup, such as scripts, is part
 * of their tag.
 */

/** Attributes of a tag that are read, and characters of each. */
const ATTRIBUTES_MAX = 64
const VALUE_CHARS_MAX = 4_096
/** Elements whose content is no markup. */
const RAW_TEXT: readonly string[] = ['script', 'style', 'title', 'textarea', 'xmp']
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }
const CODE_POINT_MAX = 0x10ffff
const NAME = /[a-z][a-z0-9:-]*/iy
/** One attribute at its place; each alternative begins with another character, so that nothing is read twice. */
const ATTRIBUTE = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/y

export interface Tag {
  /** In lower case; '' for a comment and for anything else that is not a tag. */
  readonly name: string
  readonly isEnd: boolean
  /** By names in lower case, decoded. */
  readonly attributes: ReadonlyMap<string, string>
  /** Offsets of its start and of the text after it. */
  readonly start: number
  readonly end: number
  /** Content that is no markup; '' for other elements. */
  readonly rawText: string
}

/** The tags of a text. */
export function* tagsOf(html: string): Generator<Tag> {
  for (let at = 0; at < html.length; ) {
    const start = html.indexOf('<', at)
    if (start < 0) return
    const tag = readTag(html, start)
    yield tag
    at = tag.end + tag.rawText.length
  }
}

/** Reads a tag, a comment or any other text that begins with `<`. HTML 13.2.5 */
function readTag(html: string, start: number): Tag {
  const isEnd = html[start + 1] === '/'
  const nothing = (end: number): Tag => ({ name: '', isEnd, attributes: NONE, start, end, rawText: '' })
  if (html.startsWith('<!--', start)) return nothing(after(html, '-->', start + 4))
  const nameAt = start + (isEnd ? 2 : 1)
  NAME.lastIndex = nameAt
  const name = NAME.exec(html)?.[0].toLowerCase() ?? ''
  if (name === '') return nothing(isEnd || '!?'.includes(html[nameAt] ?? ' ') ? after(html, '>', nameAt) : start + 1)
  const attributes = new Map<string, string>()
  let at = nameAt + name.length
  while (at < html.length && html[at] !== '>') {
    ATTRIBUTE.lastIndex = at
    const found = ATTRIBUTE.exec(html)
    // White space, a slash, or a stray character.
    if (found === null) {
      at += 1
      continue
    }
    const [whole, key = '', quoted, single, bare] = found
    at += whole.length
    const field = key.toLowerCase()
    const value = quoted ?? single ?? bare ?? ''
    if (value.length > VALUE_CHARS_MAX || attributes.size >= ATTRIBUTES_MAX || attributes.has(field)) continue
    attributes.set(field, decodeEntities(value).trim())
  }
  // An unterminated tag is not a tag.
  if (at >= html.length) return nothing(at + 1)
  const end = at + 1
  const rawText = !isEnd && RAW_TEXT.includes(name) ? html.slice(end, endOfRawText(html, end, name)) : ''
  return { name, isEnd, attributes: isEnd ? NONE : attributes, start, end, rawText }
}

const NONE: ReadonlyMap<string, string> = new Map()

function after(html: string, end: string, from: number): number {
  const at = html.indexOf(end, from)
  return at < 0 ? html.length : at + end.length
}

function endOfRawText(html: string, from: number, name: string): number {
  const end = new RegExp(`</${name}`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}

/** A text with its character references replaced. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,5}));?/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[String(name).toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= CODE_POINT_MAX && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole
  })
}
