/**
 * package - the archive of the client: small, nothing of the service in it, compiled by TypeScript 5 and 7 under
 * `--strict` without any types around it, and run by each version of Node.js that it names, by Deno and by Bun.
 *
 * Older compilers and other runtimes come from npm, once. Without the registry those parts are skipped.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { startTestService } from '../../support/service/service.ts'

const ARCHIVE_BYTES_MAX = 25 * 1024
const SCRIPT_BYTES_MAX = 25 * 1024
const CACHE = join(ROOT, 'node_modules', '.cache', 'client-package')
const NODES = ['18', '20', '22', '24', '26']
const MS_MAX = 300_000
const run = promisify(execFile)
// The runner's loader is not the children's.
const { NODE_OPTIONS: _loader, ...env } = process.env

/** Takes the service through the calls that depend most on the runtime. */
const PROGRAM = `
import { Sendwright, verifyWebhook, ValidationError } from 'sendwright/client'
import { createHmac } from 'node:crypto'
const client = new Sendwright({ key: process.env.KEY, url: process.env.URL_OF_API })
const feed = client.events.follow()
const first = feed.next()
let sent
const timer = setInterval(async () => {
  sent = await client.send({ from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'Hi', text: 'x', tag: 'node' })
}, 200)
const { value: event } = await first
clearInterval(timer)
await feed.return()
let count = 0
for await (const one of client.messages.iterate({ tag: 'node', limit: 1 })) count += one.tag === 'node' ? 1 : 0
const refused = await client.send({ from: 'x', to: [], subject: '' }).catch((error) => error)
const t = Math.floor(Date.now() / 1000)
const v1 = createHmac('sha256', 'whsec_x').update(t + '.{"event":"bounced"}').digest('hex')
const verified = await verifyWebhook('{"event":"bounced"}', { 'service-signature': 't=' + t + ',v1=' + v1 }, 'whsec_x')
const names = [event.event, count > 0, refused instanceof ValidationError, refused.name, verified.event]
console.log(JSON.stringify(names))
process.exit(0)
`

const TYPED = `
import { Sendwright, type Event, type Message } from 'sendwright/client'
import { sendwrightTransport } from 'sendwright/nodemailer'
const client = new Sendwright({ key: 'sk_test_x' })
const { messageId } = await client.send({ from: 'a@b.example', to: ['c@d.example'], subject: 'x', text: 'y' } as const)
const message: Message = await client.messages.read(messageId)
for await (const event of client.events.iterate()) if (event.event === 'bounced') event.details.hard satisfies boolean
const told: Event = await client.webhooks.verify('x', { 'service-signature': 't=1' }, 'whsec_')
export const all = [message.html satisfies string | null, told, sendwrightTransport({ key: 'x' }).name]
`
const WRONG = [
  `import { Sendwright } from 'sendwright/client'; await new Sendwright({ key: '' }).send({ to: [], subject: '' })`,
  `import { Sendwright } from 'sendwright/client'; await new Sendwright({}).readServer()`,
  `import type { Message } from 'sendwright/client'; export const one: Message['text'] = 1`,
]

const folder = mkdtempSync(join(tmpdir(), 'sendwright-client-'))
const application = join(folder, 'application')
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
await run(process.execPath, [join(ROOT, 'src/client/pack.mjs'), folder], { cwd: folder, env })
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const archive = join(folder, `sendwright-client-${version}.tgz`)
mkdirSync(join(application, 'node_modules', 'sendwright'), { recursive: true })
await run('tar', ['-xzf', archive, '-C', join(application, 'node_modules', 'sendwright'), '--strip-components=1'])
writeFileSync(join(application, 'package.json'), '{"type": "module"}')

/** Installs a package once; null if the registry does not answer. */
async function fetched(name: string, spec: string): Promise<string | null> {
  const place = join(CACHE, name.replace(/\W+/g, '-'))
  if (existsSync(join(place, 'installed'))) return place
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'package.json'), '{"private": true}')
  const options = { cwd: place, env, timeout: MS_MAX }
  try {
    await run('npm', ['install', '--no-audit', '--no-fund', spec], options)
  } catch (error) {
    const isThere = await run('npm', ['ping'], options).then(
      () => true,
      () => false,
    )
    if (isThere) throw error
    return null
  }
  writeFileSync(join(place, 'installed'), '')
  return place
}

