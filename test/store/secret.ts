/** secret - the source of the installation's secret, the choice between two, and the report if none is right. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { findSecret } from '../../src/store/secret.ts'
import { spawnNode } from '../support/machine/node.ts'
import { ROOT } from '../support/machine/root.ts'

const folders: string[] = []
t.teardown(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

function makeFolder(files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-secret-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), `${text}\n`)
  return folder
}

const textOf = (folder: string, name: string): string => readFileSync(join(folder, name), 'utf8').trim()

interface Asked {
  readonly secretKey?: string
  readonly confirmed?: string
  readonly mayMake?: boolean
  readonly previous?: string
  readonly former?: string
}

/** The tests' store keeps the upper case of a secret. */
function find(dataDir: string, { secretKey, confirmed, mayMake = true, previous, former }: Asked = {}): string {
  const checkOf = (secret: string): string => secret.toUpperCase()
  return findSecret({
    dataDir,
    secretKey: secretKey ?? null,
    secretKeyPrevious: previous ?? null,
    confirmed: confirmed ?? null,
    former: former ?? null,
    checkOf,
    mayMake,
  })
}

t.test('secret: created once, for its owner only, and not at all if one is set', async (t) => {
  const dataDir = join(makeFolder(), 'data')
  t.equal(find(dataDir, { secretKey: 'set' }), 'set')
  t.equal(existsSync(dataDir), false)
  const secret = find(dataDir)
  t.ok(secret.length >= 32)
  t.equal(find(dataDir), secret)
  t.equal(statSync(join(dataDir, 'secret-key')).mode & 0o777, 0o600)
  t.equal(statSync(dataDir).mode & 0o777, 0o700)
})

t.test('secret: of two files the one that the store confirms is used, and none is removed', async (t) => {
  const both = { 'secret-key': 'one', 'cluster-secret': 'two' }
  const second = makeFolder(both)
  t.equal(find(second, { confirmed: 'TWO' }), 'two')
  t.equal(textOf(second, 'secret-key'), 'two')
  t.same(readdirSync(second).sort(), ['cluster-secret.unused', 'secret-key', 'secret-key.unused'])
  t.equal(textOf(second, 'secret-key.unused'), 'one')
  t.equal(find(second, { confirmed: 'TWO' }), 'two', 'and again')
  const first = makeFolder(both)
  t.equal(find(first, { confirmed: 'ONE' }), 'one')
  t.same(readdirSync(first).sort(), ['cluster-secret.unused', 'secret-key'])
  const former = makeFolder({ 'cluster-secret': 'two' })
  t.equal(find(former, { confirmed: 'TWO', mayMake: false }), 'two')
  t.equal(textOf(former, 'secret-key'), 'two')
})

t.test('secret: missing is distinguished from wrong, and nothing is created or changed', async (t) => {
  const empty = makeFolder()
  t.throws(
    () => find(empty, { confirmed: 'ONE' }),
    /secret of this store is missing: restore .*secret-key from a backup/,
  )
  t.throws(() => find(empty, { mayMake: false }), /SECRET_KEY is required with REDIS_URL/)
  t.same(readdirSync(empty), [])
  const wrong = makeFolder({ 'secret-key': 'other' })
  t.throws(() => find(wrong, { confirmed: 'ONE' }), /secret in .*secret-key does not match this store/)
  t.throws(() => find(wrong, { confirmed: 'ONE', secretKey: 'set' }), /^SECRET_KEY does not match this store/)
  t.same(readdirSync(wrong), ['secret-key'])
})

t.test('secret: several processes that start at once on one directory take one secret', async (t) => {
  const dataDir = makeFolder()
  const start = join(makeFolder(), 'start')
  // All wait for the same moment, so that none finds the file of another.
  const code = `
    const { existsSync } = await import('node:fs')
    const { findSecret } = await import(${JSON.stringify(join(ROOT, 'build/src/store/secret.js'))})
    console.log('ready')
    while (!existsSync(${JSON.stringify(start)}));
    const checkOf = (secret) => secret
    console.log(findSecret({ dataDir: ${JSON.stringify(dataDir)}, secretKey: null, secretKeyPrevious: null, confirmed: null, former: null, checkOf, mayMake: true }))
  `
  const children = Array.from({ length: 4 }, () => spawnNode(['--input-type=module', '-e', code]))
  const said = children.map((child) => createInterface({ input: child.stdout })[Symbol.asyncIterator]())
  for (const lines of said) t.equal((await lines.next()).value, 'ready')
  writeFileSync(start, '')
  const secrets = await Promise.all(said.map(async (lines) => (await lines.next()).value))
  t.same(new Set(secrets), new Set([readFileSync(join(dataDir, 'secret-key'), 'utf8').trim()]))
  t.same(readdirSync(dataDir), ['secret-key'], 'and leave nothing else')
})
