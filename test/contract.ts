/** contract - what the documents say equals what the tables in schemas/ say, in both directions.
 *
 *  Run with `--write` after `npm run build` it writes the generated tables into the README instead of comparing them.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CLIENT_SETTINGS, SETTINGS, type Setting } from '../schemas/config.ts'
import { ROUTES, type Route } from '../schemas/routes.ts'
import { ROOT } from './support/machine/root.ts'

const README = join(ROOT, 'README.md')

/** Generated parts of the README by the name in their markers. */
const PARTS: Record<string, string> = {
  settings: tableOf(['Variable', 'Default', 'Meaning'], SETTINGS.map(settingRow)),
  'client-settings': tableOf(['Variable', 'Default', 'Meaning'], CLIENT_SETTINGS.map(settingRow)),
  routes: tableOf(['Route', 'Key', 'Success'], routesOf('public').map(routeRow)),
  'operator-routes': tableOf(['Route', 'Key', 'Success'], routesOf('operator').map(routeRow)),
}

function settingRow(setting: Setting): string[] {
  const value = setting.default === null ? (setting.fallback ?? '') : `\`${setting.default}\``
  return [`\`${setting.name}\``, value, setting.meaning]
}

function routesOf(listener: Route['listener']): Route[] {
  return Object.values<Route>(ROUTES).filter((route) => route.listener === listener)
}

function routeRow({ method, path, keys, success }: Route): string[] {
  const names = { S: 'server', A: 'account', O: 'operator' }
  return [`\`${method} ${path}\``, keys.map((kind) => names[kind]).join(', ') || 'none', String(success.status)]
}

function tableOf(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function markersOf(name: string): [begin: string, end: string] {
  return [`<!-- ${name}:begin -->\n`, `\n<!-- ${name}:end -->`]
}

/** What stands between a part's markers; null when they are missing or stand twice. */
function partOf(document: string, name: string): string | null {
  const [begin, end] = markersOf(name)
  const [, after, again] = document.split(begin)
  return after === undefined || again !== undefined || !after.includes(end) ? null : (after.split(end)[0] ?? null)
}

if (process.argv.includes('--write')) {
  const written = Object.entries(PARTS).reduce(
    (document, [name, table]) => {
      const [begin, end] = markersOf(name)
      return document.replace(begin + (partOf(document, name) ?? '') + end, () => begin + table + end)
    },
    readFileSync(README, 'utf8'),
  )
  writeFileSync(README, written)
}

const readme = readFileSync(README, 'utf8')

for (const [name, table] of Object.entries(PARTS)) {
  t.test(`contract: the README's table "${name}" equals schemas/`, async (t) => {
    t.equal(partOf(readme, name), table)
  })
}

t.test('contract: the comparison sees a missing and a surplus row', async (t) => {
  const [begin, end] = markersOf('settings')
  const rows = (PARTS.settings ?? '').split('\n')
  t.not(partOf(begin + rows.slice(0, -1).join('\n') + end, 'settings'), PARTS.settings)
  t.not(partOf(begin + [...rows, '| `MORE` | | |'].join('\n') + end, 'settings'), PARTS.settings)
  t.equal(partOf('no markers', 'settings'), null)
})

t.test('contract: every variable of the README outside its tables is one of schemas/config.ts', async (t) => {
  const known = new Set<string>([...SETTINGS, ...CLIENT_SETTINGS].map(({ name }) => name))
  const named = [...readme.matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`/g)].map(([, name]) => name ?? '')
  t.ok(named.length > 10)
  t.same(
    named.filter((name) => !known.has(name)),
    [],
  )
})

t.test('contract: a setting has a sentence, and words for an absent default', async (t) => {
  for (const setting of [...SETTINGS, ...CLIENT_SETTINGS] as Setting[]) {
    t.match(setting.meaning, /^[A-Z`].*\.$/s, setting.name)
    t.equal(setting.fallback !== undefined, setting.default === null, setting.name)
  }
  t.equal(new Set(SETTINGS.map(({ name }) => name)).size, SETTINGS.length)
})

t.test('contract: the Procfile sets only what schemas/config.ts knows, and the threads of libuv', async (t) => {
  const known = new Set<string>([...SETTINGS.map(({ name }) => name), 'UV_THREADPOOL_SIZE'])
  const lines = readFileSync(join(ROOT, 'Procfile'), 'utf8').trim().split('\n')
  const names = lines.flatMap((line) => [...line.matchAll(/(?:^\w+:|\s)\s*([A-Z_]+)=/g)].map(([, name]) => name ?? ''))
  t.ok(names.includes('REDIS_URL') && names.includes('ROLES') && names.includes('OPERATOR_PORT'))
  t.same(
    names.filter((name) => !known.has(name)),
    [],
  )
  const starts = [...lines, readFileSync(join(ROOT, 'sendwright'), 'utf8')].join('\n').match(/.*exec node --max.*/g)
  t.equal(starts?.length, 5)
  t.ok(starts?.every((line) => /UV_THREADPOOL_SIZE=\$.UV_THREADPOOL_SIZE:-8. exec node/.test(line)))
})

t.test('contract: the changelog has a section for what comes next', async (t) => {
  t.match(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), /^## Pending$/m)
})
