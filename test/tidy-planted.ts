/** tidy-planted - each rule of `tidy` with what breaks it planted: a check that has gone blind is noticed. */
import t from 'tap'
import { isTestFile } from './support/machine/test-files.ts'
import { circles, pastTheDoor, pastTheRows, wrongImports } from './support/tidy/order.ts'
import { impurities } from './support/tidy/purity.ts'
import {
  COLUMNS_MAX,
  FUNCTION_LINES_MAX,
  fullRooms,
  LINES_MAX,
  longFunctions,
  misshapen,
  namedTwice,
  ROOM_FILES_MAX,
  unmirrored,
  unreached,
  wideComments,
  wideProse,
} from './support/tidy/shape.ts'
import type { Source } from './support/tidy/source.ts'

/** path, text, how many findings */
const IMPORT_CASES: [string, string, number][] = [
  ['schemas/a.ts', `import { B } from './b.ts'`, 0],
  ['schemas/a.ts', `import { b } from '../src/mail/b.ts'`, 1],
  ['schemas/a.ts', `import { b } from '../cluster/b.ts'`, 0],
  ['cluster/a.ts', `import type { B } from '../schemas/b.ts'`, 1],
  ['cluster/a.ts', `const b = await import('../src/log.ts')`, 1],
  ['cluster/a.ts', `import type { B } from './shard/b.ts'`, 1],
  ['cluster/shard/a.ts', `import type { B } from '../items/b.ts'`, 0],
  ['cluster/items/a.ts', `import type { B } from '../mailbox/b.ts'`, 1],
  ['src/mail/a.ts', `import { MAX } from '../../schemas/limits.ts'`, 0],
  ['src/mail/a.ts', `import { connect } from 'node:net'`, 1],
  ['src/mail/compose/a.ts', `import { lookup } from 'node:dns/promises'`, 1],
  ['src/mail/a.ts', `import { createHash } from 'node:crypto'`, 0],
  ['src/state/a.ts', `import type { B } from '../actors/b.ts'`, 1],
  ['src/actors/message/a.ts', `import { b } from '../server/b.ts'`, 1],
  ['src/actors/message/a.ts', `export * from '../webhook/b.ts'`, 0],
  ['src/actors/a.ts', `export * from '../outbound/b.ts'`, 1],
  ['src/outbound/thread/a.ts', `import { decide } from '../b.ts'`, 1],
  ['src/http/a.ts', `import { b } from '../outbound/b.ts'`, 1],
  ['src/http/a.ts', `import { b } from '../views/b.ts'`, 0],
  ['src/views/a.ts', `import { b } from '../http/b.ts'`, 1],
  ['src/sending/a.ts', `import type { B } from '../http/b.ts'`, 1],
  ['src/views/message/a.ts', `import type { B } from '../../process/b.ts'`, 1],
  ['src/cli/a.ts', `const { b } = await import('../main.ts')`, 0],
  ['src/main.ts', `import { b } from './http/b.ts'`, 0],
  ['src/main.ts', `// import { b } from '../test/b.ts'`, 0],
  ['elsewhere/a.ts', '', 1],
  ['bench/load/a.ts', `import { b } from '../figures/b.ts'`, 1],
  ['src/state/a.ts', `import { readFileSync } from 'node:fs'`, 1],
  ['src/actors/a.ts', `import { setTimeout } from 'node:timers/promises'`, 1],
  ['cluster/shard/a.ts', `import { connect } from 'node:net'`, 1],
  ['cluster/facts/a.ts', `import { hash } from 'node:crypto'`, 0],
  ['cluster/worker/a.ts', `import { Redis } from 'ioredis'`, 1],
  ['cluster/redis/a.ts', `import { Redis } from 'ioredis'`, 0],
  ['src/views/a.ts', `import type { Redis } from 'ioredis'`, 1],
  ['src/store/a.ts', `import type { Redis } from 'ioredis'`, 0],
  ['src/outbound/a.ts', `import { accept } from '../actors/message/accept.ts'`, 1],
  ['src/outbound/a.ts', `import { type Job, prepareAttempt } from '../actors/message/prepare-attempt.ts'`, 0],
  ['src/webhooks/a.ts', `import type { Decide } from '../actors/webhook/posted.ts'`, 0],
  ['src/reception/a.ts', `import { CHECK_LANE, recordFinding } from '../actors/domain/domain-check.ts'`, 1],
]

t.test('tidy: the import check finds what it must', async (t) => {
  for (const [path, text, count] of IMPORT_CASES)
    t.equal(wrongImports({ path, text }).length, count, `${path}: ${text}`)
})

