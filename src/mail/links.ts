/**
 * links - the links and the images of a message, read from its text and its HTML
 *
 * Tags are found like in a browser's tokenizer, without building a tree; the result lists every link that a reader
 * could follow, in order. There is one pass over the text, and one over the HTML, without going back.
 *
 * Spec message.links
 */

import { decodeEntities, tagsOf } from './html-tags.ts'

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
  let textAt = 0
  for (const { name, isEnd, attributes, start, end, rawText } of tagsOf(html)) {
    if (links.length >= LISTED_MAX) break
    addWords(open, html, textAt, start)
    textAt = end + rawText.length
    if (name === 'a') close()
    const [href, src, alt = null] = ['href', 'src', 'alt'].map((field) => attributes.get(field))
    if (name === 'a' && href !== undefined) open = { href, words: '' }
    if (name !== 'img' || isEnd) continue
    if (src !== undefined && images.length < LISTED_MAX) images.push({ src, alt })
    if (alt !== null) addWords(open, ` ${alt} `, 0, alt.length + 2)
  }
  addWords(open, html, textAt, html.length)
  close()
}

function addWords(open: OpenLink | null, text: string, from: number, to: number): void {
  if (open !== null && open.words.length < WORDS_CHARS_MAX) open.words += text.slice(from, Math.min(to, from + 2_000))
}

function tidy(words: string): string {
  return decodeEntities(words).replace(/\s+/g, ' ').trim().slice(0, WORDS_CHARS_MAX)
}
