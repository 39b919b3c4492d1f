/**
 * The test files of one tier in one run, the longest first, so many at once as keep the processors busy
 * (`support/machine/costs.ts`). `npm test` runs what is outside of `deep/`; `npm run test:deep` runs what is in it, and
 * the tests of routes a second time with the service in two processes, `http` and `actors`: a client cannot tell. At
 * its end the run names the slowest, and each that is too slow.
 *
 * What a test ends is a process, not the machine: where memory is plenty, the stores of the tests lie in it, and a disk
 * that is slow or busy is no part of what they measure.
 *
 * The runner's loader measures coverage, which nobody reads here: without it a file starts in half the time.
 * `--test-arg` names a folder or a file to run alone: `npm test -- --test-arg=routes/email --test-arg=mail`.
 */
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  busySeconds,
  type Cost,
  costOf,
  describeCosts,
  isTrue,
  packed,
  readCosts,
  writeCosts,
} from './support/machine/costs.ts'
import { makeOneFile } from './support/machine/one-file.ts'
import { describeFailure, runAgain, runToFile } from './support/machine/run-file.ts'
import { runShared } from './support/machine/share.ts'
import { testFiles } from './support/machine/test-files.ts'

/** Processors that the tests keep busy, for each that there is: they wait for clocks and processes too. */
const BUSY = 1.15
const AT_ONCE_MAX = 8
/** Ten times what the longest takes on a quiet machine, or it would measure the machine. */
const FILE_MS_MAX = 900_000
const ALL_MS_MAX = 3_600_000
/** A file system in memory, and what must be free there and of memory itself. */
const MEMORY = '/dev/shm'
const FREE_BYTES_MIN = 6 * 1024 ** 3
/** Folders whose files leave nothing behind: so many share a process as take it so long, and load the service once. */
const SHARING_FOLDERS = [
  'actors',
  'cli',
  'cluster',
  'dashboard',
  'delivery',
  'dns',
  'health',
  'http',
  'mail',
  'outbound',
  'process',
  'reception',
  'routes',
  'sending',
  'state',
  'views',
  'webhooks',
]
const SHARED_S_MAX = 30
/** The folder of the tests that `npm run test:deep` runs. */
const DEEP = 'deep/'
const PRELOAD = join(import.meta.dirname, 'support/machine/preload.js')

/** What one process runs. */
interface Run {
  readonly name: string
  readonly files: readonly string[]
  readonly topology: Topology
}

type Topology = 'whole' | 'apart'

const IS_DEEP = process.env.TIER === 'deep'
const wanted = process.argv.slice(2)
const all = testFiles().filter(isWanted)
const files = all.filter((file) => file.startsWith(DEEP) === IS_DEEP)
/** Is over SMTP what the tests of routes are over HTTP. */
const SUBMISSION = 'reception/submission/service'

const costs = readCosts()
const runs = [
  ...runsOf('whole', files),
  ...runsOf('apart', IS_DEEP ? all.filter((file) => file.startsWith('routes/') || file === SUBMISSION) : []),
]

const STORES_DIR = mkdtempSync(join(hasRoom() ? realpathSync(MEMORY) : tmpdir(), 'sendwright-stores-'))
// A test may run the service as another user.
chmodSync(STORES_DIR, 0o755)
/** The service that tests start as a process, hundreds of times; and the command line that starts it. */
const PROGRAMS = mkdtempSync(join(import.meta.dirname, 'programs-'))
chmodSync(PROGRAMS, 0o755)
const CRASH_HOST = join(PROGRAMS, 'crash-host.js')
const ONE_FILE_MAIN = join(PROGRAMS, 'main.js')
await makeOneFile(join(import.meta.dirname, 'support/service/crash-host.js'), CRASH_HOST)
await makeOneFile(join(import.meta.dirname, 'support/service/main-host.js'), ONE_FILE_MAIN)
// With a teardown the runner ends as soon as nothing is told for a moment, as while the first files run.
process.once('exit', () => {
  for (const path of [STORES_DIR, PROGRAMS]) rmSync(path, { recursive: true, force: true })
})

t.jobs = AT_ONCE_MAX
t.setTimeout(ALL_MS_MAX)
const busyBefore = busySeconds()
const measured: Cost[] = []
/** What failed beside the others. */
const failed: (Run & { readonly ended: Ended })[] = []
let begun = 0
const chosen = runs.sort((one, other) => costOfRun(other).seconds - costOfRun(one).seconds)
await runShared(
  chosen.map((run) => ({ share: shareOf(run), run: () => start(run) })),
  { room: availableParallelism() * BUSY, mostAtOnce: AT_ONCE_MAX },
)
const again = runAgain(failed)
for (const run of failed) {
  if (again.includes(run)) for (const line of describeFailure(run.name, run.ended.path)) t.comment(line)
  await tell(run, again.includes(run) ? await perform(run) : run.ended)
}
const whole = { seconds: performance.now() / 1000, busySeconds: busySeconds() - busyBefore, processes: begun }
for (const line of describeCosts(measured, whole)) t.comment(line)
if (process.env.COSTS === 'write' && wanted.length === 0 && isTrue(measured, whole)) writeCosts(measured)
t.end()

