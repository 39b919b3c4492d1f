/**
 * proxy - the nginx and the Caddy of docs/operate/proxy.md, run with only other names and ports: a request that the
 * HTTP library would answer by itself, or whose answer it would lose, arrives as a plain request or is refused by the
 * proxy. A feed of events passes at once, and ends when its client leaves.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import t, { type Test } from 'tap'
import type { FeedSink } from '../../src/http/respond.ts'
import { freePort } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'
import { makeKeyRing, makeRoutes, startEdge } from '../support/service/edge-listener.ts'

const WAIT_MS = 20_000
/** The wait for an answer whose last character does not mark its end. */
const ANSWER_MS = 5_000
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
const DOCUMENT = readFileSync(join(ROOT, 'docs/operate/proxy.md'), 'utf8')
const ring = makeKeyRing()
const BODY = JSON.stringify({ from: 'a@example.com', to: ['b@example.com'], subject: 'S', text: 'T' })
const HEAD = `Host: a\r\nAuthorization: Bearer ${ring.sk}\r\nContent-Type: application/json\r\n`
const LENGTH = `Content-Length: ${BODY.length}\r\n\r\n${BODY}`
const CHUNKS = `Transfer-Encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n`
const POST = `POST /v1/email HTTP/1.1\r\n${HEAD}`

/** The sent pieces, one by one; the statuses of the answers, and the number of handled messages. */
const CASES: readonly (readonly [name: string, pieces: readonly string[], statuses: RegExp, handled: number])[] = [
  ['a plain request', [POST + LENGTH], /^200$/, 1],
  ['HTTP/1.0', [`POST /v1/email HTTP/1.0\r\n${HEAD}${LENGTH}`], /^200$/, 1],
  ['a request line in two pieces', [POST.slice(0, 21), POST.slice(21) + LENGTH], /^200$/, 1],
  ['an absolute URL', [`POST http://a/v1/email HTTP/1.1\r\n${HEAD}${LENGTH}`], /^200$/, 1],
  ['chunks', [`${POST}${CHUNKS}\r\n`], /^200$/, 1],
  ['chunk extensions', [`${POST}${CHUNKS.replace(`\r\n${BODY}`, `;a=b\r\n${BODY}`)}\r\n`], /^200$/, 1],
  ['fields behind a chunked body, announced', [`${POST}Trailer: X-A\r\n${CHUNKS}X-A: 1\r\n\r\n`], /^200$/, 1],
  ['fields behind a chunked body', [`${POST}${CHUNKS}X-A: 1\r\n\r\n`], /^200$/, 1],
  ['two requests at once', [POST + LENGTH + POST + LENGTH], /^200 200$/, 2],
  ['a head of 10 KiB', [`${POST}X-A: ${'x'.repeat(5_000)}\r\nX-B: ${'x'.repeat(5_000)}\r\n${LENGTH}`], /^200$/, 1],
  ['a head that is too long', [`${POST}${`X-A: ${'x'.repeat(5_000)}\r\n`.repeat(8)}${LENGTH}`], /^4\d\d$/, 0],
  ['too many headers', [`${POST}${'X-A: 1\r\n'.repeat(150)}${LENGTH}`], /^4\d\d$/, 0],
  ['no host', [`POST /v1/email HTTP/1.1\r\n${HEAD.slice(9)}${LENGTH}`], /^4\d\d$/, 0],
  ['two keys', [`${POST}Authorization: Bearer ${ring.unknown}\r\n${LENGTH}`], /^400$/, 0],
  ['a length and chunks', [`${POST}Content-Length: 5\r\n${CHUNKS}\r\n`], /^(400|200)$/, -1],
]

interface Proxy {
  readonly program: string
  /** The exceptions that pass, in place of the case's own values: statuses, and the number of handled messages. */
  readonly otherwise: Readonly<Record<string, readonly [RegExp, number]>>
  readonly language: string
  /** Arguments, for a file of settings in a folder. */
  args(file: string, folder: string): readonly string[]
  settings(example: string, of: { folder: string; port: number; upstream: number }): string
}

const PROXIES: readonly Proxy[] = [
  {
    program: 'nginx',
    otherwise: {},
    language: 'nginx',
    args: (file, folder) => ['-c', file, '-p', folder, '-e', join(folder, 'error.log'), '-g', 'daemon off;'],
    settings: (example, { folder, port, upstream }) => {
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder};`,
      )
      const server = example
        .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
        .replace(/^ *ssl_.*$/gm, '')
        .replace('127.0.0.1:8080', `127.0.0.1:${upstream}`)
      return `pid ${folder}/pid;\nworker_processes 1;\nevents {}\nhttp {\naccess_log off;\n${temporary.join('\n')}\n${server}}\n`
    },
  },
  {
    program: 'caddy',
    otherwise: { 'fields behind a chunked body, announced': [/^502$/, 0] },
    language: 'caddy',
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    settings: (example, { port, upstream }) =>
      example
        .replace('{', '{\n\tadmin off\n\tauto_https off')
        .replace('api.example.com', `http://:${port}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${upstream}`),
  },
]

