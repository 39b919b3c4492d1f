/**
 * outputs - what the site has beside its pages: the API reference by Redoc, llms.txt, the files that pages link to,
 * and each text compressed
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { SIDEBAR } from './sidebar.mjs'

const TEXTS = /\.(?:js|css|html|svg|json|txt|yml|yaml)$/
/** Folders of docs/ that pages link to and that hold no pages. */
const ATTACHED = ['deploy', 'monitoring']
/** The logo in the footer of Redoc would be fetched from a server of its maker. */
const REDOC_LOGO = 'https://cdn.redoc.ly/redoc/logo-mini.svg'
const NO_IMAGE = 'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22/%3E'

/** Completes the built site. In: the configuration of VitePress. */
export function finishSite({ srcDir, outDir }) {
  for (const name of ATTACHED) cpSync(join(srcDir, name), join(outDir, name), { recursive: true })
  writeReference(join(outDir, 'http-api'))
  writeTexts(srcDir, outDir)
  writeFileSync(join(outDir, 'inline-scripts.json'), JSON.stringify(hashesOf(outDir)))
  for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' }))
    if (TEXTS.test(name) && statSync(join(outDir, name)).isFile()) compress(join(outDir, name))
}

/** Redoc over the document that the service itself serves. Its search would need a worker made of a string. */
function writeReference(folder) {
  mkdirSync(folder, { recursive: true })
  const redoc = createRequire(import.meta.url).resolve('redoc/bundles/redoc.standalone.js')
  writeFileSync(join(folder, 'redoc.js'), readFileSync(redoc, 'utf8').replaceAll(REDOC_LOGO, NO_IMAGE))
  writeFileSync(join(folder, 'start.js'), START)
  writeFileSync(join(folder, 'index.html'), PAGE)
}

const START = `const options = {
  disableSearch: true,
  hideDownloadButton: false,
  nativeScrollbars: true,
  requiredPropsFirst: true,
  theme: {
    typography: { fontFamily: 'system-ui, sans-serif', headings: { fontFamily: 'system-ui, sans-serif' } },
  },
}
Redoc.init('/v1/openapi.json', options, document.getElementById('reference'))
`
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>HTTP API | Sendwright</title>
<link rel="icon" href="data:,">
<style>body { margin: 0 } .back { display: block; padding: 12px 20px; font: 14px system-ui, sans-serif }</style>
</head>
<body>
<nav aria-label="Site"><a class="back" href="/docs/">Sendwright documentation</a></nav>
<main id="reference"></main>
<noscript>The reference needs JavaScript. The same text is <a href="/docs/reference/api">one page without it</a>.</noscript>
<script src="/docs/http-api/redoc.js"></script>
<script src="/docs/http-api/start.js"></script>
</body>
</html>
`

/** llms.txt (llmstxt.org): the list of pages; llms-full.txt: their text. */
function writeTexts(srcDir, outDir) {
  const list = ['# Sendwright', '', '> Transactional email service that you run yourself.', '']
  const full = []
  for (const { title, pages } of SIDEBAR) {
    list.push(`## ${title}`, '')
    for (const { path, text } of pages) {
      const page = readFileSync(join(srcDir, `${path}.md`), 'utf8')
      list.push(`- [${text}](/docs/${path}): ${firstSentence(page)}`)
      full.push(page.trim())
    }
    list.push('')
  }
  writeFileSync(join(outDir, 'llms.txt'), `${list.join('\n').trim()}\n`)
  writeFileSync(join(outDir, 'llms-full.txt'), `${full.join('\n\n---\n\n')}\n`)
}

/** The first sentence after the title: it says what the page is for. */
function firstSentence(page) {
  const [paragraph = ''] = page.replace(/^#.*\n+/, '').split('\n\n')
  const words = paragraph.replaceAll('\n', ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return /^.*?[.:](?= |$)/.exec(words)?.[0] ?? words
}

/** Hashes of the scripts inside pages, for the Content-Security-Policy of the service. */
function hashesOf(outDir) {
  const pages = readdirSync(outDir, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'))
  const scripts = pages.flatMap((name) => {
    const page = readFileSync(join(outDir, name), 'utf8')
    return [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(([, script]) => script)
  })
  return [...new Set(scripts)].map((script) => `sha256-${createHash('sha256').update(script).digest('base64')}`)
}

function compress(path) {
  const text = readFileSync(path)
  writeFileSync(`${path}.gz`, gzipSync(text, { level: 9 }))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  writeFileSync(`${path}.br`, brotliCompressSync(text, { params }))
}
