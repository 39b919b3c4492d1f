/**
 * all - the test files of one tier: `npm test` runs what is outside of `deep/`, `npm run test:deep` what is in it, and
 * the tests of routes a second time with the service in two processes, `http` and `actors`, and those of the listener
 * with `node:http`: a client sees no difference.
 *
 * `--test-arg` names a folder or a file to run alone: `npm test -- --test-arg=routes/email --test-arg=mail`.
 *
 * Each part here pays: files of one folder share a process (a service loads in 1.6 s of processor); a process that a
 * test starts is one bundled file (0.8 s instead of 1.6 s); the stores are in memory where there is enough of it, so
 * that a slow disk is no part of what is measured; the runner's own loader, which measures coverage, is left out (half
 * of what a small file takes).
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { makeOneFile } from './support/machine/one-file.ts'
import { type Program, runPrograms } from './support/machine/second-run.ts'
import { DEEP, roomOf, runsOf, testFiles } from './support/machine/test-files.ts'

/** Tests wait for clocks and processes two thirds of their time; those of the deep tier keep several processes busy. */
const AT_ONCE = (process.env.TIER === 'deep' ? 1 : 3) * availableParallelism()
const FILE_MS_MAX = 900_000
const ALL_MS_MAX = 3_600_000
/** A file system in memory, and what must be free there and of memory itself. */
const MEMORY = '/dev/shm'
const FREE_BYTES_MIN = 6 * 1024 ** 3
/** These run in both topologies: every route, and the same over SMTP. */
const IN_BOTH = /^(?:(?:deep\/)?routes\/(?!openapi-types$)|reception\/submission\/service$)/

const isDeep = process.env.TIER === 'deep'
const wanted = process.argv.slice(2)
const files = testFiles().filter(
  (file) => wanted.length === 0 || wanted.some((one) => `${roomOf(file)}/`.startsWith(`${one}/`)),
)

const stores = makeFolder(hasMemory() ? realpathSync(MEMORY) : tmpdir(), 'sendwright-stores-')
// In the checkout, where packages are found.
const bundles = makeFolder(import.meta.dirname, 'programs-')
process.once('exit', () => {
  for (const path of [stores, bundles]) rmSync(path, { recursive: true, force: true })
})
const env = {
  ...process.env,
  TAP: '1',
  TAP_TIMEOUT: String(FILE_MS_MAX / 1000),
  STORES_DIR: stores,
  CRASH_HOST: join(bundles, 'crash-host.js'),
  ONE_FILE_MAIN: join(bundles, 'main.js'),
}
await makeOneFile(join(import.meta.dirname, 'support/service/crash-host.js'), env.CRASH_HOST)
await makeOneFile(join(import.meta.dirname, '../src/cli/main.js'), env.ONE_FILE_MAIN)

t.setTimeout(ALL_MS_MAX)
const programs = [
  ...programsOf(
    'whole',
    files.filter((file) => file.startsWith(DEEP) === isDeep),
  ),
  ...programsOf('apart', isDeep ? files.filter((file) => IN_BOTH.test(file)) : []),
  ...programsOf('node', isDeep ? files.filter((file) => file.startsWith('http/')) : []),
]
await runPrograms(t, programs, { jobs: AT_ONCE, msMax: FILE_MS_MAX })
t.end()

/** `node`: one process that serves HTTP with `node:http`, although uWebSockets.js is there. */
function programsOf(topology: 'whole' | 'apart' | 'node', some: readonly string[]): Program[] {
  const engine = topology === 'node' ? { HTTP_ENGINE: 'node' } : {}
  return runsOf(some).map((shared) => {
    const paths = shared.map((file) => join(import.meta.dirname, `${file}.js`))
    const [first, ...more] = shared
    const preload = join(import.meta.dirname, 'support/machine/preload.js')
    const [path] = paths.length === 1 ? paths : [join(import.meta.dirname, 'support/machine/folder.js')]
    return {
      name: `${topology === 'whole' ? '' : `${topology}: `}${first}${more.length > 0 ? ` and ${more.length} more` : ''}`,
      args: ['--import', preload, path as string],
      env: { ...env, ...engine, TOPOLOGY: topology, SHARED_FILES: paths.join('\n') },
    }
  })
}

/** A test may run the service as another user, who reads what is in it. */
function makeFolder(at: string, name: string): string {
  const path = mkdtempSync(join(at, name))
  chmodSync(path, 0o755)
  return path
}

function hasMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, process.availableMemory()) >= FREE_BYTES_MIN
  } catch {
    return false
  }
}
