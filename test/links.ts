/** links - every file, folder and heading that a document of the project names is there. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import t from 'tap'
import { ROOT } from './support/machine/root.ts'

/** What is made by a build or a start, and what is not of the project. */
const LEFT_OUT = /^(?:node_modules|build.*|data|\.git|\.tap)$/
/** Where the paths that a document names in passing begin. */
const BASES = ['', 'src', 'test']
/** Made at a start. */
const MADE = /^data\//

function documentsIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (LEFT_OUT.test(entry.name)) return []
    if (entry.isDirectory()) return documentsIn(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading = ''] of withoutBlocks(text).matchAll(/^#{1,6} +(.+?)(?: +#*)?$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = words.replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '').replaceAll(' ', '-')
    let anchor = slug
    for (let again = 1; anchors.has(anchor); again += 1) anchor = `${slug}-${again}`
    anchors.add(anchor)
  }
  return anchors
}

function withoutBlocks(text: string): string {
  return text.replace(/^```[\s\S]*?^```/gm, '')
}

/** What a document names and nobody finds. In: its path below ROOT, its text. */
function deadIn(path: string, text: string): string[] {
  const prose = withoutBlocks(text)
  const folder = dirname(join(ROOT, path))
  const links = [...prose.matchAll(/\]\(([^)\s]+)(?: "[^"]*")?\)/g)].map(([, to = '']) => to)
  const deadLinks = links.filter((to) => {
    if (/^[a-z]+:/.test(to)) return false
    const [name = '', anchor] = to.split('#')
    if (name === '') return !anchorsOf(text).has(anchor ?? '')
    const file = join(folder, decodeURI(name))
    if (!existsSync(file) || relative(ROOT, file).startsWith('..')) return true
    return anchor !== undefined && !(statSync(file).isFile() && anchorsOf(readFileSync(file, 'utf8')).has(anchor))
  })
  const named = [...prose.matchAll(/`([\w.-]+(?:\/[\w.-]+)+\.(?:ts|mjs|md|tsv|txt|json|sh))`/g)].map(
    ([, name = '']) => name,
  )
  const deadNames = named.filter(
    (name) =>
      !MADE.test(name) &&
      ![folder, ...BASES.map((base) => join(ROOT, base))].some((base) => existsSync(join(base, name))),
  )
  return [...deadLinks, ...deadNames].map((one) => `${path}: ${one}`)
}

const documents = documentsIn('')

t.test('links: every document names what is there', async (t) => {
  t.ok(documents.length > 50, 'of every room')
  t.same(
    documents.flatMap((path) => deadIn(path, readFileSync(join(ROOT, path), 'utf8'))),
    [],
  )
})

t.test('links: every chapter of docs/ can be reached from the README', async (t) => {
  const seen = new Set(['README.md'])
  for (const path of seen) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    for (const [, to = ''] of text.matchAll(/\]\(([^)\s#:]+\.md)(?:#[^)]*)?\)/g)) {
      const target = posix.join(posix.dirname(path), to)
      if (existsSync(join(ROOT, target))) seen.add(target)
    }
  }
  for (const path of documents.filter((one) => one.startsWith('docs/'))) t.ok(seen.has(path), path)
})

t.test('links: a dead file, heading and path are seen', async (t) => {
  const text = [
    '# One `thing`, and: two',
    '## Twice',
    '## Twice',
    '[a](#one-thing-and-two) [b](#twice-1) [c](../README.md#the-promise) [d](reference/api.md) [e](https://example.com/x) `src/main.ts` `main.ts`',
    '```text\n[in a block](none)\n```',
  ]
  t.same(deadIn('docs/made-up.md', text.join('\n')), [])
  const wrong = [
    '[a](#twice-2)',
    '[b](none.md)',
    '[c](../README.md#none)',
    '[d](../../etc)',
    '`http/none.ts`',
    '[e](reference/api.md#)',
  ]
  for (const one of wrong) t.equal(deadIn('docs/made-up.md', [...text, one].join('\n')).length, 1, one)
})
