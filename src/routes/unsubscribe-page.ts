/**
 * unsubscribe-page - the page that a link in a mail leads to, as HTML without a script
 *
 * Guarantees: a sender's name is always text; the page loads nothing and cannot be framed; it has no cookie, no
 * recipient and no name of a stream. Links are relative, so they work behind any path that a proxy adds.
 *
 * Spec unsubscribe.page
 */

import { createHash } from 'node:crypto'
import type { Reply } from '../http/respond.ts'
import type { MailSender } from '../views/message/unsubscribe.ts'
import { type Language, PAGE_TEXTS } from './unsubscribe-texts.ts'

/** The content of a page. */
export interface PageView {
  readonly kind: 'ask' | 'clicked' | 'listed' | 'undone' | 'late' | 'gone' | 'forged' | 'unavailable'
  /** Absent if no sender is named. */
  readonly from?: MailSender
  /** Target of its button, relative to its own address; absent if there is none. */
  readonly action?: string
}

const STATUSES: Readonly<Partial<Record<PageView['kind'], number>>> = { forged: 404, unavailable: 503 }
const RETRY_AFTER_S = '5'
const STYLE = `:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--ground:#f3f4f6;--act:#1d4ed8;--on-act:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--paper:#1e2227;--ground:#14171a;--act:#8ab4ff;--on-act:#10141a}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--ground);color:var(--ink);font:1.0625rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:30rem;padding:2rem;background:var(--paper);border-radius:.75rem;overflow-wrap:anywhere}
h1{margin:0 0 .75rem;font-size:1.375rem;line-height:1.25}
p{margin:0}
button{margin-top:1.5rem;min-height:2.75rem;padding:.5rem 1.25rem;border:0;border-radius:.5rem;background:var(--act);color:var(--on-act);font:inherit;font-weight:600;cursor:pointer}
button:focus-visible{outline:3px solid var(--ink);outline-offset:2px}`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
const HEADERS = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`,
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  Vary: 'Accept-Language',
} as const
const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
/** Characters that could reverse the surrounding text, or end it. */
const UNSHOWN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** The answer that shows a page. */
export function pageReply(view: PageView, language: Language): Reply {
  const { kind } = view
  const retry = kind === 'unavailable' ? { 'Retry-After': RETRY_AFTER_S } : {}
  return {
    status: STATUSES[kind] ?? 200,
    text: formatPage(view, language),
    contentType: 'text/html; charset=utf-8',
    headers: { ...HEADERS, ...retry },
  }
}

/** The page. */
export function formatPage({ kind, from, action }: PageView, language: Language): string {
  const texts = PAGE_TEXTS[language]
  const sender = from === undefined || from.address === '' ? '' : formatSender(from)
  // A function, because `$` in a name means nothing here.
  const text = kind !== 'ask' ? texts[kind] : sender === '' ? texts.askNoSender : texts.ask.replace('%', () => sender)
  const label = kind === 'clicked' ? texts.undo : texts.unsubscribe
  const form =
    action === undefined
      ? ''
      : `<form method="post" action="${escapeHtml(action)}"><button type="submit">${label}</button></form>`
  return `<!doctype html>
<html lang="${language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex"><title>${texts.title}</title><style>${STYLE}</style></head>
<body><main><h1>${texts.title}</h1><p role="status">${text}</p>${form}</main></body>
</html>
`
}

/** A sender as shown, escaped. A name is never shown without the address, because only the address can be trusted. */
function formatSender({ address, name }: MailSender): string {
  const shown = (name ?? '').replace(UNSHOWN, ' ').trim()
  const text = `<bdi>${escapeHtml(address)}</bdi>`
  return shown === '' ? text : `<bdi>${escapeHtml(shown)}</bdi> (${text})`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] as string)
}
