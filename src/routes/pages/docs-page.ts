/**
 * docs-page - the documentation site under /docs: files that `npm run docs` built, read from disk as they are asked for
 *
 * Requests have no key, the service does not read their cookies, and the pages have no data of the installation.
 *
 * Spec docs.page, docs.policy
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Handler } from '../../http/request.ts'
import { type Reply, refusalReply } from '../../http/respond.ts'
import { chooseEncoding, type Encodings } from './content-encoding.ts'

/** A built site: where it is, its files with their encodings, and its policy. */
export interface Site {
  readonly folder: string
  readonly files: ReadonlyMap<string, Encodings>
  readonly headers: Readonly<Record<string, string>>
}

/** Beside the compiled service. */
const FOLDER = join(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))), 'docs')
/** Written by the build: hashes of the inline scripts, as a Content-Security-Policy names them. */
const HASHES = 'inline-scripts.json'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.jpg': 'image/jpeg',
  '.woff2': 'font/woff2',
}
const TEXT = 'text/plain; charset=utf-8'
const PREFIX = /^\/docs\/?/
/** VitePress puts a digest of the content into names below this folder. */
const DIGESTED = /^assets\//
const FOREVER = 'public, max-age=31536000, immutable'
const NOT_BUILT: Reply = {
  status: 503,
  text: 'The documentation site is not built: run npm install and npm run build',
}
const NO_PAGE = refusalReply('not_found', {}, 'No such page of the documentation')

/** Reads the list of files of the site; null if it was never built. */
export function readSite(folder: string = FOLDER): Site | null {
  if (!existsSync(join(folder, HASHES))) return null
  const names = new Set(
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/')),
  )
  const plain = [...names].filter((name) => extname(name) !== '' && !/\.(?:br|gz)$/.test(name) && name !== HASHES)
  const hashes = JSON.parse(readFileSync(join(folder, HASHES), 'utf8')) as string[]
  return {
    folder,
    files: new Map(plain.map((name) => [name, { br: names.has(`${name}.br`), gzip: names.has(`${name}.gz`) }])),
    headers: safe(hashes),
  }
}

/** Spec docs.policy: the highlighter and Redoc set styles inline; scripts run only as files or by their hash. */
function safe(hashes: readonly string[]): Readonly<Record<string, string>> {
  const policy = [
    "default-src 'none'",
    ["script-src 'self'", ...hashes.map((hash) => `'${hash}'`)].join(' '),
    "style-src 'self' 'unsafe-inline'",
    "font-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'Content-Security-Policy': policy.join('; '),
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Opener-Policy': 'same-origin',
  }
}

/** Serves the pages and files of the site, which is null if there is none. */
export function makeDocs(site: Site | null): Handler {
  if (site === null) return () => NOT_BUILT
  return async ({ params, acceptEncoding }) => {
    const found = findFile(site, (params['*'] ?? '').replace(PREFIX, ''))
    if (found !== null) return answer(site, found, 200, acceptEncoding)
    return site.files.has('404.html') ? answer(site, '404.html', 404, acceptEncoding) : NO_PAGE
  }
}

/** A page is named with or without `.html`; a folder shows its index. */
function findFile({ files }: Site, path: string): string | null {
  const name = path.replace(/\/$/, '')
  return (
    [name, `${name}.html`, `${name}/index.html`, ...(name === '' ? ['index.html'] : [])].find((one) =>
      files.has(one),
    ) ?? null
  )
}

async function answer(
  { folder, files, headers }: Site,
  name: string,
  status: number,
  accepted: string,
): Promise<Reply> {
  const encodings = files.get(name) as Encodings
  const encoding = chooseEncoding(encodings, accepted)
  const suffix = encoding === null ? '' : encoding === 'br' ? '.br' : '.gz'
  const bytes = await readFile(join(folder, name + suffix)).catch(() => null)
  // The site was built again while the service runs.
  if (bytes === null) return NO_PAGE
  return {
    status,
    bytes,
    contentType: TYPES[extname(name)] ?? TEXT,
    headers: {
      ...headers,
      'Cache-Control': DIGESTED.test(name) ? FOREVER : 'no-cache',
      ...(encodings.br && { Vary: 'Accept-Encoding' }),
      ...(encoding !== null && { 'Content-Encoding': encoding }),
    },
  }
}
