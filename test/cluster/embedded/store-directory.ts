/**
 * store-directory - what a check detects of files that are removed, replaced or truncated, here without a Redis that
 * writes.
 */
import { cpSync, mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { StoreDirectory } from '../../../cluster/embedded/store-directory.ts'
import { readMark } from '../../../cluster/embedded/store-mark.ts'

const BASE = 'appendonly.aof.1.base.rdb'
const INCR = 'appendonly.aof.1.incr.aof'
const BYTES = 1000

/** A directory that was checked, and the confirmed findings. */
function makeDirectory(t: Test) {
  const path = join(t.testdir({}), 'data')
  const folder = join(path, 'appendonlydir')
  mkdirSync(folder, { recursive: true })
  const manifest = join(folder, 'appendonly.aof.manifest')
  writeFileSync(manifest, `file ${BASE} seq 1 type b\nfile ${INCR} seq 1 type i\n`)
  writeFileSync(join(folder, BASE), 'base')
  const incr = join(folder, INCR)
  writeFileSync(incr, Buffer.alloc(BYTES, 'abcdefg'))
  const directory = new StoreDirectory({ path, processId: () => null, isOwn: true })
  t.equal(directory.look(), null)
  void directory.confirm(0)
  return { path, folder, manifest, incr, directory }
}

t.test('store directory: a healthy directory, and what is stored about it', async (t) => {
  const { path, incr, directory } = makeDirectory(t)
  t.match(readMark(path), { sizes: { [INCR]: BYTES }, ends: { [INCR]: /^[0-9a-f]{16}$/ } })
  writeFileSync(incr, 'more', { flag: 'a' })
  t.equal(directory.look(), null, 'it grows')
  t.equal(directory.lookAtBytes(BYTES), null)
  t.match(directory.lookAtBytes(10 * BYTES), { kind: 'damaged', sentence: /were cut while Redis runs: it wrote 10000/ })
})

t.test('store directory: everything that a user may do to it', async (t) => {
  const damaged = (pattern: RegExp) => ({ kind: 'damaged', sentence: pattern })
  const cases: [name: string, act: (made: ReturnType<typeof makeDirectory>) => void, found: object][] = [
    ['manifest cut', ({ manifest }) => truncateSync(manifest, 10), damaged(/manifest was cut or changed/)],
    ['manifest emptied', ({ manifest }) => truncateSync(manifest, 0), damaged(/manifest was cut or changed/)],
    ['manifest removed', ({ manifest }) => rmSync(manifest), damaged(/manifest was removed/)],
    ['file removed', ({ incr }) => rmSync(incr), damaged(/incr\.aof was removed or replaced/)],
    ['file cut', ({ incr }) => truncateSync(incr, BYTES - 1), damaged(/incr\.aof was cut or changed/)],
    [
      'a hole',
      ({ incr }) => {
        truncateSync(incr, BYTES / 2)
        truncateSync(incr, BYTES)
      },
      damaged(/incr\.aof was cut or changed/),
    ],
    [
      'another file in its place',
      ({ incr }) => {
        cpSync(incr, `${incr}.copy`)
        renameSync(`${incr}.copy`, incr)
      },
      damaged(/incr\.aof was removed or replaced/),
    ],
    [
      'folder removed',
      ({ folder }) => rmSync(folder, { recursive: true }),
      damaged(/appendonlydir was removed or replaced/),
    ],
    [
      'directory removed',
      ({ path }) => rmSync(path, { recursive: true }),
      { kind: 'deleted', sentence: /data was deleted/ },
    ],
  ]
  for (const [name, act, found] of cases) {
    const made = makeDirectory(t)
    act(made)
    t.match(made.directory.look(), found, name)
    t.match(made.directory.look(), found, `${name}, still`)
  }
})
