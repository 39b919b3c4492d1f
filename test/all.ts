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

const FILES_AT_ONCE = 2
const FILE_MS_MAX = 120_000
const ALL_MS_MAX = 3_600_000
/** What takes longest on two processors, the longest first; the others follow in the order of their names. */
const LONGEST = ['crash/kills']

const wanted = process.argv.slice(2)
const files = testFiles().filter((file) => file !== 'all' && isWanted(file))
const runs = [
  ...files.map((file) => ({ file, name: file, topology: 'whole' })),
  ...files
    .filter((file) => file.startsWith('routes/'))
    .map((file) => ({ file, name: `apart: ${file}`, topology: 'apart' })),
]

t.jobs = FILES_AT_ONCE
t.setTimeout(ALL_MS_MAX)
for (const { file, name, topology } of runs.sort((a, b) => placeOf(a.name) - placeOf(b.name))) {
  const path = join(import.meta.dirname, `${file}.js`)
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
  const args = ['-u', 'NODE_OPTIONS', process.execPath, '--enable-source-maps', path]
  void t.spawn('/usr/bin/env', args, { env: { ...process.env, TOPOLOGY: topology }, timeout: FILE_MS_MAX }, name)
}

function isWanted(file: string): boolean {
  return wanted.length === 0 || wanted.some((one) => file === one || file.startsWith(`${one}/`))
}

/** Smaller is sooner. Stable: files that are not among the longest keep their order. */
function placeOf(name: string): number {
  const place = LONGEST.indexOf(name)
  return place === -1 ? LONGEST.length : place
}
