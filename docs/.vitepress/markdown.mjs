/**
 * markdown - rules that let pages be plain Markdown, as a forge shows it
 *
 * `{{` is text and never an expression of Vue. Links out of docs/ are plain text on the site. Anchors are those of
 * GitHub. Code blocks in a row whose info names a tab (```js [Node.js]) become a group of tabs.
 */
import { posix } from 'node:path'

/** Installs the rules. In: the markdown-it of VitePress. */
export function plainMarkdown(md) {
  const { escapeHtml } = md.utils
  const literal = (text) => escapeHtml(text).replaceAll('{{', '&#123;&#123;')
  md.renderer.rules.text = (tokens, at) => literal(tokens[at].content)
  md.renderer.rules.code_inline = (tokens, at) => `<code>${literal(tokens[at].content)}</code>`
  md.core.ruler.push('outside-links', dropOutsideLinks)
  md.core.ruler.push('tabs', groupTabs)
}

/** The anchor of a heading, as GitHub makes it. */
export function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

function dropOutsideLinks({ tokens, env }) {
  const folder = posix.dirname(env.relativePath ?? '')
  for (const { children } of tokens) {
    let isOutside = false
    for (const token of children ?? []) {
      if (token.type === 'link_open') isOutside = leavesDocs(folder, token.attrGet('href'))
      if (!isOutside || !/^link_/.test(token.type)) continue
      token.tag = 'span'
      token.attrs = null
    }
  }
}

function leavesDocs(folder, href) {
  return !/^(?:[a-z]+:|\/|#)/.test(href) && posix.normalize(posix.join(folder, href)).startsWith('..')
}

function groupTabs(state) {
  const isTab = (token) => token?.type === 'fence' && /\[.+\]/.test(token.info)
  const grouped = []
  for (const [at, token] of state.tokens.entries()) {
    const [before, after] = [state.tokens[at - 1], state.tokens[at + 1]]
    if (isTab(token) && !isTab(before) && isTab(after)) grouped.push(group(state, 'open', 1))
    grouped.push(token)
    if (isTab(token) && isTab(before) && !isTab(after)) grouped.push(group(state, 'close', -1))
  }
  state.tokens = grouped
}

function group(state, end, nesting) {
  const token = new state.Token(`container_code-group_${end}`, 'div', nesting)
  token.block = true
  return token
}
