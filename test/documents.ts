/**
 * documents - what the documents tell a reader to run is run, as it stands, against a running service
 *
 * Blocks of `sh`, `js`, `python` and `php` of a document run one after another in a directory with its `sendwright` and
 * its `data/first-run.json`, those of several documents side by side; only the ports are others. Blocks of `text` hold
 * what a machine like this has to be prepared for: what starts a service is run by `go-live.ts`, what needs records by
 * a test here. An interpreter that is not installed skips its blocks, and says so. No block is left that nobody runs.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { parseSiteLimits } from '../src/mail/site.ts'
import { eventHeaders } from '../src/webhooks/sign-event.ts'
import { type Block, blocksOf, DOCUMENTS, startsOf } from './support/documents/blocks.ts'
import { sendersOf } from './support/documents/senders.ts'
import { ROOT } from './support/machine/root.ts'
import { startZone } from './support/peers/zone.ts'
import { startTestService } from './support/service/service.ts'

const BLOCK_MS_MAX = 60_000
const AT_ONCE = 3
const RUNNERS: Readonly<Record<string, readonly string[]>> = {
  sh: ['sh', '-eu'],
  js: [process.execPath, '--input-type=module'],
  python: ['python3', '-'],
  php: ['php'],
  ruby: ['ruby'],
  // The compiler reads files alone.
  go: ['sh', '-c', 'd=$(mktemp -d) && cat >$d/main.go && go run $d/main.go && rm -r $d'],
}
/** Whose blocks of `bash` `npm run trial` runs, all of them. */
const TRIED: readonly string[] = ['install', 'upgrade', 'backup', 'many-processes'].map(
  (name) => `docs/operate/${name}.md`,
)
/**
 * Whose blocks another test runs (`http/proxy.ts`, `cluster-guide.ts`) or makes (`contract.ts`); of other pages
 * `deep/ci-guide.ts` and `deep/cli/mcp/mcp.ts` run those of other languages.
 */
const OTHERS: readonly string[] = [
  'docs/operate/proxy.md',
  'docs/operate/cluster.md',
  'docs/reference/api.md',
  'docs/reference/cli.md',
  'docs/guides/webhook-events.md',
]

/** Their blocks of `shell` need a public name, systemd, or a program of others that no test has: they are not run. */
const SHOWN: readonly string[] = [
  'docs/operate/backup.md',
  'docs/operate/certificates.md',
  'docs/operate/monitoring.md',
  'docs/operate/upgrade.md',
]

const { makeClientPackage } = (await import(join(ROOT, 'src/client/make.mjs'))) as {
  makeClientPackage(root: string, into: string): Promise<void>
}
const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server, CONTENT_STORE: 'file' })
const { firstRun, dataDir, config } = service
const dir = mkdtempSync(join(tmpdir(), 'sendwright-documents-'))
symlinkSync(dataDir, join(dir, 'data'))
symlinkSync(join(ROOT, 'sendwright'), join(dir, 'sendwright'))
const packages = join(dir, 'node_modules')
await makeClientPackage(ROOT, join(packages, 'sendwright', 'build', 'client'))
symlinkSync(join(ROOT, 'package.json'), join(packages, 'sendwright', 'package.json'))
symlinkSync(join(ROOT, 'node_modules', 'nodemailer'), join(packages, 'nodemailer'))
symlinkSync(service.redis.socketPath, join(dataDir, 'redis.sock'))
t.teardown(async () => {
  rmSync(dir, { recursive: true })
  await service.stop()
  await zone.close()
})

