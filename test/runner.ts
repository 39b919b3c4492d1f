/** runner - the runner itself: which files share a process, a program in one file, second runs */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { makeOneFile } from './support/machine/one-file.ts'
import { SECOND_RUNS_MAX } from './support/machine/second-run.ts'
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

t.test('second-run: a program that fails once runs again, and is named at the end', async (t) => {
  const { status, stdout } = runFailing(t, { steady: 0, flaky: 1 })
  t.equal(status, 0, stdout)
  t.match(stdout, /^not ok \d+ - flaky # [A-Z]{4} fails; runs once more, alone$/m, 'its first run does not count')
  t.match(stdout, /^ok 3 - flaky /m, 'after all others')
  t.notMatch(stdout, /^ +not ok/m, 'no total counts what failed at first')
  t.match(stdout, /^# +not ok 2 - flaky ends$/m, 'it is in the log')
  t.match(stdout, /^# passed on the second run: flaky: flaky ends\n/m)
  t.notMatch(stdout, /second run: steady/)
})

t.test('second-run: a program that fails twice fails the run', async (t) => {
  const { status, stdout } = runFailing(t, { flaky: 1, broken: 2 })
  t.equal(status, 1, stdout)
  t.match(stdout, /^not ok [34] - broken /m)
  t.equal(stdout.match(/^ +not ok 2 - broken ends$/gm)?.length, 1, 'it counts once')
  t.match(stdout, /^# passed on the second run: flaky/m)
  t.notMatch(stdout, /^# passed on the second run: broken/m)
})

t.test('second-run: if more programs fail than have bad luck, none runs again and each fails', async (t) => {
  const names = Array.from({ length: SECOND_RUNS_MAX + 1 }, (_, n) => `program-${n}`)
  const { status, stdout } = runFailing(t, Object.fromEntries(names.map((name) => [name, 1])))
  t.equal(status, 1, stdout)
  t.equal(stdout.match(/^not ok \d+ - (program-\d): \1 ends$/gm)?.length, names.length)
  t.notMatch(stdout, /second run|^ok/m)
})

/** Programs that fail so many times, and then pass. Out: the exit code and the output of a run of them all. */
function runFailing(t: Test, failures: Readonly<Record<string, number>>): { status: number | null; stdout: string } {
  const module = (name: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, name)).href)
  const dir = t.testdir({
    'program.mjs': `
      import { appendFileSync, readFileSync } from 'node:fs'
      const [log, name, failures] = process.argv.slice(2)
      appendFileSync(log, name + '\\n')
      const runs = readFileSync(log, 'utf8').split('\\n').filter((one) => one === name).length
      console.log('TAP version 14\\nok 1 - begins\\n' + (runs > failures ? 'ok' : 'not ok') + ' 2 - ' + name + ' ends\\n1..2')
      process.exitCode = runs > failures ? 0 : 1`,
    'all.mjs': `
      import t from 'tap'
      import { runPrograms } from ${module('support/machine/second-run.js')}
      const [dir, failures] = process.argv.slice(2)
      const programs = Object.entries(JSON.parse(failures)).map(([name, times]) => ({
        name, args: [dir + '/program.mjs', dir + '/log', name, String(times)], env: process.env }))
      await runPrograms(t, programs, { jobs: 2, msMax: 60_000 })
      t.end()`,
  })
  const args = ['-u', 'NODE_OPTIONS', process.execPath, join(dir, 'all.mjs'), dir, JSON.stringify(failures)]
  return spawnSync('/usr/bin/env', args, { encoding: 'utf8', env: { ...process.env, TAP: '1' } })
}
