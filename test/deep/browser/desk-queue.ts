/** desk-queue - the operator's view in a real browser: pending mail by account */
import t from 'tap'
import { findingsOf, startChromium, VIEWS, watchedPage } from '../../support/pages/chromium.ts'
import { startDelivery } from '../../support/service/delivery.ts'

const chromium = await startChromium()
const delivery = await startDelivery()
t.teardown(() => delivery.stop())
const { service, destination, send, messageWhen } = delivery
const origin = `http://127.0.0.1:${service.config.operatorPort}`
const { account, operatorToken } = service.firstRun

t.test('desk: the queue is shown by account as well [queue.accounts]', async (t) => {
  await destination('many.test', { rcpt: '450 4.2.0 later' })
  await messageWhen(await send(['ann@many.test', 'bob@many.test']), ({ status }) => status === 'deferred')
  const context = await chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/#/queue`)
  await page.getByLabel('Operator key').fill(operatorToken)
  await page.keyboard.press('Enter')
  const row = page.getByRole('region', { name: 'By account' }).getByRole('row').filter({ hasText: account.accountId })
  await row.waitFor()
  t.equal(await row.getByRole('cell').nth(1).textContent(), '2', 'two recipients wait')
  for (const view of VIEWS) {
    await page.setViewportSize(view)
    t.same(await findingsOf(page), [], `${view.width}`)
    t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), `${view.width}`)
  }
  await page.getByRole('link', { name: account.accountId }).click()
  await page.getByRole('heading', { level: 1, name: 'First account' }).waitFor()
  t.same(faults, [])
  await context.close()
})
