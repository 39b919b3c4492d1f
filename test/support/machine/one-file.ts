/** one-file - a program of the tests and all that it imports, in one file: such a process starts in half the time. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { ROOT } from './root.ts'

/** Packages with parts that are not JavaScript, or that start threads from their own files. */
const LEFT_OUT = ['uWebSockets.js', 'pino', 'pino-pretty']

/** Each of our modules keeps its own place, so that threads and documents are found. */
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

/** Variables that CommonJS packages expect. */
const BANNER = `import { createRequire as requireOf } from 'node:module'
const require = requireOf(import.meta.url), __filename = import.meta.filename, __dirname = import.meta.dirname`

/**
 * Writes the program as one file. In: the compiled program, and the file to write, which must be in the checkout,
 * because external packages are resolved from there. Throws the errors of esbuild.
 */
export async function makeOneFile(program: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [program],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: LEFT_OUT,
    plugins: [OWN_PLACE],
    banner: { js: BANNER },
    logLevel: 'silent',
  })
}
