/**
 * dashboard-page - the files of the dashboard: shells, scripts, styles, read once and served as they were made
 *
 * A path under `/dashboard/` that names no file is a page: it answers a shell, and its script selects the content.
 * Paths under `api/` and `mail/` are never pages.
 *
 * Spec dashboard.page, dashboard.policy
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Handler } from '../../http/request.ts'
import { type Reply, refusalReply } from '../../http/respond.ts'
import { chooseEncoding } from './content-encoding.ts'

/** A built file with its encodings. */
interface PageFile {
  readonly plain: Uint8Array
  readonly br: Uint8Array | null
  readonly gzip: Uint8Array | null
}

/** Files by name; empty if the pages were not built. */
export type PageFiles = ReadonlyMap<string, PageFile>

/** Where they are made: beside the compiled service. */
const FOLDER = join(dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url))))), 'dashboard')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')
/** Spec dashboard.policy */
const SAFE = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
} as const
/** Names of files change with their content, so they are cached for good; pages are not. */
const FOREVER = 'public, max-age=31536000, immutable'
/** Pages without a session. */
const DOOR = /^\/dashboard\/(?:sign-in|link|forgot)\/?$/
const NO_PAGE = /^\/dashboard\/(?:api|mail)(?:\/|$)/
const PREFIX = '/dashboard/'
const NO_PAGES: Reply = {
  status: 503,
  text: 'The dashboard is not built: run npm install and npm run build',
}

/** Reads the pages. Returns every file; none if they were not built. */
export function readPages(folder: string = FOLDER): PageFiles {
  if (!existsSync(folder)) return new Map()
  const names = readdirSync(folder).filter((name) => !/\.(?:br|gz)$/.test(name))
  const readIf = (path: string) => (existsSync(path) ? readFileSync(path) : null)
  return new Map(
    names.map((name) => {
      const path = join(folder, name)
      return [name, { plain: readFileSync(path), br: readIf(`${path}.br`), gzip: readIf(`${path}.gz`) }]
    }),
  )
}

/** Serves files and shells of the members' pages or the operator's (`whose`). */
export function makeDashboard(files: PageFiles, whose: 'public' | 'operator'): Handler {
  return ({ params, acceptEncoding }) => {
    const path = params['*'] ?? PREFIX
    if (NO_PAGE.test(path)) return refusalReply('not_found', {}, 'No such route')
    const name = path.slice(PREFIX.length)
    const isFile = !name.endsWith('.html') && files.has(name)
    const shown = isFile ? name : shellOf(path, whose)
    const file = files.get(shown)
    if (file === undefined) return NO_PAGES
    return { ...answerFile(file, acceptEncoding, extname(shown)), headers: makeHeaders(file, acceptEncoding, isFile) }
  }
}

function shellOf(path: string, whose: 'public' | 'operator'): string {
  if (whose === 'operator') return 'desk.html'
  return DOOR.test(path) ? 'door.html' : 'app.html'
}

function answerFile(file: PageFile, accepted: string, extension: string): Reply {
  const encoding = encodingFor(file, accepted)
  const bytes = encoding === null ? file.plain : (file[encoding === 'br' ? 'br' : 'gzip'] as Uint8Array)
  return { status: 200, bytes, contentType: TYPES[extension] ?? 'application/octet-stream' }
}

function encodingFor({ br, gzip }: PageFile, accepted: string): 'br' | 'gzip' | null {
  return chooseEncoding({ br: br !== null, gzip: gzip !== null }, accepted)
}

function makeHeaders(file: PageFile, accepted: string, isFile: boolean): Readonly<Record<string, string>> {
  const encoding = encodingFor(file, accepted)
  return {
    ...SAFE,
    'Cache-Control': isFile ? FOREVER : 'no-cache',
    ...(file.br !== null && { Vary: 'Accept-Encoding' }),
    ...(encoding !== null && { 'Content-Encoding': encoding }),
  }
}
