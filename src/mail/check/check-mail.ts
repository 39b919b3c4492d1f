/**
 * check-mail - findings about the content of a message, without asking anyone: what mail clients drop, and what is
 * missing
 *
 * Each feature is named once, with the first line that has it. One pass over the HTML; its size and the findings are
 * bounded.
 *
 * Spec message.checks
 */

import { type Tag, tagsOf } from '../html-tags.ts'
import { findLinks } from '../links.ts'
import { type Feature, featuresOfStyle, featuresOfTag } from './features.ts'

/** Gmail cuts off longer HTML. */
const CLIPPED_BYTES = 102 * 1024
/** Characters of HTML that are looked through. */
const HTML_CHARS_MAX = 512 * 1024
const FINDINGS_MAX = 100
/** Images without alternative text that are named, and links that are listed. */
const IMAGES_MAX = 20
const LINKS_MAX = 500

export interface MailFinding {
  readonly check: 'client_support' | 'missing_text' | 'html_too_large' | 'image_alt' | 'list_unsubscribe'
  /** Of the HTML, from 1; null: of the whole message. */
  readonly line: number | null
  readonly message: string
  /** Percent of clients with full, partial and no support; null: of another check. */
  readonly clients: { readonly full: number; readonly partial: number; readonly none: number } | null
  /** A page about it. */
  readonly url: string | null
}

export interface FoundLink {
  readonly part: 'html' | 'text'
  readonly line: number
  readonly href: string
}

export interface CheckedMail {
  readonly findings: readonly MailFinding[]
  /** Links to the web, each address once, in their order. */
  readonly links: readonly FoundLink[]
}

export interface MailToCheck {
  readonly text: string | null
  readonly html: string | null
  /** Whether a broadcast's message has no List-Unsubscribe. */
  readonly lacksUnsubscribe: boolean
}

/** Checks a message. */
export function checkMail({ text, html, lacksUnsubscribe }: MailToCheck): CheckedMail {
  const findings: MailFinding[] = []
  const links: FoundLink[] = []
  const add = (check: MailFinding['check'], message: string, rest: Partial<MailFinding> = {}) => {
    if (findings.length < FINDINGS_MAX) findings.push({ check, line: null, message, clients: null, url: null, ...rest })
  }
  if (lacksUnsubscribe)
    add('list_unsubscribe', 'A broadcast without List-Unsubscribe: large mailbox providers reject it')
  if (html !== null && text === null)
    add('missing_text', 'No text part: spam filters and clients without HTML expect one')
  const bytes = Buffer.byteLength(html ?? '')
  if (bytes > CLIPPED_BYTES) add('html_too_large', `HTML of ${bytes} bytes: Gmail clips it at ${CLIPPED_BYTES}`)
  if (html !== null) checkHtml(html.slice(0, HTML_CHARS_MAX), add, links)
  if (text !== null) addTextLinks(text, links)
  return { findings, links }
}

type AddFinding = (check: MailFinding['check'], message: string, rest?: Partial<MailFinding>) => void

function checkHtml(html: string, add: AddFinding, links: FoundLink[]): void {
  const lines = makeLines(html)
  const seen = new Set<string>()
  let images = 0
  const name = (features: Iterable<Feature & { readonly at: number }>) => {
    for (const { title, slug, clients, at } of features) {
      if (seen.has(slug)) continue
      seen.add(slug)
      const message = `${title}: ${clients.none} % of mail clients drop it`
      add('client_support', message, {
        line: lines.of(at),
        clients,
        url: `https://www.caniemail.com/features/${slug}/`,
      })
    }
  }
  for (const tag of tagsOf(html)) {
    if (tag.name === '' || tag.isEnd) continue
    const at = tag.start
    name(featuresOfTag(tag).map((feature) => ({ ...feature, at })))
    const style = tag.attributes.get('style')
    if (style !== undefined) name(featuresOfStyle(`{${style}}`).map((feature) => ({ ...feature, at })))
    if (tag.name === 'style')
      name(featuresOfStyle(tag.rawText).map((feature) => ({ ...feature, at: tag.end + feature.at })))
    if (tag.name === 'img' && !tag.attributes.has('alt') && images < IMAGES_MAX) {
      images += 1
      add('image_alt', `Image without alternative text: ${shown(tag.attributes.get('src'))}`, { line: lines.of(at) })
    }
    addLink(tag, lines.of, links)
  }
}

function shown(src: string | undefined): string {
  return (src ?? 'no address').slice(0, 200)
}

function addLink({ name, attributes, start }: Tag, lineOf: (at: number) => number, links: FoundLink[]): void {
  const href = attributes.get('href')
  if ((name !== 'a' && name !== 'area') || href === undefined || !isWeb(href)) return
  if (isNew(links, href)) links.push({ part: 'html', line: lineOf(start), href })
}

function addTextLinks(text: string, links: FoundLink[]): void {
  const lines = makeLines(text)
  let at = 0
  for (const { href } of findLinks({ text, html: null }).links) {
    at = Math.max(at, text.indexOf(href, at))
    if (isNew(links, href)) links.push({ part: 'text', line: lines.of(at), href })
  }
}

function isNew(links: readonly FoundLink[], href: string): boolean {
  return links.length < LINKS_MAX && links.every((link) => link.href !== href)
}

function isWeb(href: string): boolean {
  return /^https?:/i.test(href)
}

/** Lines of a text, asked for in ascending order of places, or nearly so. */
function makeLines(text: string): { of(at: number): number } {
  let line = 1
  let known = 0
  return {
    of(at) {
      if (at < known) {
        line = 1
        known = 0
      }
      for (let next = text.indexOf('\n', known); next >= 0 && next < at; next = text.indexOf('\n', known)) {
        line += 1
        known = next + 1
      }
      return line
    },
  }
}