function exampleOf(language: string): string {
  const example = new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(DOCUMENT)?.[1]
  if (example === undefined) throw new Error(`No example for ${language}`)
  return example
}

async function startProxy(t: Test, proxy: Proxy, path: string, upstream: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-proxy-'))
  const port = await freePort()
  const file = join(folder, 'settings')
  writeFileSync(file, proxy.settings(exampleOf(proxy.language), { folder, port, upstream }))
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder }
  const child: ChildProcess = spawn(path, proxy.args(file, folder), { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (piece) => {
    said += piece
  })
  t.teardown(async () => {
    child.kill('SIGTERM')
    await until(() => child.exitCode !== null || child.signalCode !== null, WAIT_MS)
    rmSync(folder, { recursive: true, force: true })
  })
  await until(async () => {
    if (child.exitCode !== null) throw new Error(said)
    return (await talk(port, [POST + LENGTH], 1)).startsWith('HTTP/1.1 200')
  }, WAIT_MS)
  return port
}

/** Sends each piece for itself, and reads until `answers` have come, the connection ends or nothing more does. */
function talk(port: number, pieces: readonly string[], answers: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    let text = ''
    const left = [...pieces]
    const next = () => {
      const piece = left.shift()
      if (piece !== undefined) socket.write(piece, () => setTimeout(next, 50))
    }
    const end = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(text)
    }
    const timer = setTimeout(end, ANSWER_MS)
    socket.on('connect', next)
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (statusesOf(text).length >= answers && /(}|400 Bad Request)$/.test(text)) end()
    })
    socket.on('error', end)
    socket.on('close', end)
  })
}

/** Requests the feed of events. Returns the received data, and a function that ends it. */
async function listenTo(port: number): Promise<{ text: () => string; leave: () => void }> {
  const headers = { authorization: `Bearer ${ring.sk}`, accept: 'text/event-stream', 'accept-encoding': 'gzip' }
  const asked = request({ port, path: '/v1/events', headers }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  let said = ''
  answer.on('data', (piece) => {
    said += piece
  })
  answer.on('error', () => undefined)
  return { text: () => said, leave: () => asked.destroy() }
}

function statusesOf(text: string): string[] {
  return Array.from(text.matchAll(/HTTP\/1\.[01] (\d{3}) /g), ([, status]) => status as string)
}

for (const proxy of PROXIES) {
  const path = FOLDERS.map((folder) => join(folder, proxy.program)).find((one) => existsSync(one)) ?? null
  const works = path !== null && spawnSync(path, [proxy.program === 'nginx' ? '-v' : 'version']).status === 0
  t.test(
    `proxy: ${proxy.program} as documented [request.raw]`,
    { skip: works ? false : 'not installed' },
    async (t) => {
      let handled = 0
      const feeds: FeedSink[] = []
      let hungUp = 0
      const listened = (sink: FeedSink) => {
        feeds.push(sink)
        return () => {
          hungUp += 1
        }
      }
      const routes = makeRoutes('public', async ({ route }) => {
        if (route.name === 'listenToEvents') return { start: listened }
        handled += 1
        // Long enough for a second request to arrive meanwhile.
        await new Promise((resolve) => setTimeout(resolve, 20))
        return { status: 200, json: {} }
      })
      const edge = await startEdge(ring, { routes })
      t.teardown(() => edge.close())
      const port = await startProxy(t, proxy, path as string, edge.port)
      for (const [name, pieces, ...usual] of CASES) {
        const [statuses, wanted] = proxy.otherwise[name] ?? usual
        handled = 0
        const text = await talk(port, pieces, wanted === 2 ? 2 : 1)
        t.match(statusesOf(text).join(' '), statuses, `${name}: ${text.slice(0, 200)}`)
        if (wanted >= 0) t.equal(handled, wanted, `${name}: handled`)
        t.notMatch(text, /<i>uWebSockets/, name)
      }
      const feed = await listenTo(port)
      for (const text of ['data: 1\n\n', ':\n\n', 'data: 2\n\n']) {
        await until(() => feeds.length === 1, WAIT_MS)
        feeds[0]?.send(text)
        // Nothing else is sent, so data that a proxy buffers would not arrive.
        await until(() => feed.text().endsWith(text), WAIT_MS)
      }
      t.equal(hungUp, 0, 'a feed stays open')
      feed.leave()
      await until(() => hungUp === 1, WAIT_MS)
      t.same(edge.faults, [])
    },
  )
}