const { NODE_OPTIONS: _loader, ...inherited } = process.env
const env = {
  ...inherited,
  SENDWRIGHT_TOKEN: firstRun.testServer.token,
  MX_PORT: String(config.mxPort),
  ACCOUNT: firstRun.account.accountId,
  LIVE_SERVER: firstRun.liveServer.serverId,
  WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

/** What a block has in place of the ports of a default installation. */
function withOwnPorts(code: string): string {
  return code
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${config.httpPort}`)
    .replaceAll('127.0.0.1:8081', `127.0.0.1:${config.operatorPort}`)
    .replaceAll('2587', String(config.submissionPort))
}

async function run({ language, code }: Pick<Block, 'language' | 'code'>, changes: NodeJS.ProcessEnv = {}) {
  const command = RUNNERS[language] ?? []
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` says; env(1) takes it out.
  const child = spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', ...command], {
    cwd: dir,
    env: { ...env, ...changes },
    timeout: BLOCK_MS_MAX,
  })
  child.stdin.end(withOwnPorts(code))
  const [out, err, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { out, err, status: status as number | null }
}

const isThere = new Map<string, boolean>()
function hasRunner(language: string): boolean {
  const [first = ''] = RUNNERS[language] ?? []
  return isInstalled(language === 'go' ? 'go' : first)
}

function isInstalled(command: string): boolean {
  const known = isThere.get(command) ?? spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
  isThere.set(command, known)
  return known
}

