/**
 * Every key name that the code makes is in a README, and the sheets of the READMEs name files and keys once, and only
 * those that exist.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from './support/machine/root.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const SHEETS = ['cluster', 'src/actors']
/** Where the names of keys are made that a sheet tells. */
const KEYS: Record<string, readonly string[]> = {
  cluster: ['cluster/keyspace.ts'],
  'src/actors': ['src/state/keys.ts', 'src/state/request-row.ts', 'src/state/dashboard/places.ts'],
}

/** The first cells of a text's table rows that begin with a name in code. */
function firstCells(text: string): string[] {
  return [...text.matchAll(/^\| (`[^|]+?) \|/gm)].map(([, cell = '']) => cell)
}

/** First words of the key names that a file makes: of `{s017}:log:<server>` it is `log`. */
function keyWords(text: string): string[] {
  const made = text.matchAll(/(?:\$\{(?:shardTag\([^)]*\)|tag)\}:|ofShard\(')([a-z-]+)/g)
  return [...new Set([...made].map(([, word = '']) => word))]
}

t.test('sheets: nothing stands in a sheet twice', async (t) => {
  for (const folder of SHEETS) {
    const cells = firstCells(read(`${folder}/README.md`))
    t.ok(cells.length > 10, folder)
    t.same(
      cells.filter((cell, at) => cells.indexOf(cell) !== at),
      [],
      folder,
    )
  }
})

t.test('sheets: every key name is told', async (t) => {
  for (const folder of SHEETS) {
    const told = read(`${folder}/README.md`)
    const words = (KEYS[folder] ?? []).flatMap((file) => keyWords(read(file)))
    t.ok(words.length > 8, folder)
    t.same(
      words.filter((word) => !new RegExp(`[\`:]${word}[\`:]`).test(told)),
      [],
      folder,
    )
  }
})

t.test('sheets: files that are named exist, and every behaviour is named', async (t) => {
  for (const folder of SHEETS) {
    const text = read(`${folder}/README.md`)
    const named = [
      ...firstCells(text)
        .join(' ')
        .matchAll(/`([a-z/-]+\.ts)`/g),
    ].map(([, name = '']) => name)
    t.ok(named.length > 20, folder)
    t.same(
      named.filter((name) => !existsSync(join(ROOT, folder, name)) && !existsSync(join(ROOT, name))),
      [],
      folder,
    )
  }
  const actors = read('src/actors/README.md')
  const behaviours = readdirSync(join(ROOT, 'src/actors'), { recursive: true, encoding: 'utf8' })
  t.ok(behaviours.length > 50)
  t.same(
    behaviours.filter((name) => name.endsWith('.ts') && !actors.includes(`\`${name}\``)),
    [],
  )
})

/** Rooms whose README is a sheet, a document or a guide, and so may be long. */
const LONG = new Set([
  'bench',
  'cluster',
  'schemas',
  'src/actors',
  'src/content',
  'src/mail/authenticate',
  'src/mail/mime',
])
const README_LINES_MAX = 40
const FILES_WITHOUT = 5

t.test(
  'sheets: a room with more than five files opens with a short README, which names files that exist',
  async (t) => {
    const folders = ['cluster', 'schemas', 'src', 'bench'].flatMap((tree) => [
      tree,
      ...readdirSync(join(ROOT, tree), { recursive: true, encoding: 'utf8' })
        .map((name) => `${tree}/${name}`)
        .filter((path) => statSync(join(ROOT, path)).isDirectory()),
    ])
    const large = folders.filter(
      (folder) => readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.ts')).length > FILES_WITHOUT,
    )
    t.ok(large.length > 30)
    for (const folder of large) {
      const path = `${folder}/README.md`
      if (!existsSync(join(ROOT, path))) {
        t.fail(`${path} is missing: what the room holds, what it may import, which file to read first`)
        continue
      }
      const text = read(path)
      t.ok(LONG.has(folder) || text.trimEnd().split('\n').length <= README_LINES_MAX, `${path} is short`)
      const named = [...text.matchAll(/`([a-z0-9/-]+\.ts)`/g)].map(([, name = '']) => name)
      const exists = (name: string) =>
        [folder, '', 'src', 'cluster', 'schemas'].some((base) => existsSync(join(ROOT, base, name)))
      t.same(
        named.filter((name) => !exists(name)),
        [],
        path,
      )
    }
  },
)
