/**
 * documents - what the documents tell a reader to run is run, as it stands, against a running service
 *
 * Blocks of `sh`, `js`, `python` and `php` of a document run one after another in a directory with its `sendwright` and its
 * `data/first-run.json`; only the ports are others. What a machine like this cannot do (install, publish records) stands in
 * blocks of `text`. An interpreter that is not installed skips its blocks, and says so.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { eventHeaders } from '../src/webhooks/sign-event.ts'
import { ROOT } from './support/machine/root.ts'
import { startTestService } from './support/service/service.ts'

const BLOCK_MS_MAX = 60_000
/** Others have tests of their own for what stands in them. */
const OTHERS: readonly string[] = ['proxy.md', 'content.md']
const RUNNERS: Readonly<Record<string, readonly string[]>> = {
  sh: ['sh', '-eu'],
  js: [process.execPath, '--input-type=module'],
  python: ['python3', '-'],
  php: ['php'],
}

interface Block {
  readonly language: string
  readonly code: string
}

function blocksOf(document: string): Block[] {
  return [...document.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => ({ language, code }))
}

const service = await startTestService()
const { firstRun, dataDir, config } = service
const dir = mkdtempSync(join(tmpdir(), 'sendwright-documents-'))
symlinkSync(dataDir, join(dir, 'data'))
symlinkSync(join(ROOT, 'sendwright'), join(dir, 'sendwright'))
symlinkSync(service.redis.socketPath, join(dataDir, 'redis.sock'))
t.teardown(async () => {
  rmSync(dir, { recursive: true })
  await service.stop()
})

const { NODE_OPTIONS: _loader, ...inherited } = process.env
const env = {
  ...inherited,
  SENDWRIGHT_TOKEN: firstRun.testServer.token,
  ACCOUNT: firstRun.account.accountId,
  LIVE_SERVER: firstRun.liveServer.serverId,
  WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

async function run({ language, code }: Block) {
  const [command = '', ...args] = RUNNERS[language] ?? []
  const child = spawn(command, args, { cwd: dir, env, timeout: BLOCK_MS_MAX })
  child.stdin.end(code.replaceAll('127.0.0.1:8080', `127.0.0.1:${config.httpPort}`))
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, status: status as number | null }
}

const isThere = new Map<string, boolean>()
function hasRunner(language: string): boolean {
  const [command = ''] = RUNNERS[language] ?? []
  const known = isThere.get(language) ?? spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
  isThere.set(language, known)
  return known
}

const names = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)]
for (const name of names.filter((one) => one.endsWith('.md') && !OTHERS.some((other) => one.endsWith(`/${other}`)))) {
  const blocks = blocksOf(readFileSync(join(ROOT, name), 'utf8')).filter(({ language }) => language in RUNNERS)
  if (blocks.length === 0) continue
  t.test(`documents: what ${name} says is run`, async (t) => {
    for (const [at, block] of blocks.entries()) {
      const what = `${block.language} ${at + 1}: ${block.code.slice(0, 80)}`
      if (!hasRunner(block.language)) {
        const skip = `${RUNNERS[block.language]?.[0]} is not installed`
        await t.test(what, { skip }, async () => undefined)
        continue
      }
      const ran = await run(block)
      t.equal(ran.status, 0, `${what}\n${ran.out}\n${ran.err}`)
    }
  })
}

t.test('documents: the check of a signature takes what the service signs, and nothing else', async (t) => {
  const block = blocksOf(readFileSync(join(ROOT, 'docs/webhooks.md'), 'utf8')).find(({ language }) => language === 'js')
  const secret = env.WEBHOOK_SECRET
  const body = JSON.stringify({ event: 'delivered', recipient: 'ädа@example.com' })
  const unixSeconds = Math.floor(Date.now() / 1000)
  const signed = eventHeaders({
    deliveryId: 'd',
    event: 'delivered',
    body,
    secrets: ['whsec_b2xk', secret],
    unixSeconds,
  })
  const late = eventHeaders({
    deliveryId: 'd',
    event: 'delivered',
    body,
    secrets: [secret],
    unixSeconds: unixSeconds - 400,
  })
  const ask = (text: string, headers: Readonly<Record<string, string>>) =>
    `isGenuine(${JSON.stringify(text)}, ${JSON.stringify(signatureOf(headers))}, ${JSON.stringify(secret)})`
  const asked = [ask(body, signed), ask(`${body} `, signed), ask(body, late)].join(', ')
  const { out } = await run({ language: 'js', code: `${block?.code}\nconsole.log(JSON.stringify([${asked}]))` })
  t.same(JSON.parse(out), [true, false, false])
})

function signatureOf(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'service-signature')?.[1] ?? ''
}

t.test('documents: the README sends from four languages, and a block that fails is seen', async (t) => {
  const blocks = blocksOf(readFileSync(join(ROOT, 'README.md'), 'utf8'))
  for (const language of Object.keys(RUNNERS))
    t.ok(
      blocks.some((block) => block.language === language),
      language,
    )
  t.not((await run({ language: 'sh', code: './sendwright sned\ntrue\n' })).status, 0)
  if (hasRunner('python')) t.not((await run({ language: 'python', code: 'raise SystemExit(3)' })).status, 0)
  const found = await service.call('POST /v1/messages/search', { token: firstRun.testServer.token, body: {} })
  t.ok(found.json.messages.length >= (hasRunner('php') && hasRunner('python') ? 6 : 4), 'what was sent has arrived')
})
