/**
 * listed - the content of a broadcast, filled for one recipient
 *
 * Spec broadcast.placeholders, broadcast.footer
 */

import { withHtmlFooter, withTextFooter } from './footer.ts'
import { fillHtml, fillText, parseTemplate, type Substitutions, type Template, UNSUBSCRIBE_NAME } from './template.ts'

/** The texts of a broadcast, read; with the footer where one is due. */
export interface ListedTexts {
  readonly text: Template | null
  readonly html: Template | null
}

/** Replaces the link if a message is only shown. A preview must unsubscribe no one. */
export const UNFILLED_LINK = `{{${UNSUBSCRIBE_NAME}}}`

/** Reads the texts of a broadcast. A text that is no template, which no broadcast has, is left as it stands. */
export function readListedTexts({
  text,
  html,
}: {
  readonly text: string | null
  readonly html: string | null
}): ListedTexts {
  const read = (one: string) => parseTemplate(one) ?? { texts: [one], names: [] }
  return {
    text: text === null ? null : withTextFooter(read(text)),
    html: html === null ? null : withHtmlFooter(read(html)),
  }
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