const DOOR_CASES: [string, string, number][] = [
  ['src/health/a.ts', `import type { B } from '../../cluster/redis/b.ts'`, 1],
  ['src/service/a.ts', `import { b } from '../../cluster/embedded/b.ts'`, 1],
  ['src/service/a.ts', `import { b } from '../../cluster/worker/b.ts'`, 0],
  ['src/main.ts', 'const a = nodes.nodeOf(3).get(b)', 1],
  ['src/views/a.ts', 'const a = nodes.common().get(b)', 1],
  ['src/service/a.ts', 'const a = store.views', 1],
  ['src/service/a.ts', `import { b } from '../views/b.ts' // store.views`, 0],
  ['src/store/a.ts', `import { b } from '../../cluster/redis/b.ts'\nconst a = nodes.nodeOf(3)`, 0],
  ['bench/a.ts', 'const a = store.views', 0],
]

t.test('tidy: the check of the door to Redis finds what it must', async (t) => {
  for (const [path, text, count] of DOOR_CASES) t.equal(pastTheDoor({ path, text }).length, count, `${path}: ${text}`)
})

t.test('tidy: the check of the keys of rows finds what it must', async (t) => {
  const text = `import { headKey, segmentsKey, statusKey } from '../../state/keys.ts'`
  t.equal(pastTheRows({ path: 'src/actors/message/a.ts', text }).length, 2)
  t.equal(pastTheRows({ path: 'test/actors/message/a.ts', text }).length, 0)
  t.equal(pastTheRows({ path: 'src/actors/message/a.ts', text: text.replace('keys.ts', 'row.ts') }).length, 0)
})

t.test('tidy: the check of circles finds what it must', async (t) => {
  const file = (path: string, ...targets: string[]): Source => ({
    path,
    text: targets.map((target) => `import type { X } from '${target}'`).join('\n'),
  })
  t.same(circles([file('a/a.ts', './b.ts', '../c.ts'), file('a/b.ts', '../c.ts'), file('c.ts', 'node:fs')]), [])
  t.same(circles([file('a/a.ts', './b.ts'), file('a/b.ts', '../c.ts'), file('c.ts', './a/a.ts')]), [
    'a/a.ts a/b.ts c.ts',
  ])
  t.same(circles([file('a.ts', './a.ts'), file('b.ts', './a.ts')]), ['a.ts'])
})

const IMPURE_CASES: [string, string, number][] = [
  ['src/actors/a.ts', 'const a = new Date(0)', 1],
  ['src/actors/a.ts', 'async function a() { await b }', 2],
  ['src/actors/a.ts', 'const a = Math.random()', 1],
  ['src/actors/a.ts', 'const a = process.env.A', 1],
  ['src/actors/a.ts', `// Date\n/* await */ const a = 'Date' + "await" + \`process\``, 0],
  ['src/actors/a.ts', `const a = /'/.test(b)\nconst c = Date.now() // '`, 1],
  ['cluster/a.ts', 'const a = Date.now()', 1],
  ['cluster/a.ts', 'const a = await b()', 0],
  ['cluster/clock.ts', 'const a = Date.now()', 0],
  ['cluster/worker/worker.ts', 'const a = process.pid', 0],
  ['src/mail/a.ts', 'const a = new Date(ms)', 0],
  ['src/mail/a.ts', 'const a = new Date()', 1],
  ['src/mail/a.ts', 'const a = randomUUID()', 1],
  ['src/edge/a.ts', 'const a = process.env.A', 1],
  ['src/process/config.ts', 'const a = process.env.A', 0],
]

t.test('tidy: the purity check finds what it must', async (t) => {
  for (const [path, text, count] of IMPURE_CASES) t.equal(impurities({ path, text }).length, count, `${path}: ${text}`)
})

const SHAPE_CASES: [string, string, number][] = [
  ['src/a.ts', '/** a - does it. */\n', 0],
  ['src/a.ts', '/**\n * a - does it.\n */\n', 0],
  ['src/cli/a.ts', '#!/usr/bin/env node\n/** a - does it. */\n', 0],
  ['src/a.ts', 'const a = 1\n', 1],
  ['src/a.ts', '/** Does it. */\n', 1],
  ['src/b/a.ts', '/** b-a - does it. */\n', 1],
  ['test/a.ts', '/** b - does it. */\n', 1],
  ['src/a.d.ts', '/** a - does it. */\n', 0],
  ['test/a.ts', '/** Does it. */\n', 0],
  ['test/a.ts', 'const a = 1\n', 1],
  ['src/a.ts', `/** a - does it. */\n${'\n'.repeat(LINES_MAX - 1)}x`, 1],
  ['src/a.ts', `/** a - does it. */\n${'\n'.repeat(LINES_MAX - 2)}x`, 0],
  ['src/a.ts', `/** a - does it. */\n// ${'TO'}${'DO'} more\n`, 1],
  ['src/utils.ts', '/** utils - does it. */\n', 1],
  ['src/a.ts', '/** a - does it. */\nexport default 1\n', 1],
]

