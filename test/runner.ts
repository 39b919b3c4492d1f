/** Of the runner itself: which files share a process, and a program in one file. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { makeOneFile } from './support/machine/one-file.ts'
import { runsOf, testFiles } from './support/machine/test-files.ts'

t.test('runner: every test file is in one process, those of a folder share some', async (t) => {
  const files = testFiles()
  const runs = runsOf(files)
  t.same(runs.flat().sort(), files)
  t.ok(runs.length < files.length / 2)
  const many = Array.from({ length: 13 }, (_, n) => `mail/${n}`)
  t.same(runsOf(['crash/kills', 'deep/crash/points', 'tidy', 'state/a', 'deep/state/b', ...many]), [
    ['crash/kills'],
    ['deep/crash/points'],
    ['tidy'],
    ['state/a', 'deep/state/b'],
    many.slice(0, 12),
    many.slice(12),
  ])
})

t.test('one-file: a program with all that it imports, in which each of our modules keeps its place', async (t) => {
  const outfile = join(t.testdir(), 'one.mjs')
  const threaded = join(import.meta.dirname, '../src/reception/returned/returned-parser.js')
  await makeOneFile(threaded, outfile)
  const made = readFileSync(outfile, 'utf8')
  t.ok(
    made.includes(`new URL("./returned-parser-worker.js", "${pathToFileURL(threaded).href}")`),
    'its thread is found',
  )
  t.notMatch(made, /from ?["']\./, 'nothing of ours is left out')
  await t.rejects(makeOneFile(join(import.meta.dirname, 'no-such-file.js'), outfile), /no-such-file/)
})

t.test('one-file: runs as the program does', async (t) => {
  // In the checkout, where the packages are found that it leaves out.
  const dir = mkdtempSync(join(import.meta.dirname, 'one-file-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const outfile = join(dir, 'main.js')
  await makeOneFile(join(import.meta.dirname, '../src/cli/main.js'), outfile)
  const args = ['-u', 'NODE_OPTIONS', process.execPath, outfile, '--version']
  const { status, stdout, stderr } = spawnSync('/usr/bin/env', args, { encoding: 'utf8' })
  t.match({ status, stdout, stderr }, { status: 0, stdout: /^\d+\.\d+\.\d+\n$/, stderr: '' })
})
