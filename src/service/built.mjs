/**
 * built - whether the service can run as it is compiled, on this Node.js.
 *
 * `build/.built` is written by `npm run build`, with the time at which that began; a source changed later is not
 * compiled. An archive (`npm run pack`) has no sources.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
export const BUILD = join(ROOT, 'build')
export const MAIN = join(BUILD, 'src', 'cli', 'main.js')
/** The TypeScript project of the service, without benchmarks and tests. */
export const PROJECT = 'tsconfig.service.json'
export const STAMP = join(BUILD, '.built')
const FOLDERS = ['schemas', 'cluster', 'src']

/** Returns null, or a sentence with the next step. */
export function faultOfBuild() {
  if (!existsSync(join(ROOT, PROJECT)) && existsSync(MAIN)) return null
  const builtAtMs = statSync(STAMP, { throwIfNoEntry: false })?.mtimeMs
  if (builtAtMs === undefined || !existsSync(MAIN))
    return 'The service is not compiled: run npm install, then npm run build'
  const newer = FOLDERS.flatMap(sourcesIn).find((path) => (changedAtMs(path) ?? 0) > builtAtMs)
  return newer === undefined ? null : `${newer} is newer than the compiled service: run npm run build`
}

/** Returns null, or the problem with this Node.js. */
export function faultOfNode() {
  const wanted = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).engines.node
  const [least, past] = wanted.split(' ').map(numbersIn)
  const have = numbersIn(process.version)
  const isIn = compare(have, least) >= 0 && compare(have, past) < 0
  return isIn ? null : `Node.js ${wanted} is required, but this is ${process.version}`
}

function numbersIn(version) {
  return version.match(/\d+/g).map(Number)
}

/** Out: below 0, 0 or above 0, by the numbers that the second version has. */
function compare(one, other) {
  const at = other.findIndex((number, n) => number !== one[n])
  return at === -1 ? 0 : one[at] - other[at]
}

/** Everything but documents; linked files are not sources. */
function sourcesIn(folder) {
  const entries = readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith('.md'))
  return files.map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1))
}

/** Returns null if it was just removed. */
function changedAtMs(path) {
  return statSync(join(ROOT, path), { throwIfNoEntry: false })?.mtimeMs ?? null
}
