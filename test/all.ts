/**
 * Every test file in one run: the longest first, so that none is left to run alone at the end, and the tests of routes
 * a second time with the service in two processes, `http` and `actors`: a client cannot tell.
 *
 * The runner's loader measures coverage, which nobody reads here: without it a file starts in half the time. `--test-arg`
 * names a folder or a file to run alone: `npm test -- --test-arg=routes/email --test-arg=mail`.
 */
import { join } from 'node:path'
import t from 'tap'
import { testFiles } from './support/test-files.ts'

/** One more than processors: tests wait for clocks and processes a third of their time. */
const FILES_AT_ONCE = 3
const FILE_MS_MAX = 180_000
const ALL_MS_MAX = 3_600_000
/** Tables without a side effect: all files of such a folder share one process. */
const PURE_FOLDERS = ['mail', 'actors']
/** What takes longest, the longest first; the others follow in the order of their names. */
const LONGEST = [
  'crash/kills',
  'crash/chaos',
  'crash/clock-jump',
  'simulation/seeds',
  'crash/orphan',
  'fuzz/size',
  'crash/frozen',
  'crash/points',
  'cluster/worker',
  'simulation/planted',
  'crash/stop',
  'crash/final-dot',
  'crash/storm',
  'fuzz/http',
]

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

t.jobs = FILES_AT_ONCE
t.setTimeout(ALL_MS_MAX)
for (const { name, paths, topology } of runs.filter(({ paths }) => paths.length > 0).sort(byPlace)) {
  const script = paths.length === 1 ? paths : [join(import.meta.dirname, 'support/folder.js'), ...paths]
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
  const args = ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', ...script]
  // The bound holds inside the file too, where the default is 30 s.
  const env = { ...process.env, TOPOLOGY: topology, TAP_TIMEOUT: String(FILE_MS_MAX / 1000) }
  void t.spawn('/usr/bin/env', args, { env, timeout: FILE_MS_MAX }, name)
}

function runOf(name: string, tests: readonly string[]): Run {
  return { name, paths: tests.map((file) => join(import.meta.dirname, `${file}.js`)), topology: 'whole' }
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
