/** unsubscribe - addresses that nobody outside can open, ones without https, and good ones. */
import t from 'tap'
import { examineUnsubscribe } from '../../src/health/unsubscribe.ts'

const CASES: readonly (readonly [url: string, status: string, message: RegExp])[] = [
  ['https://mail.acme.test', 'ok', /lead to https:/],
  ['https://mail.acme.test/post', 'ok', /post$/],
  ['http://mail.acme.test', 'warning', /one-click/],
  ['http://localhost:8080', 'warning', /which recipients cannot open/],
  ['http://127.0.0.1:8080', 'warning', /which recipients cannot open/],
  ['https://[::1]:8080', 'warning', /which recipients cannot open/],
  ['https://192.168.4.4', 'warning', /which recipients cannot open/],
  ['https://8.8.4.4', 'ok', /lead to/],
]

for (const [url, status, message] of CASES)
  t.test(`health: unsubscribe links below ${url} [operator.health]`, async (t) => {
    const finding = examineUnsubscribe(url)
    t.match(finding, { name: 'unsubscribe', status, message })
    t.equal(finding.fix === null, status === 'ok')
  })