t.test('tidy: the shape check finds what it must', async (t) => {
  for (const [path, text, count] of SHAPE_CASES)
    t.equal(misshapen({ path, text }).length, count, `${path}: ${text.slice(0, 60)}`)
})

t.test('tidy: the check of comments finds what it must', async (t) => {
  const wide = 'x'.repeat(COLUMNS_MAX)
  const text = `/** ${wide} */\n  // ${wide}\n * ${wide}\nconst a = '${wide}'\n// ${'é'.repeat(COLUMNS_MAX - 3)}\n`
  t.same(wideComments({ path: 'a.ts', text }), ['a.ts 1', 'a.ts 2', 'a.ts 3'])
})

t.test('tidy planted: wide prose is found, a table, code and an unbreakable span are not', async (t) => {
  const wide = 'word '.repeat(21)
  const text = [wide, `| ${wide}|`, `\`${wide}\``, '```sh', wide, '```', `- ${wide}`].join('\n')
  t.same(wideProse({ path: 'a.md', text }), ['a.md 1', 'a.md 7'])
})

t.test('tidy: the check of functions finds what it must', async (t) => {
  const body = (lines: number) => '  x()\n'.repeat(lines)
  const cases: [string, string[]][] = [
    [`function a() {\n${body(FUNCTION_LINES_MAX - 2)}}\n`, []],
    [`function a() {\n${body(FUNCTION_LINES_MAX - 1)}}\n`, ['a.ts a']],
    [`export async function a(\n  b: B,\n): Promise<{ c: C }> {\n${body(FUNCTION_LINES_MAX - 3)}}\n`, ['a.ts a']],
    [`const a = (b) => {\n${body(FUNCTION_LINES_MAX)}}\n`, ['a.ts a']],
    [`class A {\n  private async a(): void {\n${body(FUNCTION_LINES_MAX)}  }\n}\n`, ['a.ts a']],
    [`class A {\n${body(FUNCTION_LINES_MAX)}}\n`, []],
    [`if (a) {\n${body(FUNCTION_LINES_MAX)}}\n`, []],
  ]
  for (const [text, found] of cases) t.same(longFunctions({ path: 'a.ts', text }), found, text.slice(0, 60))
})

t.test('tidy: the check of rooms finds what it must', async (t) => {
  const room = (count: number) => Array.from({ length: count }, (_, n) => ({ path: `src/a/${n}.ts`, text: '' }))
  t.same(fullRooms([...room(ROOM_FILES_MAX), { path: 'src/a/b/c.ts', text: '' }]), [])
  t.same(fullRooms(room(ROOM_FILES_MAX + 1)), [`src/a has ${ROOM_FILES_MAX + 1} files`])
})

t.test('tidy: the check of names finds what it must', async (t) => {
  const file = (path: string, text: string) => ({ path, text })
  const one = file('src/a.ts', 'export interface Head {}\nexport function list() {}\n')
  t.same(
    namedTwice([one, file('src/b.ts', 'interface Head {}\n'), file('src/cli/c.ts', 'export function list() {}')]),
    [],
  )
  t.same(namedTwice([one, file('cluster/b.ts', 'export type Head = 1\nexport const list = 1\n')]), ['Head', 'list'])
})

t.test('tidy: the check of mirrors finds what it must', async (t) => {
  const files = ['src/a/b.ts', 'src/c/d/e.ts', 'cluster/f.ts', 'test/a/b.ts', 'test/c/x.ts', 'test/cluster/f.ts']
  const paths = (...more: string[]) => [...files, ...more].map((path) => ({ path, text: '' }))
  t.same(unmirrored(paths('test/crash/x.ts', 'test/support/y/z.ts', 'test/tidy.ts')), [])
  t.same(unmirrored(paths('test/deep/a/x.ts', 'test/deep/crash/x.ts', 'test/deep/x.ts')), [])
  t.same(unmirrored(paths('test/edge/x.ts', 'test/deep/edge/x.ts')), ['test/edge', 'test/deep/edge'])
})

t.test('tidy: the check of what is run finds what it must', async (t) => {
  const file = (path: string, text: string) => ({ path, text })
  const test = file('test/deep/a/x.ts', `import t, { type Test } from 'tap'\nimport { y } from '../../a/y.ts'`)
  t.same(unreached([test, file('test/a/y.ts', `import type { Test } from 'tap'`), file('test/all.ts', '')]), [])
  t.same(unreached([test, file('test/a/y.ts', ''), file('test/a/z.ts', '')]), ['test/a/z.ts'])
  const cases: [string, string, boolean][] = [
    ['a/x.ts', `import t, { type Test } from 'tap'`, true],
    ['a/x.ts', `import type { Test } from 'tap'`, false],
    ['support/a/x.ts', `import t from 'tap'`, false],
    ['all.ts', `import t from 'tap'`, false],
  ]
  for (const [path, text, isTest] of cases) t.equal(isTestFile(path, text), isTest, `${path}: ${text}`)
})
