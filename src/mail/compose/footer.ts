/**
 * footer - a visible way to leave, in each part of a broadcast that shows none
 *
 * Spec broadcast.footer
 */

import { type Template, UNSUBSCRIBE_NAME } from './template.ts'

const TEXT_FOOTER = ['\n\nUnsubscribe: ', '\n'] as const
const HTML_FOOTER = ['<p><a href="', '">Unsubscribe</a></p>'] as const
const BODY_END = /<\/body\s*>/gi

/** A text with the link at its end, unless it has it somewhere. */
export function withTextFooter(template: Template): Template {
  return template.names.includes(UNSUBSCRIBE_NAME) ? template : appended(template, TEXT_FOOTER)
}

/** HTML with the link as a paragraph before the last `</body>`, or at its end, unless it has it somewhere. */
export function withHtmlFooter(template: Template): Template {
  if (template.names.includes(UNSUBSCRIBE_NAME)) return template
  const { texts, names } = template
  for (let index = texts.length - 1; index >= 0; index -= 1) {
    const text = texts[index] as string
    const end = [...text.matchAll(BODY_END)].at(-1)?.index
    if (end === undefined) continue
    const [before, after] = HTML_FOOTER
    return {
      texts: [
        ...texts.slice(0, index),
        text.slice(0, end) + before,
        after + text.slice(end),
        ...texts.slice(index + 1),
      ],
      names: [...names.slice(0, index), UNSUBSCRIBE_NAME, ...names.slice(index)],
    }
  }
  return appended(template, HTML_FOOTER)
}

function appended({ texts, names }: Template, [before, after]: readonly [string, string]): Template {
  return {
    texts: [...texts.slice(0, -1), (texts.at(-1) as string) + before, after],
    names: [...names, UNSUBSCRIBE_NAME],
  }
}
