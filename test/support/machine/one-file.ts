/**
 * one-file - a program of the tests and all that it imports, in one file: such a process starts in half the time
 *
 * What the first process of it that ends by itself has compiled is kept for all others.
 *
 * The code is the same; what a module asks of its own place (`import.meta`) is still its own place, so that threads
 * and documents are found where they lie.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { ROOT } from './root.ts'

/** What has parts that are no JavaScript, or starts threads of files of its own. */
const LEFT_OUT = ['uWebSockets.js', 'pino', 'pino-pretty']

/** Each of our modules keeps its own place. */
const OWN_PLACE: Plugin = {
  name: 'own-place',
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(join(ROOT, 'build/'))) return null
      const contents = readFileSync(path, 'utf8')
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
      return { contents, loader: 'js' }
    })
  },
}

/** What packages ask of their own place: it is that of the file. */
const BANNER = `(function (exports, require, module, __filename, __dirname) {
const PLACE = require('node:url').pathToFileURL(__filename).href`

/**
 * Writes it: what is to be run, and beside it `.cjs` with the code and, once a process of it has ended by itself,
 * `.compiled`. In: the compiled program, which awaits nothing outside functions, and the file to write, which must lie
 * in the checkout: what is left out is looked for from there. Throws what esbuild says.
 */
export async function makeOneFile(program: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [program],
    outfile: `${outfile}.cjs`,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: LEFT_OUT,
    plugins: [OWN_PLACE],
    define: { 'import.meta.url': 'PLACE', 'import.meta.dirname': '__dirname' },
    banner: { js: BANNER },
    footer: { js: '})' },
    logLevel: 'silent',
  })
  writeFileSync(outfile, `const PATH = ${JSON.stringify(outfile)}\n${RUN}`)
}

/** Of what is left out this one can only be imported. esbuild writes ASCII, which is read as it is. */
const RUN = `
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { Script } from 'node:vm'
import * as http from 'uWebSockets.js'

const path = PATH + '.cjs'
const place = PATH + '.compiled'
const find = createRequire(path)
const script = new Script(readFileSync(path, 'latin1'), { filename: path, cachedData: readCompiled() })
if (script.cachedDataRejected !== false) process.once('exit', writeCompiled)
const module = { exports: {} }
const require = (name) => (name === 'uWebSockets.js' ? http : find(name))
script.runInThisContext()(module.exports, require, module, path, dirname(path))

function readCompiled() {
  try {
    return readFileSync(place)
  } catch {
    return undefined
  }
}

function writeCompiled() {
  try {
    writeFileSync(place + process.pid, script.createCachedData())
    renameSync(place + process.pid, place)
  } catch {
    // Another user runs it, or the run is over.
  }
}
`
