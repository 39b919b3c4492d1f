/** tidy - the rules of the house that a machine can check: who imports whom, and what a folder must not contain.
 *
 *  Each check is a function over one file's text that returns its findings, with a small test of its own, so that a
 *  check which has gone blind is noticed.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import t from 'tap'
import { ROOT } from './support/machine/root.ts'
import { includedTests } from './support/machine/test-files.ts'

const TREES = ['schemas', 'cluster', 'src', 'bench', 'test']
const LINES_MAX = 400

/**
 * The rooms of the house, the highest first. A file imports from its own room and from rooms below it, types too; a room
 * that is not named belongs to the room that holds it.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['bench/main.ts'],
  ['bench/figures'],
  ['bench/contestants'],
  ['bench/load'],
  ['bench'],
  ['test'],
  ['src/cli'],
  ['src/main.ts'],
  ['src/service'],
  ['src/reception', 'src/routes/operator'],
  ['src/routes'],
  ['src/sending'],
  ['src/health'],
  ['src/outbound'],
  ['src/outbound/thread'],
  ['src/webhooks'],
  ['src/http'],
  ['src/store'],
  ['src/content'],
  ['src/views/operator'],
  ['src/views/message'],
  ['src/views'],
  ['src/dns'],
  ['src/process'],
  ['src/actors'],
  ['src/actors/account', 'src/actors/domain'],
  ['src/actors/server'],
  ['src/actors/message'],
  ['src/actors/suppression', 'src/actors/webhook'],
  ['src/actors/order'],
  ['src/state/message', 'src/state/webhook'],
  ['src/state'],
  ['src/mail/authenticate'],
  ['src/mail/compose', 'src/mail/mime', 'src/mail/report'],
  ['src/mail'],
  ['schemas'],
  ['cluster/worker'],
  ['cluster/redis'],
  ['cluster/embedded'],
  ['cluster/shard'],
  ['cluster/items', 'cluster/mailbox'],
  ['cluster/facts'],
  ['cluster'],
]

/** Rooms that lie below and are not to be imported all the same, and why. */
const APART: readonly (readonly [room: string, other: string, why: string])[] = [
  ['src/sending', 'src/http', 'SMTP sends as well'],
  ['src/views', 'src/process', 'what is read does not depend on the process'],
]

/** Files of cluster/ whose work is the clock, a process or a socket. */
const CLUSTER_HANDS = /^cluster\/(clock\.ts|redis\/|embedded\/|worker\/(worker|watchdog|watchdog-thread)\.ts)/

const IMPURE = /\b(?:Date|performance|Math\.random|process|randomUUID|randomBytes|randomInt|getRandomValues|hrtime)\b/g
const IMPURE_MAIL =
  /\bDate\.now\b|\bnew Date\(\)|\b(?:performance|Math\.random|process\.env|randomUUID|randomBytes|randomInt)\b/g
/** Who reads the environment; who sets what a library of native code reads of it. */
const ENVIRONMENT_HANDS = new Set(['src/process/config.ts', 'src/http/head-bytes.ts'])
const SOCKETS = /^(?:node:)?(?:net|tls|dns|dgram|http|https|http2|fs|child_process|worker_threads|timers)(?:\/|$)/
// Built from halves, or this very file would be a finding.
const DEBT = new RegExp(`\\b(?:${['TO', 'FIX'].map((half, at) => half + ['DO', 'ME'][at]).join('|')})\\b`, 'g')

interface Source {
  path: string
  text: string
}

interface Import {
  from: string
  isType: boolean
}

