/**
 * mail-preview - a mail as a separate, inert page: for a frame without scripts, forms or network
 *
 * The answer has its own policy, because a frame filled by the page inherits the page's. Links are disabled, because
 * viewing a live mail must not use its links; their addresses are listed next to it (`linksOf`).
 *
 * Spec member.frame
 */

import type { Reply } from '../http/respond.ts'
import { findLinks } from '../mail/links.ts'

/** Input of a frame. */
export interface PreviewInput {
  readonly text: string | null
  readonly html: string | null
  /** Whether images may be fetched from elsewhere, once, after a click. */
  readonly images: boolean
  readonly mode: 'live' | 'test'
  /** Content-ID -> data URL. */
  readonly files: ReadonlyMap<string, string>
}

/** Maximum characters of all data URLs inserted into a page: 4 MiB of files as base64. */
const INLINED_CHARS_MAX = 6 * 1024 * 1024
const CONTENT_ID = /\bcid:([^"'\s)>]+)/gi
/**
 * Elements for which a browser connects to a host, or looks it up, before the policy stops what it wants there. A
 * tag's name begins right behind its bracket, so that nothing hides one from this (HTML 13.2.5.6); renamed they
 * mean nothing.
 */
const OPENING = /<(\/?)(iframe|frame|object|embed|portal|fencedframe|link|meta|base)/gi
/**
 * The attribute of a link, removed because a browser may connect to its target when the mouse button goes down. The
 * characters allowed around an attribute's name are in HTML 13.2.5.32 to 39.
 */
const HREF = /(?<=[\s/"':])href(?=[\s/>=])/gi
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", apos: "'" }

/** The page of a mail. */
export function mailPreview({ text, html, images, mode, files }: PreviewInput): Reply {
  const shown =
    html === null ? `<pre style="white-space:pre-wrap">${escaped(text ?? '')}</pre>` : withFiles(html, { files, mode })
  return {
    status: 200,
    // The base must come before all links.
    text: `<!doctype html><meta charset="utf-8"><base target="_blank">${shown}`,
    contentType: 'text/html; charset=utf-8',
    headers: {
      'Content-Security-Policy': makePolicy(images, mode),
      'X-DNS-Prefetch-Control': 'off',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Resource-Policy': 'same-origin',
    },
  }
}

function makePolicy(images: boolean, mode: PreviewInput['mode']): string {
  const sandbox = mode === 'test' ? 'sandbox allow-popups' : 'sandbox'
  const sources = images ? 'data: https:' : 'data:'
  return `${sandbox}; default-src 'none'; img-src ${sources}; style-src 'unsafe-inline'; frame-ancestors 'self'`
}

/** The Content-IDs that an HTML body refers to. */
export function referencedIds(html: string | null): Set<string> {
  return new Set([...(html ?? '').matchAll(CONTENT_ID)].map(([, id = '']) => decoded(id)))
}

/** The addresses of an HTML body's links, each once, in their order. */
export function findHrefs(html: string | null): string[] {
  const hrefs = findLinks({ text: null, html }).links.map(({ href }) => href)
  return [...new Set(hrefs.filter((href) => /^(?:https?:|mailto:)/i.test(href)))]
}

function withFiles(text: string, { files, mode }: Pick<PreviewInput, 'files' | 'mode'>): string {
  const safe = text.replace(OPENING, '<$1x-$2')
  const html = mode === 'test' ? safe : safe.replace(HREF, 'data-href')
  // One file may be referenced any number of times, so the inserted size is bounded, not only the stored size.
  let left = INLINED_CHARS_MAX
  return html.replace(CONTENT_ID, (whole, id: string) => {
    const url = files.get(decoded(id))
    if (url === undefined || url.length > left) return whole
    left -= url.length
    return url
  })
}

function decoded(text: string): string {
  const plain = text.replace(/&(\w+|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole)
  try {
    return plain.includes('%') && !plain.includes('/') ? decodeURIComponent(plain) : plain
  } catch {
    return plain
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (one) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[one] ?? one)
}
