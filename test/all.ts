/**
 * Every test file in one run: the longest first, so that none is left to run alone at the end, and the tests of routes
 * a second time with the service in two processes, `http` and `actors`: a client cannot tell.
 *
 * What a test ends is a process, not the machine: where memory is plenty, the stores of the tests lie in it, and a disk that
 * is slow or busy is no part of what they measure.
 *
 * The runner's loader measures coverage, which nobody reads here: without it a file starts in half the time. `--test-arg`
 * names a folder or a file to run alone: `npm test -- --test-arg=routes/email --test-arg=mail`.
 */
import { chmodSync, mkdtempSync, realpathSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { testFiles } from './support/machine/test-files.ts'

/** One more than processors: tests wait for clocks and processes a third of their time. */
const FILES_AT_ONCE = 3
/** Ten times what the longest takes on a quiet machine, or it would measure the machine. */
const FILE_MS_MAX = 900_000
const ALL_MS_MAX = 3_600_000
/** A file system in memory, and what must be free there and of memory itself. */
const MEMORY = '/dev/shm'
const FREE_BYTES_MIN = 6 * 1024 ** 3
/** Tables without a side effect: all files of such a folder share one process. */
const PURE_FOLDERS = ['mail', 'actors', 'state']
/** What takes longest, the longest first; the others follow in the order of their names. */
const LONGEST = [
  'mistakes/two-ways',
  'mistakes/settings',
  'mistakes/directory',
  'mistakes/files',
  'crash/kills',
  'crash/chaos',
  'crash/clock-jump',
  'simulation/seeds',
  'crash/orphan',
  'fuzz/size',
  'crash/frozen',
  'crash/points',
  'cluster/worker/worker',
  'simulation/planted',
  'crash/stop',
  'crash/final-dot',
  'crash/storm',
  'fuzz/http',
]

/** What asks how soon a process is seen to be half dead: after all others, one at a time, or it would measure those. */
const ALONE = ['crash/half-dead', 'crash/partitions']

/** What one process runs. */
interface Run {
  readonly name: string
  readonly paths: readonly string[]
  readonly topology: 'whole' | 'apart'
}

const wanted = process.argv.slice(2)
const files = testFiles().filter((file) => file !== 'all' && isWanted(file))
const runs: Run[] = [
  ...PURE_FOLDERS.map((folder) =>
    runOf(
      folder,
      files.filter(isPure).filter((file) => file.startsWith(`${folder}/`)),
    ),
  ),
  ...files.filter((file) => !isPure(file)).map((file) => runOf(file, [file])),
  ...files
    .filter((file) => file.startsWith('routes/'))
    .map((file): Run => ({ ...runOf(`apart: ${file}`, [file]), topology: 'apart' })),
]

const STORES_DIR = mkdtempSync(join(hasRoom() ? realpathSync(MEMORY) : tmpdir(), 'sendwright-stores-'))
// A test may run the service as another user.
chmodSync(STORES_DIR, 0o755)
t.teardown(() => rmSync(STORES_DIR, { recursive: true, force: true }))

t.jobs = FILES_AT_ONCE
t.setTimeout(ALL_MS_MAX)
const chosen = runs.filter(({ paths }) => paths.length > 0).sort(byPlace)
await Promise.all(chosen.filter(({ name }) => !ALONE.includes(name)).map(start))
for (const run of chosen.filter(({ name }) => ALONE.includes(name))) await start(run)

/** One process of the runner's; resolves when it has ended. */
async function start({ name, paths, topology }: Run): Promise<void> {
  const script = paths.length === 1 ? paths : [join(import.meta.dirname, 'support/machine/folder.js'), ...paths]
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
  const args = ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', ...script]
  // The bound holds inside the file too, where the default is 30 s.
  const env = { ...process.env, STORES_DIR, TOPOLOGY: topology, TAP_TIMEOUT: String(FILE_MS_MAX / 1000) }
  await t.spawn('/usr/bin/env', args, { env, timeout: FILE_MS_MAX }, name)
}

function runOf(name: string, tests: readonly string[]): Run {
  return { name, paths: tests.map((file) => join(import.meta.dirname, `${file}.js`)), topology: 'whole' }
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return Math.min(bavail * bsize, process.availableMemory()) >= FREE_BYTES_MIN
  } catch {
    return false
  }
}

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((one) => file === one || file.startsWith(`${one}/`))
}

function isPure(file: string): boolean {
  return PURE_FOLDERS.some((folder) => file.startsWith(`${folder}/`))
}

/** The longest first; files that are not among them keep their order. */
function byPlace(one: Run, other: Run): number {
  const placeOf = ({ name }: Run) => (LONGEST.includes(name) ? LONGEST.indexOf(name) : LONGEST.length)
  return placeOf(one) - placeOf(other)
}