t.test('client: the archive is small and holds the client alone [client.package]', async (t) => {
  const { stdout } = await run('tar', ['-tzf', archive])
  const files = stdout.trim().split('\n').sort()
  const names = ['build/client/nodemailer.d.ts', 'build/client/nodemailer.js', 'build/client/sendwright.d.ts']
  const all = ['LICENSE', 'README.md', ...names, 'build/client/sendwright.js', 'package.json']
  t.same(files, all.map((name) => `package/${name}`).sort())
  t.ok(statSync(archive).size <= ARCHIVE_BYTES_MAX, `${statSync(archive).size} bytes`)
  const script = readFileSync(join(application, 'node_modules/sendwright/build/client/sendwright.js'), 'utf8')
  t.ok(script.length <= SCRIPT_BYTES_MAX, `${script.length} bytes`)
  t.notMatch(script, /^import|\brequire\(/m)
  const manifest = JSON.parse(readFileSync(join(application, 'node_modules/sendwright/package.json'), 'utf8'))
  t.equal(manifest.dependencies, undefined)
})

t.test('client: its declarations compile alone, and refuse wrong calls [client.package]', async (t) => {
  const old = await fetched('typescript-5', 'typescript@5.9.3')
  const compilers: [string, string][] = [['7', join(ROOT, 'node_modules/typescript')]]
  if (old === null) t.pass('TypeScript 5', { skip: 'the registry of npm does not answer' })
  else compilers.push(['5', join(old, 'node_modules/typescript')])
  writeFileSync(join(application, 'typed.ts'), TYPED)
  WRONG.forEach((text, at) => void writeFileSync(join(application, `wrong${at}.ts`), text))
  for (const [name, place] of compilers) {
    const { bin } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
    const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false']
    const args = [join(place, bin.tsc), ...strict, '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022']
    const compile = (...files: string[]) =>
      run(process.execPath, [...args, ...files], { cwd: application, env, timeout: MS_MAX }).then(
        () => '',
        ({ stdout }) => String(stdout),
      )
    t.equal(await compile('typed.ts'), '', `TypeScript ${name}`)
    const complaints = await compile(...WRONG.map((_, at) => `wrong${at}.ts`))
    for (const at of WRONG.keys()) t.match(complaints, `wrong${at}.ts`, `TypeScript ${name}: ${WRONG[at]}`)
  }
})

t.test('client: it runs on each version of Node.js, on Deno and on Bun [client.package]', async (t) => {
  const service = await startTestService()
  t.teardown(() => service.stop())
  writeFileSync(join(application, 'program.mjs'), PROGRAM)
  const own = { KEY: service.firstRun.testServer.token, URL_OF_API: `http://127.0.0.1:${service.config.httpPort}` }
  const programs: [string, string | null][] = [[process.version, process.execPath]]
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64'
  if (process.platform === 'linux')
    for (const node of NODES) {
      const place = await fetched(`node-${node}`, `node-linux-${architecture}@${node}`)
      programs.push([node, place && join(place, 'node_modules', `node-linux-${architecture}`, 'bin', 'node')])
    }
  for (const name of ['deno', 'bun']) {
    const place = await fetched(name, name)
    // Their packages fetch the program when it is first run, or when they are installed.
    programs.push([name, place && join(place, 'node_modules', '.bin', name)])
  }
  for (const [name, program] of programs) {
    if (program === null) {
      t.pass(name, { skip: 'the registry of npm does not answer' })
      continue
    }
    const options = { cwd: application, env: { ...env, ...own }, timeout: MS_MAX }
    const args = name === 'deno' ? ['run', '--allow-all', 'program.mjs'] : ['program.mjs']
    const { stdout } = await run(program, args, options)
    t.same(JSON.parse(stdout), ['delivered', true, true, 'ValidationError', 'bounced'], name)
  }
})
