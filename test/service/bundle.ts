/**
 * bundle - the dashboard's pages as they are made: within their budgets of bytes, without anything of another host.
 *
 * Sizes are those of the wire, packed with gzip.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../support/machine/root.ts'

const KB = 1024
const BUDGETS = { door: 20 * KB, message: 60 * KB, chunk: 15 * KB, styles: 12 * KB, font: 50 * KB }
const dir = mkdtempSync(join(tmpdir(), 'sendwright-bundle-'))
t.teardown(() => rmSync(dir, { recursive: true }))
const { bundle } = (await import(join(ROOT, 'src/service/bundle.mjs'))) as {
  bundle(root: string, into: string): Promise<void>
}
await bundle(ROOT, dir)
const names = readdirSync(dir)
const packed = (name: string) => statSync(join(dir, `${name}.gz`)).size
const read = (name: string) => readFileSync(join(dir, name), 'utf8')
/** What a shell asks for at once. */
const askedBy = (shell: string) => [...read(shell).matchAll(/"\/dashboard\/([^"]+)"/g)].map(([, name = '']) => name)
const scriptsOf = (shell: string) => askedBy(shell).filter((name) => name.endsWith('.js'))
const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0)

t.test('bundle: pages are within their budgets', async (t) => {
  const door = sum(scriptsOf('door.html').map(packed))
  t.ok(door > 1 * KB && door <= BUDGETS.door, `signing in takes ${door} bytes of scripts`)
  const first = scriptsOf('app.html')
  t.ok(first.length <= 4, `a page asks for ${first.length} scripts`)
  const message = sum(first.map(packed))
  t.ok(message > 1 * KB && message <= BUDGETS.message, `the message page takes ${message} bytes of scripts`)
  const others = names.filter((name) => /^app-.*\.js$/.test(name) && !first.includes(name))
  t.ok(others.length >= 10, 'a page is a chunk of its own')
  for (const name of others) t.ok(packed(name) <= BUDGETS.chunk, `${name} takes ${packed(name)} bytes`)
  for (const name of names.filter((one) => one.endsWith('.css'))) t.ok(packed(name) <= BUDGETS.styles, name)
  const [font = ''] = names.filter((name) => name.endsWith('.woff2'))
  t.ok(statSync(join(dir, font)).size <= BUDGETS.font, font)
})

t.test('bundle: every file that a shell names is there, and all texts are packed twice', async (t) => {
  for (const shell of ['app.html', 'door.html', 'desk.html']) {
    const asked = askedBy(shell)
    t.ok(asked.length >= 3, shell)
    for (const name of asked) t.ok(names.includes(name), `${shell} ${name}`)
  }
  for (const name of names.filter((one) => /\.(?:js|css|html)$/.test(one)))
    for (const ending of ['br', 'gz']) t.ok(names.includes(`${name}.${ending}`), `${name}.${ending}`)
})

t.test('bundle: nothing in it is fetched from elsewhere', async (t) => {
  for (const name of names.filter((one) => /\.(?:css|html)$/.test(one)))
    t.notMatch(read(name), /(?:src|href)=["']?(?:https?:)?\/\/|url\(["']?(?:https?:)?\/\/|@import/, name)
  for (const name of names.filter((one) => one.endsWith('.js')))
    t.notMatch(read(name), /\b(?:fetch|import|EventSource)\(\s*["'`]https?:/, name)
})
