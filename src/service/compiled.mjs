/**
 * compiled - whether what is in build/ was compiled from the sources as they are.
 *
 * `build/.launched` holds two digests of the sources that were compiled last: one of their paths, sizes and times,
 * which is looked at at every start, and one of their content, for sources that were copied or checked out anew and are
 * the same. Every source must have its compiled file, whatever that says.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
export const BUILD = join(ROOT, 'build')
export const MAIN = join(BUILD, 'src', 'cli', 'main.js')
/** What TypeScript compiles for the service, without benchmarks and tests. */
export const PROJECT = join(ROOT, 'tsconfig.service.json')
/** What the pages of the dashboard are made of, and where they are put. */
const PAGE = join('src', 'dashboard', 'page') + sep
export const DASHBOARD = join(BUILD, 'dashboard')
const SHELL = join(DASHBOARD, 'app.html')
const STAMP = join(BUILD, '.launched')
const FOLDERS = ['schemas', 'cluster', 'src']
const OPTIONS = ['tsconfig.json', 'tsconfig.service.json']

/**
 * Whether the command can run as it is. Changes nothing but the stamp, where times alone are other ones. An archive
 * (`npm run pack`) has no sources, and what it has is compiled.
 */
export function isCompiled() {
  if (!existsSync(PROJECT)) return existsSync(MAIN)
  const sources = findSources()
  const stamp = readStamp()
  if (stamp === null || !sources.every(hasOutput) || (!existsSync(SHELL) && mayBundle())) return false
  const seen = seenOf(sources)
  if (stamp.seen === seen) return true
  if (stamp.content !== contentOf(sources)) return false
  try {
    writeStamp({ ...stamp, seen })
  } catch {
    // Where nothing may be written, the content is read at each start.
  }
  return true
}

/** Whether there are pages to be made, and what makes them is installed. */
export function mayBundle() {
  if (!existsSync(join(ROOT, PAGE))) return false
  try {
    createRequire(import.meta.url).resolve('esbuild')
    return true
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return false
    throw error
  }
}

/** What the stamp says of the sources as they are. */
export function markSources() {
  const sources = findSources()
  return { seen: seenOf(sources), content: contentOf(sources) }
}

/** Says that the sources with this mark are compiled. */
export function writeStamp(mark) {
  const path = `${STAMP}.${process.pid}`
  writeFileSync(path, JSON.stringify(mark))
  renameSync(path, STAMP)
}

/** Says that nothing is. */
export function removeStamp() {
  rmSync(STAMP, { force: true })
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, 'utf8'))
  } catch {
    return null
  }
}

/** Paths below ROOT, in a fixed order. */
function findSources() {
  return [...OPTIONS, ...FOLDERS.flatMap(filesIn)].filter((path) => statOf(path)?.isFile() === true)
}

/** A link that leads nowhere, as editors leave them, is no source, and no folder is looked at through a link. */
function filesIn(folder) {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesIn(path)
    return path.endsWith('.ts') || path.startsWith(PAGE) ? [path] : []
  })
}

function statOf(path) {
  try {
    return statSync(join(ROOT, path))
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes(error.code)) return null
    throw error
  }
}

/** Pages have theirs together: without what makes them what was made last is served. */
function hasOutput(path) {
  if (path.startsWith(PAGE) || !path.endsWith('.ts') || path.endsWith('.d.ts')) return true
  return existsSync(join(BUILD, path.replace(/ts$/, 'js')))
}

function seenOf(sources) {
  return digestOf(
    sources.map((path) => {
      const status = statOf(path)
      return `${path} ${status?.size} ${status?.mtimeMs}\n`
    }),
  )
}

function contentOf(sources) {
  return digestOf(sources.flatMap((path) => [`${path}\n`, readFileSync(join(ROOT, path)), '\0']))
}

function digestOf(pieces) {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('base64url')
}
