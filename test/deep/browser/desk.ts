/** desk - the operator's view in a real browser: the key, every page without a finding, an order with its note. */
import t from 'tap'
import { Browser } from '../../support/clients/browser.ts'
import {
  findingsOf,
  keepPictures,
  startChromium,
  untilShown,
  VIEWS,
  watchedPage,
} from '../../support/pages/chromium.ts'
import { startTestService } from '../../support/service/service.ts'

const chromium = await startChromium()
const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.operatorPort}`
const { operatorToken, testServer } = service.firstRun
const PAGES = ['Health', 'Accounts', 'Queue', 'Shards', 'Suppressions', 'Recipients', 'Tail', 'Audit']

t.test('desk: the key opens it, every page is without a finding [dashboard.desk]', async (t) => {
  const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/`)
  t.same(await findingsOf(page), [], 'the door')
  await page.getByLabel('Operator key').fill('ok_wrong')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  t.equal(faults.splice(0).length, 1, 'a wrong key is 401')
  await page.getByLabel('Operator key').fill(operatorToken)
  await page.keyboard.press('Enter')
  for (const name of PAGES) {
    await page.setViewportSize(VIEWS[0])
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
    await untilShown(page)
    for (const view of VIEWS) {
      await page.setViewportSize(view)
      await page.emulateMedia({ colorScheme: view.width === 375 ? 'dark' : 'light', reducedMotion: 'reduce' })
      t.same(await findingsOf(page), [], `${name} ${view.width}`)
      t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), `${name} ${view.width}`)
    }
    await keepPictures(page, `desk-${name.toLowerCase()}`)
  }
  t.same(faults, [])
  t.equal((await context.cookies()).length, 0, 'no cookie: it would reach the other listener too')
  await context.close()
})

t.test('desk: the messages of a recipient are found [operator.recipients]', async (t) => {
  const body = { from: 'shop@simulator.test', to: ['ann@simulator.test'], subject: 'Hi', text: 'Hi' }
  const { json } = await service.call('POST /v1/email', { token: testServer.token, body })
  const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/#/recipients`)
  await page.getByLabel('Operator key').fill(operatorToken)
  await page.keyboard.press('Enter')
  await page.getByLabel('Recipient').fill('ANN@simulator.test')
  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByText(json.messageId).waitFor()
  t.same(await findingsOf(page), [])
  t.same(faults, [])
  await context.close()
})

t.test(
  'desk: an account is paused with a note, which is in the audit log [dashboard.desk] [operator.note]',
  async (t) => {
    const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
    const { page, faults } = await watchedPage(context, origin)
    await page.goto(`${origin}/#/accounts`)
    await page.getByLabel('Operator key').fill(operatorToken)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'First account' }).click()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByLabel('Note').fill('Too many complaints')
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    const { json } = await service.call('GET /v1/server', { token: testServer.token })
    t.equal(json.mode, 'test')
    await page.getByRole('link', { name: 'Audit' }).click()
    await page.getByText('Too many complaints').waitFor()
    t.same(faults, [])
    await context.close()
  },
)

t.test('desk: events on a server are shown as they happen [dashboard.desk]', async (t) => {
  const other = await startTestService()
  t.teardown(() => other.stop())
  const at = `http://127.0.0.1:${other.config.operatorPort}`
  const context = await chromium.newContext({ viewport: VIEWS[0] })
  const { page } = await watchedPage(context, at)
  await page.goto(`${at}/#/tail/${other.firstRun.testServer.serverId}`)
  await page.getByLabel('Operator key').fill(other.firstRun.operatorToken)
  await page.keyboard.press('Enter')
  await page.getByText('Listening').waitFor()
  const body = { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'Hello' }
  await other.call('POST /v1/email', { token: other.firstRun.testServer.token, body })
  await page.locator('.tail li').first().waitFor()
  t.match(await page.locator('.tail').textContent(), /delivered/)
  await context.close()
})

t.test('desk: the key is stored nowhere, and a link opens the view once [operator.link]', async (t) => {
  const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  const made = await service.operate('POST /v1/operator/link', { token: operatorToken, body: {} })
  const way = `${origin}/#${made.json.url.split('#')[1]}`
  await page.goto(way)
  t.same(await findingsOf(page), [], 'the door of a link')
  await page.getByRole('button', { name: 'Continue', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor()
  t.notMatch(await page.evaluate('JSON.stringify({...sessionStorage, ...localStorage})'), operatorToken)
  t.notMatch(page.url(), 'link=')
  t.same(faults, [])
  await context.setOffline(true)
  await page.getByRole('button', { name: 'Leave' }).click()
  await page.getByText('The service cannot be reached').first().waitFor()
  await page.getByRole('heading', { level: 1, name: 'Health' }).waitFor()
  await context.setOffline(false)
  await page.getByRole('button', { name: 'Leave' }).click()
  await page.getByLabel('Operator key').waitFor()
  const other = await context.newPage()
  await other.goto(way)
  await other.getByRole('button', { name: 'Continue', exact: true }).click()
  await other.getByRole('alert').waitFor()
  t.match(await other.getByRole('alert').textContent(), /invalid, expired or already used/)
  await context.close()
})

t.test('desk: an application is read, and its approval is prefilled [member.application]', async (t) => {
  const pending = await startTestService({ APPROVAL: 'manual' })
  t.teardown(() => pending.stop())
  const at = `http://127.0.0.1:${pending.config.operatorPort}`
  const first = pending.firstRun
  const made = await pending.operate('POST /v1/operator/accounts', {
    token: first.operatorToken,
    body: { name: 'Northwind', administrators: [] },
  })
  const { accountId } = made.json
  const { json: led } = await pending.operate(`POST /v1/operator/accounts/${accountId}/link`, {
    token: first.operatorToken,
    body: { address: 'ada@northwind.example' },
  })
  const ada = new Browser(`http://127.0.0.1:${pending.config.httpPort}`)
  const body = { token: Browser.tokenOf(led.url), name: 'Ada', password: 'correct horse battery' }
  t.equal((await ada.call('POST /links/consume', body)).status, 200)
  const asked = { monthlyVolume: 60_000, purpose: 'Receipts of a shop', website: 'https://northwind.example' }
  t.equal((await ada.call('POST /account/application', asked)).status, 200)
  const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, at)
  await page.goto(`${at}/#/accounts/${accountId}`)
  await page.getByLabel('Operator key').fill(first.operatorToken)
  await page.keyboard.press('Enter')
  await page.getByText('Receipts of a shop').waitFor()
  t.same(await findingsOf(page), [])
  await page.getByRole('button', { name: 'Approve' }).click()
  t.equal(await page.getByLabel('Emails a month').inputValue(), '250000', 'the smallest that holds 60,000')
  await page.getByLabel('Note').fill('Known customer')
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('button', { name: 'Pause' }).waitFor()
  t.same(faults, [])
  await context.close()
})
