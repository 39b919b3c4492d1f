/**
 * bundle - makes the dashboard's pages from `src/dashboard/page/`: scripts, styles, the font, the shells
 *
 * Guarantees: the output of one run is complete and consistent: names of files have a digest of their content, and the
 * shells name them. Each text is also stored with br and gz, compressed here and not at each request.
 *
 * There are three builds, so that the sign-in pages load nothing else: `app` (a chunk for each page), `door` (signing
 * in, links), `desk` (the operator).
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ENTRIES = ['app', 'door', 'desk']
const TITLES = { app: 'Sendwright', door: 'Sign in · Sendwright', desk: 'Operator · Sendwright' }
const TEXTS = /\.(?:js|css|html|svg)$/
/** Reduces a file's path to its package. */
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/
const FONT = /inter-.*\.woff2$/

/**
 * Makes the pages. Takes the project's folder and the output folder. Returns folders of the packages whose code is
 * bundled. Throws the errors of esbuild for a faulty page (with `errors`), or why it does not run.
 */
export async function bundle(root, into) {
  const esbuild = await import('esbuild')
  mkdirSync(into, { recursive: true })
  const page = join(root, 'src', 'dashboard', 'page')
  const made = await Promise.all(ENTRIES.map((entry) => build(esbuild, { root, page, into, entry })))
  for (const [at, entry] of ENTRIES.entries())
    writeFileSync(join(into, `${entry}.html`), shellOf(entry, made[at], into))
  for (const name of readdirSync(into).filter((one) => TEXTS.test(one))) compress(join(into, name))
  return [...new Set(made.flatMap(({ packages }) => packages))].sort()
}

async function build(esbuild, { root, page, into, entry }) {
  const { metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: [{ in: join(page, `${entry}.tsx`), out: entry }],
    outdir: into,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['es2022', 'chrome120', 'firefox121', 'safari17.5'],
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    entryNames: '[name]-[hash]',
    chunkNames: `${entry}-[hash]`,
    assetNames: '[name]-[hash]',
    loader: { '.woff2': 'file' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // One file holds the code shared by the pages.
    inject: entry === 'app' ? [join(page, 'shared.ts')] : [],
    metafile: true,
    logLevel: 'silent',
  })
  const names = Object.entries(metafile.outputs)
  const [script, { cssBundle }] = names.find(([, one]) => one.entryPoint?.endsWith(`/${entry}.tsx`))
  // Imports of the entry are loaded with it, not after it.
  const chunks = metafile.outputs[script].imports.filter(({ kind }) => kind === 'import-statement')
  const packages = Object.keys(metafile.inputs).flatMap((path) => PACKAGE.exec(path)?.[0] ?? [])
  return { script: baseOf(script), style: baseOf(cssBundle), chunks: chunks.map(({ path }) => baseOf(path)), packages }
}

function baseOf(path) {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** The document around a bundle: it holds nothing but names, so that it may be asked for each time. */
function shellOf(entry, { script, style, chunks }, into) {
  const font = readdirSync(into).find((name) => FONT.test(name))
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${TITLES[entry]}</title>
<link rel="icon" href="${ICON}">
<link rel="preload" href="/dashboard/${font}" as="font" type="font/woff2" crossorigin>
<link rel="stylesheet" href="/dashboard/${style}">
${chunks.map((name) => `<link rel="modulepreload" href="/dashboard/${name}">\n`).join('')}<script type="module" src="/dashboard/${script}"></script>
</head>
<body><div id="page">${FRAMES[entry]}</div><noscript>The dashboard needs JavaScript. Everything it does, the command line and the API do too.</noscript></body>
</html>
`
}

/** What is seen until the script runs: the empty frame of the pages, as `frame/app-frame.tsx` draws it first. */
const FRAMES = {
  app: '<div class="frame"><nav class="side" popover="auto" aria-label="Pages"></nav><div class="body"><div class="bar"></div></div></div>',
  door: '',
  desk: '',
}

/** In the shell itself, which saves a request for each page. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24' fill='none' stroke='%235a6ce0' " +
  "stroke-width='2.4' stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath d='M3 6v12h18V6l-9 7z'/%3E%3C/svg%3E"

function compress(path) {
  const text = readFileSync(path)
  writeFileSync(`${path}.gz`, gzipSync(text, { level: 9 }))
  const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: text.length }
  writeFileSync(`${path}.br`, brotliCompressSync(text, { params }))
}
