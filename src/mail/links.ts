/**
 * links - the links and the images of a message, read from its text and its HTML
 *
 * Tags are found like in a browser's tokenizer, without building a tree; the result lists every link that a reader
 * could follow, in order. There is one pass over the text, and one over the HTML, without going back.
 *
 * Spec message.links
 */

/** A link's target and its visible text; null in plain text, in which the address itself is visible. */
export interface MailLink {
  readonly part: 'html' | 'text'
  readonly href: string
  readonly text: string | null
}

/** An image's address and its alternative text, or null. */
export interface MailImage {
  readonly src: string
  readonly alt: string | null
}

export interface FoundLinks {
  readonly links: readonly MailLink[]
  readonly images: readonly MailImage[]
}

/** Characters of a part that are read, links and images that are listed, characters of each. */
const PART_CHARS_MAX = 2 * 1024 * 1024
const LISTED_MAX = 500
const HREF_CHARS_MAX = 4_096
const WORDS_CHARS_MAX = 300
/** Elements whose content is no markup. */
const RAW_TEXT: readonly string[] = ['script', 'style', 'title', 'textarea', 'xmp']
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }
const CODE_POINT_MAX = 0x10ffff

/** The links and images of a message. Takes its parts, null for a missing one. */
export function findLinks(parts: { readonly text: string | null; readonly html: string | null }): FoundLinks {
  const links: MailLink[] = []
  const images: MailImage[] = []
  if (parts.html !== null) readHtml(parts.html.slice(0, PART_CHARS_MAX), links, images)
  if (parts.text !== null) readText(parts.text.slice(0, PART_CHARS_MAX), links)
  return { links: links.slice(0, LISTED_MAX), images: images.slice(0, LISTED_MAX) }
}

function readText(text: string, links: MailLink[]): void {
  for (const [found] of text.matchAll(/\bhttps?:\/\/[^\s<>"'`{}|\\^]+/gi)) {
    if (links.length >= LISTED_MAX) return
    const href = found.length <= HREF_CHARS_MAX ? withoutEnd(found) : ''
    if (href !== '') links.push({ part: 'text', href, text: null })
  }
}

/**
 * Punctuation at the end of a sentence is not part of the address before it, nor is a bracket opened before the
 * address.
 */
function withoutEnd(url: string): string {
  const isOpened = url.includes('(')
  let end = url.length
  while (end > 0 && '.,;:!?)]*_'.includes(url[end - 1] as string) && !(url[end - 1] === ')' && isOpened)) end -= 1
  return url.slice(0, end)
}

/** The link whose words are being read. */
interface OpenLink {
  readonly href: string
  words: string
}

function readHtml(html: string, links: MailLink[], images: MailImage[]): void {
  let open: OpenLink | null = null
  const close = () => {
    if (open !== null) links.push({ part: 'html', href: open.href, text: tidy(open.words) })
    open = null
  }
  for (let at = 0; at < html.length && links.length < LISTED_MAX; ) {
    const tagAt = html.indexOf('<', at)
    const textEnd = tagAt < 0 ? html.length : tagAt
    addWords(open, html, at, textEnd)
    if (tagAt < 0) break
    const tag = readTag(html, tagAt)
    at = tag.end
    if (tag.name === 'a') close()
    const { href, src, alt = null } = tag.attributes
    if (tag.name === 'a' && href !== undefined) open = { href, words: '' }
    if (tag.name === 'img' && src !== undefined && images.length < LISTED_MAX) images.push({ src, alt })
    if (tag.name === 'img' && alt !== null) addWords(open, ` ${alt} `, 0, alt.length + 2)
    if (RAW_TEXT.includes(tag.name)) at = endOfRawText(html, at, tag.name)
  }
  close()
}

function addWords(open: OpenLink | null, text: string, from: number, to: number): void {
  if (open !== null && open.words.length < WORDS_CHARS_MAX) open.words += text.slice(from, Math.min(to, from + 2_000))
}

function tidy(words: string): string {
  return decode(words).replace(/\s+/g, ' ').trim().slice(0, WORDS_CHARS_MAX)
}

interface Tag {
  /** In lower case; `/a` for an end tag counts as `a` without attributes; '' for anything that is not a tag. */
  readonly name: string
  readonly attributes: Readonly<Partial<Record<'href' | 'src' | 'alt', string>>>
  readonly end: number
}

/** Reads a tag, a comment or any other text that begins with `<`. HTML 13.2.5 */
function readTag(html: string, start: number): Tag {
  if (html.startsWith('<!--', start)) return { name: '', attributes: {}, end: after(html, '-->', start + 4) }
  const isEnd = html[start + 1] === '/'
  const nameAt = start + (isEnd ? 2 : 1)
  NAME.lastIndex = nameAt
  const name = NAME.exec(html)?.[0].toLowerCase() ?? ''
  if (name === '')
    return {
      name: '',
      attributes: {},
      end: isEnd || '!?'.includes(html[nameAt] ?? ' ') ? after(html, '>', nameAt) : start + 1,
    }
  const attributes: Partial<Record<string, string>> = {}
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
    const value = decode(quoted ?? single ?? bare ?? '').trim()
    if (WANTED.includes(field) && !(field in attributes) && value.length <= HREF_CHARS_MAX) attributes[field] = value
  }
  // An unterminated tag is not a tag.
  const isTag = at < html.length && (!isEnd || name === 'a')
  return { name: isTag ? name : '', attributes: isEnd ? {} : attributes, end: at + 1 }
}

const WANTED: readonly string[] = ['href', 'src', 'alt']
const NAME = /[a-z][a-z0-9:-]*/iy
/** One attribute at its place; each alternative begins with another character, so that nothing is read twice. */
const ATTRIBUTE = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/y

function after(html: string, end: string, from: number): number {
  const at = html.indexOf(end, from)
  return at < 0 ? html.length : at + end.length
}

function endOfRawText(html: string, from: number, name: string): number {
  const end = new RegExp(`</${name}`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,5}));?/gi, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[String(name).toLowerCase()] ?? whole
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= CODE_POINT_MAX && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : whole
  })
}