/** One process of the runner's; resolves when it has ended. What failed waits until all others have ended. */
async function start(run: Run): Promise<void> {
  const ended = await perform(run)
  if (ended.code === 0) await tell(run, ended)
  else failed.push({ ...run, ended })
}

/** The lines of a process and its exit code. */
interface Ended {
  readonly code: number
  readonly path: string
}

async function perform({ name, files, topology }: Run): Promise<Ended> {
  const paths = files.map((file) => join(import.meta.dirname, `${file}.js`))
  const script = paths.length === 1 ? paths : [join(import.meta.dirname, 'support/machine/folder.js')]
  const shared = { SHARED_FILES: paths.join('\n') }
  // The bound holds inside the file too, where the default is 30 s.
  const programs = { CRASH_HOST, ONE_FILE_MAIN }
  const ours = { TAP: '1', STORES_DIR, ...programs, TOPOLOGY: topology, TAP_TIMEOUT: String(FILE_MS_MAX / 1000) }
  const path = join(STORES_DIR, `tap-${++begun}`)
  const costFile = join(STORES_DIR, `cost-${begun}`)
  const startedAtMs = performance.now()
  const code = await runToFile(
    {
      // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
      program: '/usr/bin/env',
      args: ['-u', 'NODE_OPTIONS', process.execPath, '--import', PRELOAD, ...script],
      env: { ...process.env, ...ours, ...shared, COST_FILE: costFile },
      timeoutMs: FILE_MS_MAX,
    },
    path,
  )
  const seconds = (performance.now() - startedAtMs) / 1000
  const told = toldCosts(costFile)
  if (told.length === files.length)
    measured.push(...told.map((cost, at) => ({ ...cost, name: nameOf(files[at] as string, topology) })))
  else measured.push({ name, seconds, cpuSeconds: seconds })
  return { code, path }
}

/** The process's lines are the run's. */
async function tell({ name }: Run, { code, path }: Ended): Promise<void> {
  await t.spawn('/bin/sh', ['-c', 'cat "$1"; exit "$2"', 'sh', path, String(code)], {}, name)
  rmSync(path)
}

/** What a process has written of each of its files; of none where it was ended. */
function toldCosts(path: string): Omit<Cost, 'name'>[] {
  try {
    const rows = readFileSync(path, 'utf8').trimEnd().split('\n')
    return rows.map((row) => JSON.parse(row) as Omit<Cost, 'name'>)
  } catch {
    return []
  }
}

/** Processors that a run keeps busy. */
function shareOf(run: Run): number {
  const { seconds, cpuSeconds } = costOfRun(run)
  return cpuSeconds / seconds
}

function costOfRun({ files, topology }: Run): Omit<Cost, 'name'> {
  const all = files.map((file) => costOf(costs, nameOf(file, topology)))
  return {
    seconds: all.reduce((sum, { seconds }) => sum + seconds, 0),
    cpuSeconds: all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
  }
}

/** Files in the processes that run them: those of a folder that shares are together. */
function runsOf(topology: Topology, all: readonly string[]): Run[] {
  const folderOf = (file: string) => SHARING_FOLDERS.find((folder) => roomOf(file).startsWith(`${folder}/`))
  const alone = all.filter((file) => folderOf(file) === undefined).map((file) => [file])
  const together = SHARING_FOLDERS.flatMap((folder) =>
    packed(
      all.filter((file) => folderOf(file) === folder),
      (file) => costOf(costs, nameOf(file, topology)).seconds,
      SHARED_S_MAX,
    ),
  )
  return [...alone, ...together].map((some) => {
    const [first = '', ...others] = some
    const more = others.length === 0 ? '' : ` and ${others.length} of its folder`
    return { name: nameOf(first, topology) + more, files: some, topology }
  })
}

/** In the table of costs and in what the run says. */
function nameOf(file: string, topology: Topology): string {
  return topology === 'whole' ? roomOf(file) : `apart: ${file}`
}

/** A file's path below its tier. */
function roomOf(file: string): string {
  return file.startsWith(DEEP) ? file.slice(DEEP.length) : file
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
  return wanted.length === 0 || wanted.some((one) => `${roomOf(file)}/`.startsWith(`${one}/`))
}
