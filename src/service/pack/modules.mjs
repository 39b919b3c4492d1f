/**
 * modules - copies the installed packages of the lock file into an archive, without files that no server reads
 *
 * The lock file decides: a package that is not one of the service's own, or is installed in another version, is not
 * copied. From the HTTP library, whose package has native modules for eleven platforms, only those of servers are
 * copied.
 */
import { cpSync, existsSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'

const NATIVE = 'node_modules/uWebSockets.js'
const PLATFORMS = ['linux_x64', 'linux_arm64']
/** Versions of Node.js, by the number of their native modules: 20 and 22. */
const NODES = [115, 127]
/** Types, maps and documents. A licence is kept, with any extension. */
const UNREAD = /\.(?:[cm]?ts|map|flow|md|markdown)$/
/** Folders of a package that `import` does not read. */
const UNREAD_FOLDERS = ['.github', 'test', 'tests', '__tests__', 'benchmark', 'benchmarks', 'example', 'examples']
export const LICENSE = /^(?:licen[cs]e|copying|notice)/i

/** Copies them from `root` into `stage`. Takes the entries of the lock file. Throws Error if one is not installed. */
export function copyModules(root, stage, entries) {
  for (const [path, { version }] of entries) {
    const manifest = join(root, path, 'package.json')
    const installed = existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : 'nothing'
    if (installed !== version)
      throw new Error(`${path} is ${installed}, package-lock.json has ${version}: run npm install`)
    cpSync(join(root, path), join(stage, path), { recursive: true, filter: (from) => isRead(root, path, from) })
  }
  for (const name of nativeModules())
    if (!existsSync(join(stage, NATIVE, 'dist', 'bin', name))) throw new Error(`${NATIVE} has no ${name}`)
}

function isRead(root, path, from) {
  const name = basename(from)
  if (name === 'node_modules' && from !== join(root, path)) return false
  if (name.endsWith('.node')) return nativeModules().includes(name)
  if (UNREAD_FOLDERS.includes(relative(join(root, path), from))) return false
  return LICENSE.test(name) || !UNREAD.test(name)
}

function nativeModules() {
  return PLATFORMS.flatMap((platform) => NODES.map((node) => `uws_${platform}_${node}.node`))
}
