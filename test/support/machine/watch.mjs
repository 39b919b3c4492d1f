/**
 * watch - `npm run test:watch`: runs the tests of a file when it or they change, from the sources, without a build.
 *
 * In: folders or files of tests (`npm run test:watch -- mail actors/domain`); by default those of the pure layers. A
 * change to `src/mail/address.ts` runs `test/mail/address.ts`, or all of its folder if there is no such file.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, watch } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '../../..')
const PURE = ['mail', 'actors', 'state', 'views', 'sending', 'cluster', 'http/shape']
/** An editor writes a file in several steps. */
const SETTLE_MS = 50
const wanted = process.argv.length > 2 ? process.argv.slice(2) : PURE
const changed = new Set()
let running = null
let timer

for (const tree of ['src', 'cluster', 'test'])
  watch(join(ROOT, tree), { recursive: true }, (_, name) => {
    if (name === null || !name.endsWith('.ts')) return
    changed.add(tree === 'cluster' ? `cluster/${name}` : name)
    clearTimeout(timer)
    timer = setTimeout(run, SETTLE_MS)
  })
console.log(`Waiting for a change that concerns ${wanted.join(', ')}`)

function run() {
  const files = [...changed].flatMap(testsOf).filter((file) => wanted.some((one) => `${file}/`.startsWith(`${one}/`)))
  if (files.length === 0) return changed.clear()
  // The interrupted tests run again, with the files that have changed since.
  running?.kill()
  const names = [...changed]
  const paths = [...new Set(files)].map((file) => join(ROOT, 'test', `${file}.ts`))
  const args = [
    '--import',
    join(HERE, 'from-source.mjs'),
    '--import',
    join(HERE, 'preload.ts'),
    join(HERE, 'folder.ts'),
  ]
  const begunAt = performance.now()
  const env = { ...process.env, TAP: '1', SHARED_FILES: paths.join('\n') }
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] })
  running = child
  let said = ''
  child.stdout.on('data', (piece) => (said += piece))
  child.once('close', (code, signal) => {
    if (signal !== null) return
    for (const name of names) changed.delete(name)
    running = null
    if (code !== 0)
      console.log(
        said
          .split('\n')
          .filter((line) => !/^ *(?:ok |#|\d+\.\.)/.test(line))
          .join('\n'),
      )
    const seconds = ((performance.now() - begunAt) / 1000).toFixed(1)
    console.log(`${code === 0 ? 'passed' : 'FAILED'} in ${seconds} s: ${files.join(', ')}`)
  })
}

/** The test files of a file, below `test/` and without their ending. */
function testsOf(name) {
  const path = name.replace(/\.ts$/, '')
  if (existsSync(join(ROOT, 'test', name))) return [path]
  const folder = join(ROOT, 'test', dirname(name))
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).filter((one) => one.endsWith('.ts'))
  return names.map((one) => relative(join(ROOT, 'test'), join(folder, one.slice(0, -3))))
}
