/** private-dir - which files of a data directory are closed to others, and which only cause a warning. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { closeDirectory } from '../../src/store/private-dir.ts'

function makeFolder(t: Test, names: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-private-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'appendonlydir'))
  for (const name of [...names, 'appendonlydir/appendonly.aof.1.incr.aof']) {
    writeFileSync(join(folder, name), '')
    chmodSync(join(folder, name), 0o644)
  }
  chmodSync(join(folder, 'appendonlydir'), 0o755)
  chmodSync(folder, 0o755)
  return folder
}

const modeOf = (...path: string[]): string => (statSync(join(...path)).mode & 0o7777).toString(8)

t.test('private-dir: our own files are closed, and the directory too', async (t) => {
  const folder = makeFolder(t, ['installation', 'redis.log', 'first-run.json'])
  t.same(closeDirectory(folder), [])
  t.same([modeOf(folder), modeOf(folder, 'redis.log'), modeOf(folder, 'first-run.json')], ['700', '600', '600'])
  t.same([modeOf(folder, 'appendonlydir'), modeOf(folder, 'appendonlydir/appendonly.aof.1.incr.aof')], ['700', '600'])
})

t.test('private-dir: a directory with foreign files, or a shared one, is left, and warned of', async (t) => {
  const foreign = makeFolder(t, ['installation', 'notes.txt'])
  t.match(closeDirectory(foreign), [/is open to other users and has other files: chmod 700/])
  t.same([modeOf(foreign), modeOf(foreign, 'notes.txt'), modeOf(foreign, 'installation')], ['755', '644', '600'])
  const shared = makeFolder(t, [])
  chmodSync(shared, 0o1777)
  t.match(closeDirectory(shared), [/is open to other users/])
  t.equal(modeOf(shared), '1777')
})

t.test('private-dir: the directory of another user is a sentence with the remedy', async (t) => {
  const folder = makeFolder(t, [])
  const uid = statSync(folder).uid
  t.throws(
    () => closeDirectory(folder, uid + 1),
    new RegExp(`belongs to user ${uid}, but this is user ${uid + 1}: start as`),
  )
  t.equal(modeOf(folder), '755')
  t.same(closeDirectory(join(folder, 'none')), [])
})
