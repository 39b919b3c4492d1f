/** start - `npm start`: compiles what has changed, then runs `sendwright start` in this very process.
 *
 *  The same process, so that a start costs no second Node and signals arrive where they are handled.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const MAIN = join(ROOT, 'build', 'src', 'cli', 'main.js')
/** Its time is the time of the newest source that has been compiled. */
const STAMP = join(ROOT, 'build', '.started')
const SOURCES = ['schemas', 'cluster', 'src', 'tsconfig.json', 'package.json'].map((name) => join(ROOT, name))

const newestMs = Math.max(...SOURCES.map(changedAtMs))
if (!existsSync(MAIN) || !existsSync(STAMP) || statSync(STAMP).mtimeMs < Math.floor(newestMs)) build(newestMs)
process.argv.splice(1, process.argv.length, MAIN, 'start', ...process.argv.slice(2))
await import(pathToFileURL(MAIN).href)

/** Newest change of a file, or of a folder and all in it (a folder's own time tells of removed files). */
function changedAtMs(path) {
  const status = statSync(path)
  if (!status.isDirectory()) return status.mtimeMs
  return Math.max(status.mtimeMs, ...readdirSync(path).map((name) => changedAtMs(join(path, name))))
}

function build(sourceMs) {
  const compiler = findCompiler()
  if (compiler === null) {
    if (!existsSync(MAIN))
      fail('The service is not compiled and TypeScript is not installed: run npm install, or npm run build')
    console.error('TypeScript is not installed: running what was compiled last')
    return
  }
  const { status } = spawnSync(process.execPath, [compiler], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0) fail('The service does not compile')
  chmodSync(MAIN, 0o755)
  writeFileSync(STAMP, '')
  utimesSync(STAMP, new Date(), new Date(Math.ceil(sourceMs)))
}

/** The compiler's script in node_modules, or null. */
function findCompiler() {
  try {
    const manifest = createRequire(import.meta.url).resolve('typescript/package.json')
    return join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin.tsc)
  } catch (error) {
    if (error.code === 'MODULE_NOT_FOUND') return null
    throw error
  }
}

function fail(sentence) {
  console.error(sentence)
  process.exit(1)
}
