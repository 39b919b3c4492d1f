/** docs-page - the documentation site over HTTP: pages, files, encodings, the policy, and DOCS=off. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import t from 'tap'
import type { EdgeRequest } from '../../../src/http/request.ts'
import type { Reply } from '../../../src/http/respond.ts'
import { makeDocs, readSite, type Site } from '../../../src/routes/pages/docs-page.ts'
import { startTestService } from '../../support/service/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'sendwright-docs-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const HASH = 'sha256-abc='
const FILES: Readonly<Record<string, string>> = {
  'index.html': 'front',
  '404.html': 'no page',
  'guides/sending.html': 'sending',
  'http-api/index.html': 'reference',
  'assets/app.X1.js': 'script',
  'deploy/compose.yaml': 'services:',
  'llms.txt': 'list',
  'inline-scripts.json': JSON.stringify([HASH]),
}
for (const name of ['guides', 'http-api', 'assets', 'deploy']) mkdirSync(join(folder, name))
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
writeFileSync(join(folder, 'guides/sending.html.br'), brotliCompressSync('sending'))

const site = readSite(folder) as Site
const ask = async (path: string | undefined, acceptEncoding = ''): Promise<Reply> => {
  const params: Record<string, string> = path === undefined ? {} : { '*': path }
  return (await makeDocs(site)({ params, acceptEncoding } as unknown as EdgeRequest)) as Reply
}

t.test('docs-page: pages with and without their ending, folders and files [docs.page]', async (t) => {
  const cases: [path: string | undefined, status: number, text: string, type: RegExp][] = [
    [undefined, 200, 'front', /html/],
    ['/docs/', 200, 'front', /html/],
    ['/docs/guides/sending', 200, 'sending', /html/],
    ['/docs/guides/sending/', 200, 'sending', /html/],
    ['/docs/guides/sending.html', 200, 'sending', /html/],
    ['/docs/http-api/', 200, 'reference', /html/],
    ['/docs/assets/app.X1.js', 200, 'script', /javascript/],
    ['/docs/deploy/compose.yaml', 200, 'services:', /plain/],
    ['/docs/llms.txt', 200, 'list', /plain/],
    ['/docs/guides', 404, 'no page', /html/],
    ['/docs/inline-scripts.json', 404, 'no page', /html/],
    ['/docs/../package.json', 404, 'no page', /html/],
    ['/docs/guides/sending.html.br', 404, 'no page', /html/],
  ]
  for (const [path, status, text, type] of cases) {
    const answer = await ask(path)
    t.same([answer.status, Buffer.from(answer.bytes ?? '').toString()], [status, text], String(path))
    t.match(answer.contentType, type)
  }
  t.match((await ask('/docs/assets/app.X1.js')).headers?.['Cache-Control'], /immutable/)
  t.equal((await ask('/docs/guides/sending')).headers?.['Cache-Control'], 'no-cache')
  const packed = await ask('/docs/guides/sending', 'gzip, br')
  t.match(packed.headers, { 'Content-Encoding': 'br', Vary: 'Accept-Encoding' })
})

t.test('docs-page: a site that was not built, or was removed since the start [docs.page]', async (t) => {
  t.equal(readSite(join(folder, 'nothing')), null)
  t.match(await makeDocs(null)({} as EdgeRequest), { status: 503, text: /npm run build/ })
  rmSync(join(folder, 'llms.txt'))
  t.match(await ask('/docs/llms.txt'), { status: 404, json: { error: 'not_found' } })
})

t.test('docs-page: scripts run as files or by their hash alone [docs.policy]', async (t) => {
  const { headers = {} } = await ask('/docs/')
  const policy = headers['Content-Security-Policy'] ?? ''
  for (const part of [
    "default-src 'none'",
    `script-src 'self' '${HASH}';`,
    "connect-src 'self'",
    "frame-ancestors 'none'",
  ])
    t.ok(policy.includes(part), part)
  t.notMatch(policy, /script-src[^;]*unsafe/)
  t.match(headers, { 'X-Content-Type-Options': 'nosniff', 'Referrer-Policy': 'no-referrer' })
  t.notOk(Object.keys(headers).includes('Set-Cookie'))
})

t.test('docs-page: DOCS=off removes the paths [docs.page]', async (t) => {
  const service = await startTestService({ DOCS: 'off' })
  t.teardown(() => service.stop())
  for (const path of ['/docs', '/docs/', '/docs/start/quick-start'])
    t.match(
      await service.call(`GET ${path}`, { token: service.firstRun.testServer.token }),
      { status: 404, json: { error: 'not_found' } },
      path,
    )
})
