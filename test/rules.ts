/** Every rule of the runtime's README names its tests, and each of them exists. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BUGS } from './simulation/bugs/bugs.ts'
import { ROOT } from './support/machine/root.ts'
import { CRASH_POINTS } from './support/store/crash-shard.ts'

const README = readFileSync(join(ROOT, 'cluster/README.md'), 'utf8')
const TABLE = README.slice(README.indexOf('<!-- rules:begin -->'), README.indexOf('<!-- rules:end -->'))
const FOLDERS = ['test/cluster', 'test', 'test/deep/simulation', 'test/deep/cluster', 'test/deep']
const GIVEN = [...BUGS.map(({ name }) => name), ...CRASH_POINTS]

t.test('rules: each is proven by tests that exist', async (t) => {
  const rows = TABLE.split('\n').filter(
    (line) => line.startsWith('| ') && !line.startsWith('| Rule') && !line.startsWith('| ---'),
  )
  t.ok(rows.length > 30, 'the table is there')
  for (const row of rows) {
    const [, rule = '', proof = ''] = row.split('|').map((cell) => cell.trim())
    const proofs = [...proof.matchAll(/`([^`]+)`: ([^`]+?)(?=; `|$)/g)]
    t.ok(proofs.length > 0, rule)
    for (const [, file = '', title = ''] of proofs) t.ok(holds(file, title), `${file}: ${title}`)
  }
})

/** Whether a test file has a title: as it stands, or made of a name that the file's table gives. */
function holds(file: string, title: string): boolean {
  const path = FOLDERS.map((folder) => join(ROOT, folder, `${file}.ts`)).find((one) => existsSync(one))
  if (path === undefined) return false
  const text = readFileSync(path, 'utf8')
  const isGiven = GIVEN.some((name) => title === name || title === `${name} is seen`)
  return text.includes(title) || (isGiven && /\$\{(bug\.name|point)\}/.test(text))
}
