/** from-source - lets this process import the sources: each file is compiled alone, without a type check. */
import { readFile } from 'node:fs/promises'
import { register } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { transform } from 'esbuild'

const OPTIONS = { loader: 'ts', format: 'esm', target: 'node20', sourcemap: 'inline' }
const TYPES = { compilerOptions: { verbatimModuleSyntax: true } }

if (isMainThread) register(import.meta.url)

/** A hook of Node's loader. */
export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  const sourcefile = fileURLToPath(url)
  const { code } = await transform(await readFile(sourcefile, 'utf8'), { ...OPTIONS, tsconfigRaw: TYPES, sourcefile })
  return { format: 'module', source: code, shortCircuit: true }
}
