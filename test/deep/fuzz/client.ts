/**
 * Real clients with their own habits: curl that asks before it sends, chunks, sends slowly; a client that pipelines.
 */
import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { postEmail } from '../../support/clients/ledger.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'

const HAS_CURL = spawnSync('curl', ['--version']).status === 0
const skip = HAS_CURL ? false : 'curl is not installed'
const CLOSED_MS_MAX = 15_000
const MESSAGE = { from: 'you@simulator.test', to: ['a@example.com'], subject: 'Client' }
const LARGE = { ...MESSAGE, attachments: [{ name: 'a', content: 'A'.repeat(9_000_000) }], text: 'x' }
const MEDIUM = { ...MESSAGE, text: 'x'.repeat(400_000) }

t.jobs = 1
const service = await startTestService()
const dir = mkdtempSync(join(tmpdir(), 'sendwright-client-'))
const { token } = service.firstRun.testServer
const url = `http://127.0.0.1:${service.config.httpPort}/v1/email`
t.teardown(async () => {
  await service.stop()
  rmSync(dir, { recursive: true, force: true })
})

const CALLS: readonly [string, readonly string[], object, number][] = [
  ['9 MB that asks first', ['-H', 'Expect: 100-continue'], LARGE, 200],
  ['9 MB without a question', ['-H', 'Expect:'], LARGE, 200],
  ['9 MB in chunks', ['-H', 'Transfer-Encoding: chunked'], LARGE, 200],
  ['a slow body', ['--limit-rate', '200k'], MEDIUM, 200],
  ['a slow body in chunks', ['--limit-rate', '200k', '-H', 'Transfer-Encoding: chunked'], MEDIUM, 200],
  ['asks first and is refused', ['-H', 'Expect: 100-continue', '-H', 'Authorization: Bearer x'], LARGE, 401],
  ['asks first, too large', ['-H', 'Expect: 100-continue'], { ...LARGE, text: 'x'.repeat(2_000_000) }, 413],
  ['too large, in chunks', ['-H', 'Transfer-Encoding: chunked'], { ...LARGE, text: 'x'.repeat(2_000_000) }, 413],
]

for (const [name, options, body, status] of CALLS) {
  t.test(`client: curl, ${name} [client.curl]`, { skip }, async (t) => {
    const path = join(dir, 'body.json')
    writeFileSync(path, JSON.stringify(body))
    const hasKey = options.some((option) => option.startsWith('Authorization'))
    const { stdout } = await promisify(execFile)('curl', [
      ...['-s', '-S', '-m', '30', '-w', '\\n%{http_code}', '--data-binary', `@${path}`],
      ...['-H', 'Content-Type: application/json', ...(hasKey ? [] : ['-H', `Authorization: Bearer ${token}`])],
      ...options,
      url,
    ])
    const lines = stdout.trimEnd().split('\n')
    t.equal(lines.at(-1), String(status))
    if (status === 413) t.equal(lines[0], '413 Request Entity Too Large')
    else t.ok(JSON.parse(lines[0] ?? '')[status === 200 ? 'messageId' : 'error'])
  })
}

t.test('client: curl uses one connection for many requests, of every kind [client.keep-alive]', { skip }, async (t) => {
  const server = `http://127.0.0.1:${service.config.httpPort}/v1/server`
  const key = ['-H', `Authorization: Bearer ${token}`]
  const common = ['-s', '-o', '/dev/null', '-m', '20', '-w', '%{http_code} %{num_connects}\\n']
  const post = ['-H', 'Content-Type: application/json', '-d', JSON.stringify({ ...MESSAGE, text: 'x' }), url]
  const { stdout } = await promisify(execFile)('curl', [
    ...[...common, ...key, server, '--next', ...common, ...key, ...post],
    ...['--next', ...common, ...key, '-I', server, '--next', ...common, ...key, server],
    ...['--next', ...common, server, '--next', ...common, ...key, ...post],
  ])
  t.same(stdout.trimEnd().split('\n'), ['200 1', '200 0', '200 0', '200 0', '401 0', '200 0'])
})

t.test(
  'client: pipelined sends are answered in order or not at all, and with their keys made once [client.pipeline]',
  async (t) => {
    const bodies = Array.from({ length: 5 }, (_, n) => JSON.stringify({ ...MESSAGE, subject: `Piped ${n}`, text: 'x' }))
    const before = await used()
    const bytes = bodies.map((body, n) => {
      const head = [
        'POST /v1/email HTTP/1.1',
        'Host: x',
        `Authorization: Bearer ${token}`,
        `Idempotency-Key: piped ${n}`,
      ]
      return [...head, 'Content-Type: application/json', `Content-Length: ${body.length}`, '', body].join('\r\n')
    })
    let text = ''
    let isClosed = false
    const socket = connect(service.config.httpPort, '127.0.0.1')
    socket.on('data', (piece) => (text += piece.toString('latin1')))
    socket.on('error', () => undefined)
    socket.on('close', () => (isClosed = true))
    socket.write(bytes.join(''))
    const told = (): string[] => text.match(/"messageId":"[^"]+"/g) ?? []
    await until(() => isClosed || told().length === bodies.length, CLOSED_MS_MAX)
    socket.destroy()
    const ids: string[] = []
    for (const [n, body] of bodies.entries()) {
      const answer = await postEmail({ port: service.config.httpPort, token }, body, `piped ${n}`)
      t.equal(answer?.status, 200)
      ids.push(`"messageId":"${JSON.parse(answer?.body ?? '{}').messageId}"`)
    }
    t.same(told(), ids.slice(0, told().length), 'what was answered was answered in order')
    t.equal((await used()) - before, bodies.length, 'each was made once')
  },
)

async function used(): Promise<number> {
  const { json } = await service.call('GET /v1/server', { token })
  return json.limits.find(({ period }: { period: string }) => period === 'month').used
}
