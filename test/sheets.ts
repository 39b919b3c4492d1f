/**
 * Every key name that the code makes is in a README, and the sheets of the READMEs name files and keys once, and only
 * those that exist.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from './support/machine/root.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const SHEETS = ['cluster', 'src/actors']
/** Where the names of keys are made that a sheet tells. */
const KEYS: Record<string, string> = { cluster: 'cluster/keyspace.ts', 'src/actors': 'src/state/keys.ts' }

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
    const words = keyWords(read(KEYS[folder] ?? ''))
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
