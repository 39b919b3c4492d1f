/**
 * aof-end - ends of append-only files that Redis refuses: moved away if they hold nothing accepted, an error
 * otherwise.
 */
import {
  appendFileSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { cutUnreadableEnd, readableBytes, removeOldEnds } from '../../../cluster/embedded/aof-end.ts'
import { readAofFiles } from '../../../cluster/embedded/aof-files.ts'
import { sumsPath } from '../../../cluster/embedded/aof-sums.ts'
import { startEmbeddedRedis } from '../../../cluster/embedded/embedded.ts'
import { readMark } from '../../../cluster/embedded/store-mark.ts'

const SET = '*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n'
const LONG = `*2\r\n$3\r\nDEL\r\n$3000000\r\n${'x'.repeat(3_000_000)}\r\n`
const MULTI = '*1\r\n$5\r\nMULTI\r\n'
const EXEC = '*1\r\n$4\r\nEXEC\r\n'

t.test('aof end: the readable part of a file', async (t) => {
  const cases: readonly [name: string, text: string, readable: number | 'all'][] = [
    ['empty', '', 'all'],
    ['commands and an annotation', `#TS:1764300000\r\n${SET}${LONG}${SET}`, 'all'],
    ['zeros behind', `${SET}${'\0'.repeat(5000)}`, SET.length],
    ['zeros alone', '\0'.repeat(10), 0],
    ['a long one, then zeros', `${LONG}${'\0'.repeat(20)}`, LONG.length],
    ['garbage behind', `${SET}garbage\r\n`, SET.length],
    ['a count that is none', `${SET}*x\r\n`, SET.length],
    ['a count that is too large', `${SET}*9999999\r\n$1\r\na\r\n`, SET.length],
    ['no arguments', `${SET}*0\r\n`, SET.length],
    ['an argument without its end', `${SET}*1\r\n$3\r\nSETxx*1\r\n`, SET.length],
    ['zeros within a transaction', `${SET}${MULTI}${SET}${'\0'.repeat(99)}`, SET.length],
    ['zeros after a transaction', `${MULTI}${SET}${EXEC}${'\0'.repeat(99)}`, (MULTI + SET + EXEC).length],
    ...Array.from({ length: SET.length - 1 }, (_, n): [string, string, 'all'] => [
      `cut ${n + 1}`,
      SET + SET.slice(0, n + 1),
      'all',
    ]),
  ]
  const folder = t.testdir({})
  for (const [name, text, readable] of cases) {
    const path = join(folder, 'file')
    writeFileSync(path, text)
    const file = openSync(path, 'r')
    t.match(readableBytes(file), { readable: readable === 'all' ? text.length : readable, size: text.length }, name)
    closeSync(file)
  }
})

/** A store of some keys that ran and was stopped. Returns its directory and its file of commands. */
async function makeStore(t: Test): Promise<{ dataDir: string; path: string }> {
  const dataDir = t.testdir({})
  const store = await start(dataDir)
  const redis = new Redis({ path: store.socketPath })
  for (let n = 0; n < 50; n += 1) await redis.set(`key${n}`, 'x'.repeat(n))
  // The mark is written by a look that an answer follows.
  if (store.directory.look() === null) await store.directory.confirm(Date.now())
  redis.disconnect()
  await store.stop({ whenLast: async () => true })
  const last = readAofFiles(dataDir)?.named.at(-1)?.name ?? ''
  return { dataDir, path: join(dataDir, 'appendonlydir', last) }
}

const warnings: object[] = []
function start(dataDir: string) {
  const log = { info: () => undefined, error: () => undefined, warn: (facts: object) => void warnings.push(facts) }
  return startEmbeddedRedis({ dataDir, durability: 'fsync', log, onDown: () => undefined, onUp: () => undefined })
}

/** Starts the store, reads its keys, and stops it. */
async function keysOf(dataDir: string): Promise<number> {
  const store = await start(dataDir)
  const redis = new Redis({ path: store.socketPath })
  const keys = await redis.dbsize()
  redis.disconnect()
  await store.stop({ whenLast: async () => true })
  return keys
}

t.test('aof end: zeros behind the last command are moved away, and the store starts with every key', async (t) => {
  const { dataDir, path } = await makeStore(t)
  const whole = readFileSync(path)
  appendFileSync(path, Buffer.alloc(70_000))
  t.equal(await keysOf(dataDir), 50)
  t.match(warnings, [{ path, bytes: 70_000 }])
  const [kept = ''] = readdirSync(dataDir).filter((name) => name.startsWith('unreadable-end.'))
  t.ok(readFileSync(join(dataDir, kept)).equals(Buffer.alloc(70_000)), 'the bytes are kept')
  t.ok(readFileSync(path).subarray(0, whole.length).equals(whole), 'nothing before them was changed')
  t.equal(await keysOf(dataDir), 50, 'and it starts again')
})

t.test('aof end: damage where data was known to be on disk stops the start, and changes nothing', async (t) => {
  const { dataDir, path } = await makeStore(t)
  const bytes = readFileSync(path)
  // The tail that the mark knows stays; a hole before it is what a lying disk leaves. Sums would be compared first.
  rmSync(sumsPath(dataDir), { recursive: true })
  bytes.fill(0, bytes.length - 600, bytes.length - 400)
  writeFileSync(path, bytes)
  await t.rejects(start(dataDir), /cannot be read from byte \d+ on: .*accepted data is damaged.*redis-check-aof --fix/)
  t.ok(readFileSync(path).equals(bytes))
  t.same(
    readdirSync(dataDir).filter((name) => name.startsWith('unreadable-end.')),
    [],
  )
})

t.test('aof end: a hole with commands behind it is damage of synced data, also after the mark', async (t) => {
  const { dataDir, path } = await makeStore(t)
  const known = readFileSync(path).length
  // Accepted since the last mark, which is up to two seconds old.
  for (let n = 0; n < 20; n += 1) appendFileSync(path, SET)
  const bytes = readFileSync(path)
  bytes.fill(0, known + 5, known + 5 + SET.length)
  writeFileSync(path, bytes)
  await t.rejects(
    start(dataDir),
    /Whole commands are behind the damage: accepted data may be in them.*Restore a backup/,
  )
  t.ok(readFileSync(path).equals(bytes), 'nothing was cut')
  // The end of a power cut: a transaction that was not synced, and zeros.
  writeFileSync(path, Buffer.concat([bytes.subarray(0, known), Buffer.from(MULTI + SET), Buffer.alloc(900)]))
  t.equal(await keysOf(dataDir), 50, 'an end without commands behind it is moved away')
})

t.test('aof end: without a mark it is unknown what was accepted', async (t) => {
  const { dataDir, path } = await makeStore(t)
  appendFileSync(path, '\0\0')
  const files = readAofFiles(dataDir)
  t.ok(files)
  if (files === null) return
  const cut = () => cutUnreadableEnd(dataDir, { files, mark: null, nowMs: 0 })
  t.throws(cut, /2 bytes are damaged\. Whether accepted data is in them is unknown/)
  truncateSync(path, readFileSync(path).length - 2)
  t.equal(cut(), null, 'nothing is wrong')
  t.ok(readMark(dataDir))
})

t.test('aof end: an end that was moved away is removed after a week, and only the newest are kept', async (t) => {
  const folder = t.testdir({})
  const nowMs = Date.now()
  const make = (day: number) => {
    const name = `unreadable-end.2026-01-${String(day).padStart(2, '0')}T00-00-00-000Z.aof`
    writeFileSync(join(folder, name), 'x')
    const at = nowMs / 1000 - day * 86_400
    utimesSync(join(folder, name), at, at)
    return name
  }
  const [newest, , , , , , sixth, , eighth] = Array.from({ length: 9 }, (_, day) => make(day))
  writeFileSync(join(folder, 'unreadable-end.other'), 'x')
  t.same(removeOldEnds(folder, nowMs - 3_600_000), [eighth])
  t.same(removeOldEnds(folder, nowMs + 3_600_000).length, 1)
  t.ok(readdirSync(folder).includes(sixth ?? ''))
  for (let n = 0; n < 10; n += 1) writeFileSync(join(folder, `unreadable-end.2027-0${n}.aof`), 'x')
  t.equal(removeOldEnds(folder, nowMs).length, 7)
  t.notOk(readdirSync(folder).includes(newest ?? ''), 'the newest ten are kept')
  t.ok(readdirSync(folder).includes('unreadable-end.other'))
})
