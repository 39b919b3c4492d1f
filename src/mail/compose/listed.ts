/**
 * listed - the content of a broadcast, filled for one recipient
 *
 * Spec broadcast.placeholders, broadcast.footer
 */

import { withHtmlFooter, withTextFooter } from './footer.ts'
import { fillHtml, fillText, parseTemplate, type Substitutions, type Template, UNSUBSCRIBE_NAME } from './template.ts'

/** The parsed texts of a broadcast, with the footer if needed. */
export interface ListedTexts {
  readonly text: Template | null
  readonly html: Template | null
}

/** Replaces the link if a message is only shown. A preview must unsubscribe no one. */
export const UNFILLED_LINK = `{{${UNSUBSCRIBE_NAME}}}`

/** Reads the texts of a broadcast. A text that is not a template, which no broadcast has, is not changed. */
export function readListedTexts(
  { text, html }: { readonly text: string | null; readonly html: string | null },
  hasFooter = true,
): ListedTexts {
  const [ofText, ofHtml] = [text, html].map((one) => (one === null ? null : readAny(one))) as [
    Template | null,
    Template | null,
  ]
  if (!hasFooter) return { text: ofText, html: ofHtml }
  return {
    text: ofText === null ? null : withTextFooter(ofText),
    html: ofHtml === null ? null : withHtmlFooter(ofHtml),
  }
}

/** Fills the headers of a broadcast that brings its own List-Unsubscribe for one recipient. */
export function fillHeaders(
  headers: Readonly<Record<string, string>>,
  substitutions: Substitutions,
): Readonly<Record<string, string>> {
  const values: Substitutions = Object.assign(Object.create(null), substitutions)
  const filled = Object.entries(headers).map(([name, value]) => [name, fillText(readAny(value), values)] as const)
  return Object.fromEntries(filled)
}

function readAny(text: string): Template {
  return parseTemplate(text) ?? { texts: [text], names: [] }
}

/** Fills them for one recipient. */
export function fillListed(
  { text, html }: ListedTexts,
  substitutions: Substitutions,
  unsubscribeUrl: string,
): { readonly text: string | null; readonly html: string | null } {
  // Without a prototype: `constructor` is a name like any other.
  const values: Substitutions = Object.assign(Object.create(null), substitutions, {
    [UNSUBSCRIBE_NAME]: unsubscribeUrl,
  })
  return {
    text: text === null ? null : fillText(text, values),
    html: html === null ? null : fillHtml(html, values),
  }
}