/** The text without comments, and with empty strings and regular expressions. Good enough for words, not a parser. */
function codeOf(text: string): string {
  const pieces =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=[=(,:!&|?{};[\n]\s*|return )\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/g
  return text.replace(pieces, (piece) => (piece.startsWith('/') ? ' ' : "''"))
}

function importsOf(text: string): Import[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/[^\n]*/gm, '')
  const clauses = /^(?:import|export)\s+(type\s)?([^;'"]*?\bfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm
  return [...code.matchAll(clauses)].map(([, type, names = '', from, dynamic]) => {
    const inner = /\{([^}]*)\}\s*from/.exec(names)?.[1]
    const isEachType =
      inner !== undefined && /^\s*\{/.test(names) && inner.split(',').every((n) => /^\s*(type\s|$)/.test(n))
    return { from: from ?? dynamic ?? '', isType: Boolean(type) || isEachType }
  })
}

const RANKS = new Map(FLOORS.flatMap((rooms, rank) => rooms.map((room) => [room, rank])))

/** The room of a file: the longest of the named folders that holds it, or the file itself where it is named. */
function roomOf(path: string): string | null {
  for (let place = path; place !== '.'; place = posix.dirname(place)) if (RANKS.has(place)) return place
  return null
}

function isIn(path: string, room: string): boolean {
  return path.startsWith(`${room}/`)
}

/** Imports of rooms that are not below the file's own, and of a socket where mail is pure. */
function wrongImports({ path, text }: Source): string[] {
  const room = roomOf(path)
  if (room === null) return [`${path}: in no known room`]
  return importsOf(text).flatMap(({ from, isType }) => {
    if (!from.startsWith('.')) {
      const isForbidden = room.startsWith('src/mail') && !isType && SOCKETS.test(from)
      return isForbidden ? [`${path} imports ${from}: mail is pure, pass what it needs as an argument`] : []
    }
    const target = posix.normalize(posix.join(posix.dirname(path), from))
    const other = roomOf(target)
    const apart = APART.find(([one, two]) => isIn(path, one) && isIn(target, two))
    if (apart !== undefined) return [`${path} imports ${target}: ${apart[2]}`]
    const isBelow = other !== null && (RANKS.get(other) ?? 0) > (RANKS.get(room) ?? 0)
    return isBelow || other === room ? [] : [`${path} imports ${target}: a room imports only rooms below it`]
  })
}

/** Clock, randomness, environment and waiting where there must be none. */
function impurities({ path, text }: Source): string[] {
  const code = codeOf(text)
  const find = (pattern: RegExp) => [...new Set(code.match(pattern) ?? [])].map((word) => `${path} contains ${word}`)
  if (/^src\/(?:actors|state)\//.test(path)) return [...find(IMPURE), ...find(/\b(?:await|async|Promise)\b/g)]
  if (path.startsWith('cluster/') && !CLUSTER_HANDS.test(path)) return find(IMPURE)
  if (path.startsWith('src/mail/')) return find(IMPURE_MAIL)
  // The environment is read in one place.
  if (path.startsWith('src/') && !ENVIRONMENT_HANDS.has(path)) return find(/\bprocess\.env\b/g)
  if (path.startsWith('schemas/') || path.startsWith('cluster/')) return find(/\bprocess\.env\b/g)
  return []
}

/** Shape: a first sentence, a length, no debt, no name that says nothing. */
function misshapen({ path, text }: Source): string[] {
  const found: string[] = []
  const lines = text.trimEnd().split('\n').length
  if (lines > LINES_MAX) found.push(`${path} has ${lines} lines, ${LINES_MAX} at most: split it`)
  // A test's sentence may read as it likes; the other files begin with their name.
  const opening = path.startsWith('test/') ? /^\/\*\*\s/ : /^(?:#![^\n]*\n)?\/\*\*\s+(?:\*\s+)?[a-z0-9./-]+ - \S/
  if (!opening.test(text)) found.push(`${path} does not open with "name - summary"`)
  for (const word of text.match(DEBT) ?? []) found.push(`${path} contains ${word}: do it`)
  if (/\/(?:index|utils?|helpers?|common|misc|types)\.ts$/.test(path))
    found.push(`${path}: name the file after what it does`)
  if (/^export default\b/m.test(text)) found.push(`${path} has a default export: name it`)
  return found
}

/** Test files that the runner does not run, and files that it runs although they hold no tests. */
function misplacedTests(included: RegExp, { path, text }: Source): string[] {
  const isTest = importsOf(text).some(({ from, isType }) => from === 'tap' && !isType)
  if (!path.startsWith('test/') || path.startsWith('test/support/') || isTest === included.test(path)) return []
  return [
    isTest ? `${path} is not included in .taprc: it never runs` : `${path} is included in .taprc and has no tests`,
  ]
}

function sources(): Source[] {
  return TREES.flatMap((tree) => {
    const names = readdirSync(join(ROOT, tree), { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.(ts|mjs)$/.test(name),
    )
    return names.map((name) => {
      const path = join(ROOT, tree, name)
      return { path: relative(ROOT, path).split(sep).join('/'), text: readFileSync(path, 'utf8') }
    })
  })
}

const all = sources()

t.test('tidy: the checks look at the whole tree', async (t) => {
  for (const path of [
    'schemas/config.ts',
    'cluster/embedded/embedded.ts',
    'src/cli/main.ts',
    'src/service/launch.mjs',
    'test/tidy.ts',
  ]) {
    t.ok(
      all.some((source) => source.path === path),
      path,
    )
  }
  t.equal(dirname(join(ROOT, 'package.json')), ROOT)
})

t.test('tidy: imports go one way', async (t) => {
  // Tests look everywhere, and quote imports as text.
  t.same(all.filter(({ path }) => !path.startsWith('test/')).flatMap(wrongImports), [])
})

t.test('tidy: no clock, randomness or environment where a decision is made', async (t) => {
  t.same(all.flatMap(impurities), [])
})

t.test('tidy: files have the shape of the house', async (t) => {
  t.same(all.flatMap(misshapen), [])
})

t.test('tidy: every file with tests is run', async (t) => {
  const included = includedTests(readFileSync(join(ROOT, '.taprc'), 'utf8'))
  t.same(
    all.flatMap((source) => misplacedTests(included, source)),
    [],
  )
})

t.test('tidy: the check of what is run finds what it must', async (t) => {
  const included = includedTests(
    'include:\n  - build/test/*.js\n  - build/test/{a,b}/*.js\n  - build/test/c/{d,e}.js\n',
  )
  const run = `import t from 'tap'`
  const cases: [string, string, number][] = [
    ['test/tidy.ts', run, 0],
    ['test/a/x.ts', `import t, { type Test } from 'tap'`, 0],
    ['test/a/x.ts', `import type { Test } from 'tap'`, 1],
    ['test/d/x.ts', run, 1],
    ['test/a/b/x.ts', run, 1],
    ['test/c/d.ts', run, 0],
    ['test/c/f.ts', run, 1],
    ['test/c/f.ts', '', 0],
    ['test/support/x.ts', `import type { Test } from 'tap'`, 0],
  ]
  for (const [path, text, count] of cases)
    t.equal(misplacedTests(included, { path, text }).length, count, `${path}: ${text}`)
})

/** path, text, how many findings */
const IMPORT_CASES: [string, string, number][] = [
  ['schemas/a.ts', `import { B } from './b.ts'`, 0],
  ['schemas/a.ts', `import { b } from '../src/mail/b.ts'`, 1],
  ['schemas/a.ts', `import { b } from '../cluster/b.ts'`, 0],
  ['cluster/a.ts', `import type { B } from '../schemas/b.ts'`, 1],
  ['cluster/a.ts', `import { Redis } from 'ioredis'`, 0],
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
]

t.test('tidy: the import check finds what it must', async (t) => {
  for (const [path, text, count] of IMPORT_CASES)
    t.equal(wrongImports({ path, text }).length, count, `${path}: ${text}`)
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
