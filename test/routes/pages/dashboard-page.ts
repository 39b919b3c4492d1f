/** dashboard-page - the files of the dashboard over HTTP: shells, encodings, headers, and paths that are no page. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import type { EdgeRequest } from '../../../src/http/request.ts'
import type { Reply } from '../../../src/http/respond.ts'
import { makeDashboard, readPages } from '../../../src/routes/pages/dashboard-page.ts'
import { startTestService } from '../../support/service/service.ts'

const dir = mkdtempSync(join(tmpdir(), 'sendwright-pages-'))
const folder = join(dir, 'dashboard')
t.teardown(() => rmSync(dir, { recursive: true }))

mkdirSync(folder)
for (const name of ['app.html', 'door.html', 'desk.html']) writeFileSync(join(folder, name), `<p>${name}`)
writeFileSync(join(folder, 'app-ABC.js'), 'plain')
writeFileSync(join(folder, 'app-ABC.js.gz'), gzipSync('packed'))
writeFileSync(join(folder, 'app-ABC.js.br'), 'as br')
writeFileSync(join(folder, 'inter.woff2'), 'font')

const files = readPages(folder)
const ask = (whose: 'public' | 'operator', path: string | undefined, acceptEncoding = ''): Reply => {
  const params: Record<string, string> = path === undefined ? {} : { '*': path }
  return makeDashboard(files, whose)({ params, acceptEncoding } as unknown as EdgeRequest) as Reply
}
const textOf = ({ bytes, text }: Reply) => (bytes === undefined ? text : Buffer.from(bytes).toString())

t.test(
  'dashboard-page: a path without a file is a page, one below api/ and mail/ never [dashboard.page]',
  async (t) => {
    const shells: [whose: 'public' | 'operator', path: string | undefined, shell: string][] = [
      ['public', undefined, 'app.html'],
      ['public', '/dashboard/', 'app.html'],
      ['public', '/dashboard/servers/x/messages', 'app.html'],
      ['public', '/dashboard/app.html', 'app.html'],
      ['public', '/dashboard/sign-in', 'door.html'],
      ['public', '/dashboard/link', 'door.html'],
      ['public', '/dashboard/forgot/', 'door.html'],
      ['public', '/dashboard/../package.json', 'app.html'],
      ['public', '/dashboard/apix', 'app.html'],
      ['operator', undefined, 'desk.html'],
      ['operator', '/dashboard/sign-in', 'desk.html'],
    ]
    for (const [whose, path, shell] of shells) {
      const answer = ask(whose, path)
      t.same([answer.status, textOf(answer)], [200, `<p>${shell}`], `${whose} ${path}`)
      t.equal(answer.headers?.['Cache-Control'], 'no-cache')
    }
    for (const path of ['/dashboard/api', '/dashboard/api/nothing', '/dashboard/mail/x/y', '/dashboard/mail'])
      t.match(ask('public', path), { status: 404, json: { error: 'not_found' } }, path)
  },
)

t.test('dashboard-page: files are cached for good, in the accepted encoding [dashboard.page]', async (t) => {
  const cases: [accepted: string, encoding: string | undefined, text: string][] = [
    ['', undefined, 'plain'],
    ['identity', undefined, 'plain'],
    ['gzip, deflate, br', 'br', 'as br'],
    ['gzip;q=1.0, br;q=0', 'gzip', 'packed'],
    ['br;q=0.0 , gzip;q=0', undefined, 'plain'],
    ['GZIP', 'gzip', 'packed'],
    ['xbr', undefined, 'plain'],
  ]
  for (const [accepted, encoding, text] of cases) {
    const { bytes, headers, contentType } = ask('public', '/dashboard/app-ABC.js', accepted)
    t.equal(headers?.['Content-Encoding'], encoding, accepted)
    t.equal((encoding === 'gzip' ? gunzipSync(bytes as Uint8Array) : Buffer.from(bytes as Uint8Array)).toString(), text)
    t.match(headers, { Vary: 'Accept-Encoding', 'Cache-Control': /immutable/, 'X-Content-Type-Options': 'nosniff' })
    t.equal(contentType, 'text/javascript; charset=utf-8')
  }
  const font = ask('public', '/dashboard/inter.woff2', 'br, gzip')
  t.match(font, { contentType: 'font/woff2' })
  t.notOk(font.headers?.['Content-Encoding'])
})

t.test('dashboard-page: a missing build is reported [dashboard.page]', async (t) => {
  const answer = makeDashboard(readPages(join(dir, 'nothing')), 'public')({ params: {} } as unknown as EdgeRequest)
  t.match(answer, { status: 503, text: /npm run build/ })
})

t.test('dashboard-page: over HTTP, with its policy, on both listeners [dashboard.policy]', async (t) => {
  const service = await startTestService()
  t.teardown(() => service.stop())
  const at = (port: number) => `http://127.0.0.1:${port}`
  const get = (url: string, init: RequestInit = {}) => fetch(url, { ...init, headers: { connection: 'close' } })
  for (const url of [`${at(service.config.httpPort)}/dashboard/messages`, `${at(service.config.operatorPort)}/`]) {
    const answer = await get(url)
    const policy = answer.headers.get('content-security-policy') ?? ''
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"])
      t.ok(policy.includes(part), `${url} ${part}`)
    t.equal(answer.headers.get('referrer-policy'), 'no-referrer')
    t.equal(answer.headers.get('cross-origin-opener-policy'), 'same-origin')
    t.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8')
    const shell = await answer.text()
    const [, script = ''] = /src="(\/dashboard\/[\w-]+\.js)"/.exec(shell) ?? []
    const loaded = await get(new URL(script, url).href)
    t.equal(loaded.status, 200, `${url} ${script}`)
    t.match(loaded.headers.get('content-encoding'), /^(?:br|gzip)$/)
    t.ok((await loaded.text()).length > 1000)
    const head = await get(new URL(script, url).href, { method: 'HEAD' })
    t.ok(Number(head.headers.get('content-length')) > 1000)
    t.equal((await get(url, { method: 'POST' })).status, 405)
  }
  t.equal((await get(`${at(service.config.httpPort)}/dashboard/mail/x/y/z`)).status, 404)
})
