/**
 * The table of docs/guides/erasure.md has a row for every key that the code and the key sheets name, and no other
 * row. A new key needs a row that says how an erasure treats it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BEHAVIOURS } from '../src/actors/behaviours.ts'
import { ROOT } from './support/machine/root.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
/** Where names of keys are made, and the sheets that tell them. */
const MAKERS = [
  'cluster/keyspace.ts',
  'src/state/keys.ts',
  'src/state/request-row.ts',
  'src/store/sts-policies.ts',
  'src/store/start-lock.ts',
  'src/store/rewrite.ts',
]
const SHEETS = ['cluster/README.md', 'src/actors/README.md']

/** Names in the first cells of the document's table. */
function placesOf(document: string): string[] {
  const table = document.slice(document.indexOf('<!-- places:begin -->'), document.indexOf('<!-- places:end -->'))
  return [...table.matchAll(/^\| (`[^|]+?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
}

/** First words of the key names that a file makes. */
function madeIn(text: string): string[] {
  const ofShard = [...text.matchAll(/(?:\$\{(?:shardTag\([^)]*\)|tag)\}:|ofShard\(')([a-z-]+)/g)]
  const ofCluster = [...text.matchAll(/KEY = '(\{cl\}:[a-z-]+)'/g)]
  return [...ofShard, ...ofCluster].map(([, word = '']) => word)
}

/** First words of the keys that the tables of a sheet begin with: those with a key's type or with what it holds. */
function toldIn(sheet: string): string[] {
  const keys = sheet.slice(sheet.search(/^\| Key \|/m))
  const table = keys.slice(0, keys.indexOf('\n\n'))
  return [...table.matchAll(/^\| (`[^|]+?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(?:\{s017\})?:?([a-z-]+|\{cl\}:[a-z-]+)(?:[:`])/g)].map(([, word = '']) => word),
  )
}

/** Keys without a row. */
function missing(document: string): string[] {
  const places = new Set(placesOf(document))
  const keys = [
    ...MAKERS.flatMap((path) => madeIn(read(path))),
    ...SHEETS.flatMap((path) => toldIn(read(path))),
    ...BEHAVIOURS.entities.map(({ kind }) => kind),
  ]
  return [...new Set(keys)].filter((key) => !places.has(key)).sort()
}

t.test('erasure: every key has a row in docs/guides/erasure.md', async (t) => {
  t.same(missing(read('docs/guides/erasure.md')), [])
})

t.test('erasure: every key that has a row is one', async (t) => {
  const keys = new Set([
    ...MAKERS.flatMap((path) => madeIn(read(path))),
    ...SHEETS.flatMap((path) => toldIn(read(path))),
    ...BEHAVIOURS.entities.map(({ kind }) => kind),
  ])
  const places = placesOf(read('docs/guides/erasure.md')).filter((name) => /^(?:\{cl\}:)?[a-z-]+$/.test(name))
  t.ok(places.length > 50)
  t.same(
    places.filter((name) => !keys.has(name)),
    [],
  )
})

t.test('erasure: a row that is missing is seen', async (t) => {
  const document = read('docs/guides/erasure.md')
  for (const name of ['head', 'received-head', 'staged', 'erasing'])
    t.same(
      missing(document.replace(new RegExp(`^\\|[^|]*\`${name}\`[^|]*`, 'm'), '| `nothing` ')).includes(name),
      true,
      name,
    )
})
