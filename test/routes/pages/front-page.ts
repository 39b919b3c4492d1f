/** front-page - `/` of the API listener: a redirect for browsers, JSON for the rest. */
import t from 'tap'
import type { EdgeRequest } from '../../../src/http/request.ts'
import type { Reply } from '../../../src/http/respond.ts'
import { type FrontPage, makeFront } from '../../../src/routes/pages/front-page.ts'
import { startTestService } from '../../support/service/service.ts'

const FRONT: FrontPage = { version: '1.2.3', baseUrl: 'https://api.test', hasDashboard: true, hasDocs: true }
const ask = (accept: string, changes: Partial<FrontPage> = {}): Reply =>
  makeFront({ ...FRONT, ...changes })({ accept } as unknown as EdgeRequest) as Reply

t.test('front-page: a client that accepts HTML is sent to the dashboard, others get JSON [front.page]', async (t) => {
  const cases: [accept: string, isBrowser: boolean][] = [
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', true],
    ['application/json, TEXT/HTML ; q=0.1', true],
    ['*/*', false],
    ['', false],
    ['application/json', false],
    ['text/html;q=0, */*', false],
    ['text/html; q=0.000', false],
    ['text/htmlx, x-text/html', false],
  ]
  for (const [accept, isBrowser] of cases) {
    const { status, headers } = ask(accept)
    t.same([status, headers?.Location], isBrowser ? [303, '/dashboard'] : [200, undefined], accept)
    t.equal(headers?.Vary, 'Accept')
  }
  t.same(ask('').json, {
    name: 'Sendwright',
    version: '1.2.3',
    dashboard: 'https://api.test/dashboard',
    documentation: 'https://api.test/docs',
    openapi: 'https://api.test/v1/openapi.json',
  })
})

t.test('front-page: it names only what is served [front.page]', async (t) => {
  t.notMatch(ask('', { hasDocs: false }).json, { documentation: /./ })
  const { status, json } = ask('text/html', { hasDashboard: false })
  t.equal(status, 200)
  t.notMatch(json, { dashboard: /./ })
})

t.test('front-page: on a running service, without a key [front.page]', async (t) => {
  const service = await startTestService({ DOCS: 'off' })
  t.teardown(() => service.stop())
  const root = `http://127.0.0.1:${service.config.httpPort}/`
  const answer = await fetch(root, { headers: { connection: 'close' } })
  t.equal(answer.status, 200)
  const json = (await answer.json()) as Record<string, string>
  t.match(json, { name: 'Sendwright', version: /^\d+\.\d+\.\d+/ })
  t.notOk('documentation' in json)
  t.equal((await fetch(json.openapi as string, { headers: { connection: 'close' } })).status, 200)
  const head = await fetch(root, { method: 'HEAD', headers: { connection: 'close' } })
  t.equal(head.status, 200)
})