t.jobs = AT_ONCE
for (const name of DOCUMENTS.filter((one) => !OTHERS.includes(one))) {
  const blocks = blocksOf(name).filter(({ language }) => language in RUNNERS)
  if (blocks.length === 0) continue
  t.test(`documents: what ${name} says is run`, { buffered: true }, async (t) => {
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

/** Of a block: who runs it; null for nobody. */
function runnerOf({ document, language, code }: Block): string | null {
  if (OTHERS.includes(document) || language in RUNNERS) return language
  if (document === 'docs/guides/assistant.md') return 'mcp'
  if (document === 'docs/operate/redis.md' && language === 'text') return 'redis-user'
  if (['yaml', 'ts'].includes(language)) return document === 'docs/start/ci.md' ? 'ci-guide' : null
  if (language === 'shell') return SHOWN.includes(document) ? 'shown' : null
  if (language === 'json') return code.includes('messagesPerSecond') ? 'site limits' : null
  // What root types on a server is typed there: on a machine of its own.
  if (TRIED.includes(document) && ['bash', 'nginx'].includes(language)) return 'trial'
  if (language !== 'text') return null
  const lines = code.trimEnd().split('\n')
  if (startsOf(code).length === lines.filter((line) => line !== 'npm install').length) return 'go-live'
  return lines.every((line) => line.startsWith('./sendwright domain ')) ? 'domain' : null
}

t.test('documents: no block is left that nobody runs', async (t) => {
  for (const block of DOCUMENTS.flatMap(blocksOf))
    t.ok(runnerOf(block), `${block.document}: ${block.language} ${block.code}`)
  t.equal(runnerOf({ document: 'README.md', language: 'text', code: 'npm start\nnpm run new\n' }), null)
})

t.test('documents: the domain that README adds is verified once the records that it prints are there', async (t) => {
  const block = DOCUMENTS.flatMap(blocksOf).find((one) => runnerOf(one) === 'domain')
  const [add = '', verify = '', ...rest] = block?.code.trimEnd().split('\n') ?? []
  t.same(rest, [])
  const added = await run({ language: 'sh', code: add })
  const records = [...added.out.matchAll(/^(CNAME|TXT) +(\S+) +(\S.*?)(?: {2,}.*)?$/gm)]
  t.equal(records.length, 4, added.out + added.err)
  t.not((await run({ language: 'sh', code: verify })).status, 0, 'not before')
  for (const [, type, name = '', value = ''] of records)
    zone.set(name, type === 'CNAME' ? { type, domain: value } : { type: 'TXT', data: value })
  const verified = await run({ language: 'sh', code: verify })
  t.equal(verified.status, 0, verified.out + verified.err)
})

t.test('documents: each sender of mail sends with its settings for this machine', async (t) => {
  const senders = sendersOf('docs/start/smtp.md')
  t.ok(senders.length >= 5)
  for (const { name, needs, language, code } of senders) {
    const missing = needs.filter((command) => !isInstalled(command))
    const skip = missing.length > 0 && `${missing.join(', ')}: not installed`
    await t.test(name, { skip }, async (t) => {
      const ran = await run({ language, code })
      t.equal(ran.status, 0, ran.out + ran.err)
      const found = await service.call('POST /v1/messages/search', { token: firstRun.testServer.token, body: {} })
      t.ok(found.json.messages.some((one: { subject: string }) => one.subject === name))
    })
  }
})

t.test('documents: the limits of sites that they show are taken', async (t) => {
  for (const { code } of DOCUMENTS.flatMap(blocksOf).filter((one) => runnerOf(one) === 'site limits')) {
    t.type(parseSiteLimits(code), 'object')
  }
})

t.test('documents: the check of a signature takes what the service signs, and nothing else', async (t) => {
  const blocks = blocksOf('docs/guides/webhooks.md')
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
  // Written into each language as base64, so that no language's quoting matters.
  const of = (text: string) => Buffer.from(text).toString('base64')
  const cases = [[body, signed] as const, [`${body} `, signed] as const, [body, late] as const]
  for (const [language, check] of Object.entries(SIGNATURE_CHECKS)) {
    const block = blocks.find((one) => one.language === language)
    if (!hasRunner(language)) continue
    const printed = await Promise.all(
      cases.map(async ([text, headers]) => {
        const { out, err } = await run({
          language,
          code: check(block?.code ?? '', of(text), signatureOf(headers), secret),
        })
        return out.trim() || err
      }),
    )
    t.same(printed, ['yes', 'no', 'no'], language)
  }
})

/** A program that prints whether a signature holds. In: the documented function, the body in base64, header, secret. */
const SIGNATURE_CHECKS: Readonly<
  Record<string, (code: string, body: string, header: string, secret: string) => string>
> = {
  js: (code, body, header, secret) =>
    `${code}\nconsole.log(isGenuine(Buffer.from('${body}', 'base64'), '${header}', '${secret}') ? 'yes' : 'no')`,
  python: (code, body, header, secret) =>
    `${code}\nimport base64\nprint("yes" if is_genuine(base64.b64decode("${body}"), "${header}", "${secret}") else "no")`,
  php: (code, body, header, secret) =>
    `${code}\necho isGenuine(base64_decode('${body}'), '${header}', '${secret}') ? 'yes' : 'no';`,
  ruby: (code, body, header, secret) =>
    `${code}\nputs genuine?('${body}'.unpack1('m'), '${header}', '${secret}') ? 'yes' : 'no'`,
  go: (code, body, header, secret) =>
    code
      .replace('"crypto/hmac"', '"crypto/hmac"\n\t"encoding/base64"\n\t"fmt"')
      .replace(
        'func main() {}',
        `func main() {\n\tbody, _ := base64.StdEncoding.DecodeString("${body}")\n\tif isGenuine(body, "${header}", "${secret}") {\n\t\tfmt.Println("yes")\n\t} else {\n\t\tfmt.Println("no")\n\t}\n}`,
      ),
}

function signatureOf(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'service-signature')?.[1] ?? ''
}

t.test('documents: the first email is sent from each language, and a block that fails is seen', async (t) => {
  const blocks = blocksOf('docs/start/first-email.md')
  for (const language of Object.keys(RUNNERS))
    t.ok(
      blocks.some((block) => block.language === language),
      language,
    )
  for (const block of blocks.filter(({ language, code }) => hasRunner(language) && code.includes('/v1/email'))) {
    const refused = await run(block, { SENDWRIGHT_TOKEN: 'sk_test_wrong' })
    t.not(refused.status, 0, block.language)
    t.match(refused.out + refused.err, /unauthorized|key/i, `${block.language}: the refusal is printed`)
  }
  t.not((await run({ language: 'sh', code: './sendwright sned\ntrue\n' })).status, 0)
  if (hasRunner('python')) t.not((await run({ language: 'python', code: 'raise SystemExit(3)' })).status, 0)
  const found = await service.call('POST /v1/messages/search', { token: firstRun.testServer.token, body: {} })
  t.ok(found.json.messages.length >= (hasRunner('php') && hasRunner('python') ? 6 : 4), 'what was sent has arrived')
})
