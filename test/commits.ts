/** commits - subjects of commits that `npm run check` refuses, in a repository of its own. Skipped without git. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from './support/machine/root.ts'

const CHECK = join(ROOT, 'test/support/tidy/commits.mjs')
const AUTHOR = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']
const GOOD = [
  'docs: Add a page',
  'content, process: Embed the reader',
  'mail: Pass a folded header',
  'Revert "docs: A page of a long time ago, whose subject has more than sixty characters"',
]
const BAD = [
  'docs: Adds a page',
  'docs: Added a page',
  'docs: Adding a page',
  'docs: The page has a table',
  'docs: Redis is asked once',
  'docs: add a page',
  'docs: Add a page.',
  'Add a page',
  `docs: Add ${'x'.repeat(60)}`,
]

const noGit = spawnSync('git', ['--version']).status === 0 ? false : 'git is not installed'

function runCheck(cwd: string, env: NodeJS.ProcessEnv = process.env) {
  const { status, stderr } = spawnSync(process.execPath, [CHECK], { cwd, env, encoding: 'utf8' })
  return { status, stderr }
}

t.test('commits: subjects of new commits are checked, older ones are not', { skip: noGit }, async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'sendwright-commits-'))
  t.teardown(() => rmSync(cwd, { recursive: true }))
  const git = (...args: string[]) => t.equal(spawnSync('git', [...AUTHOR, ...args], { cwd }).status, 0, args.join(' '))
  const commit = (subject: string) => git('commit', '-q', '--allow-empty', '-m', subject)
  t.equal(runCheck(cwd).status, 0, 'no repository')
  git('init', '-q', '-b', 'main')
  t.equal(runCheck(cwd).status, 0, 'no commit')
  commit('the first one was of another form')
  t.equal(runCheck(cwd).status, 0, 'no base')
  git('checkout', '-q', '-b', 'work')
  for (const subject of GOOD) commit(subject)
  t.same(runCheck(cwd), { status: 0, stderr: '' })
  for (const subject of BAD) commit(subject)
  const { status, stderr } = runCheck(cwd)
  t.equal(status, 1)
  for (const subject of BAD) t.ok(stderr.includes(` ${subject}\n`), subject)
  t.equal(stderr.trim().split('\n').length, 2 * BAD.length, stderr)
  t.equal(runCheck(cwd, { ...process.env, PATH: '' }).status, 0, 'no git')
})
