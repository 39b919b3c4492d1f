/**
 * store-mark - findings in the files of a store that speak against a start: empty, truncated, foreign, older, without
 * a manifest, or gone.
 */
import { appendFileSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readAofFiles, readTail } from '../../../cluster/embedded/aof-files.ts'
import {
  digestOfTail,
  faultOfFiles,
  readMark,
  type StoreMark,
  writeMark,
} from '../../../cluster/embedded/store-mark.ts'

const BASE = 'appendonly.aof.1.base.rdb'
const INCR = 'appendonly.aof.1.incr.aof'
const MANIFEST = `file ${BASE} seq 1 type b\nfile ${INCR} seq 1 type i\n`
const AT = '2026-11-23T08:00:00.000Z'
const bytesOf = (from: number): Buffer => Buffer.from(Array.from({ length: 1000 }, (_, n) => (from + n * 7) % 251))

/** A directory whose files match the mark. */
function makeStore(t: Test) {
  const directory = t.testdir({})
  const folder = join(directory, 'appendonlydir')
  mkdirSync(folder)
  writeFileSync(join(folder, 'appendonly.aof.manifest'), MANIFEST)
  writeFileSync(join(folder, BASE), bytesOf(1))
  const incr = join(folder, INCR)
  writeFileSync(incr, bytesOf(2))
  const sizes = { [BASE]: 1000, [INCR]: 1000 }
  const endOf = (name: string): string => digestOfTail(readTail(join(folder, name), 1000) ?? '')
  const mark: StoreMark = { at: AT, manifest: MANIFEST, sizes, ends: { [BASE]: endOf(BASE), [INCR]: endOf(INCR) } }
  writeMark(directory, mark)
  const fault = (known: StoreMark | null = readMark(directory)) =>
    faultOfFiles(directory, { files: readAofFiles(directory), mark: known, mustHold: true })
  return { folder, incr, mark, fault }
}

t.test('store mark: files that are as they were, or have grown', async (t) => {
  const { incr, mark, fault } = makeStore(t)
  t.same(readMark(t.testdirName), mark, 'read as it was written')
  t.equal(fault(), null)
  appendFileSync(incr, bytesOf(3))
  t.equal(fault(), null)
  t.equal(fault(null), null, 'no mark: nothing is known')
})

t.test('store mark: bytes that stat reports and read does not return are no end of a file', async (t) => {
  const { incr } = makeStore(t)
  t.equal(readTail(incr, 1000), bytesOf(2).subarray(-32).toString('latin1'))
  t.equal(readTail(incr, 1010), null, 'not zeros: a mark of them would refuse a sound store')
})

t.test('store mark: a truncated file', async (t) => {
  const { incr, fault } = makeStore(t)
  truncateSync(incr, 999)
  t.match(fault(), { isCut: true, sentence: /has 999 bytes, but had 1000 at 2026.*the last 1 bytes.*are missing/ })
})

t.test('store mark: a file that was truncated and continued, has a hole, or is another one', async (t) => {
  const { incr, mark, fault } = makeStore(t)
  const other = /has changed since 2026.*its first 1000 bytes differ.*Restore the right file/
  truncateSync(incr, 900)
  appendFileSync(incr, bytesOf(9))
  t.match(fault(), { isCut: false, sentence: other })
  writeFileSync(incr, bytesOf(2).subarray(0, 900))
  truncateSync(incr, 1000)
  t.match(fault(), { isCut: false, sentence: other }, 'a hole')
  const { ends: _, ...earlier } = mark
  t.equal(fault(earlier), null, 'the mark of an earlier release knows no more')
})

t.test('store mark: files of an earlier number, newer ones beside them, no manifest, nothing', async (t) => {
  const { folder, mark, fault } = makeStore(t)
  const later = { ...mark, manifest: MANIFEST.replaceAll('.1.', '.2.').replaceAll('seq 1', 'seq 2') }
  t.match(fault(later), { isCut: false, sentence: /are an older copy: at .* they were .*\.2\.incr/ })
  writeFileSync(join(folder, 'appendonly.aof.2.incr.aof'), 'x')
  t.match(fault(), { sentence: /has appendonly\.aof\.2\.incr\.aof, newer than/ })
  truncateSync(join(folder, 'appendonly.aof.manifest'), 10)
  t.match(fault(), { sentence: /manifest was truncated or changed\. The data of its files is not lost\. Copy/ })
  rmSync(join(folder, 'appendonly.aof.manifest'))
  t.match(fault(), { sentence: /3 append-only files but no manifest/ })
  rmSync(folder, { recursive: true })
  t.match(fault(), { sentence: /had a store, but its append-only files are missing/ })
})
