/**
 * first-journeys - the two that nobody goes without, in a real browser: from the printed link to the first delivered
 * event, and why a mail did not arrive.
 */
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { watchedPage } from '../support/pages/chromium.ts'
import { startDashboard } from '../support/pages/dashboard.ts'
import { startTestService } from '../support/service/service.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
const { service, origin } = rig
const { token } = service.firstRun.testServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

t.test('journey: why Ada did not get her mail, two actions after sign-in [dashboard.page]', async (t) => {
  const body = {
    from: 'accounts@simulator.test',
    to: ['hardbounce+ada@simulator.test'],
    subject: 'Your key',
    html: '<p>Hello Ada',
  }
  const { messageId } = (await service.call('POST /v1/email', { token, body })).json
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
    return json.events.length > 0 ? true : null
  }, 60_000)
  const context = await rig.signedIn(VIEW)
  const { page, faults, requests } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard`)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  // The first action: her address, by the keyboard.
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').waitFor()
  await page.keyboard.type('hardbounce+ada@simulator.test')
  await page.keyboard.press('Enter')
  // The second: the message.
  await page.getByRole('link', { name: 'Your key' }).click()
  await page.getByRole('heading', { level: 1, name: 'Your key' }).waitFor()
  await page.getByText('5.1.1 No such user (test)').waitFor()
  await page.getByText('The recipient did not get it.').waitFor()
  const line = page.locator('ol')
  await line.getByText('The mailbox does not exist. The address is now on the stream’s suppression list').waitFor()
  await page.locator('iframe').scrollIntoViewIfNeeded()
  await page.frameLocator('iframe').getByText('Hello Ada').waitFor()
  t.notOk(
    requests.some((url) => url.includes('ada')),
    'her address stands in no URL',
  )
  await page.getByRole('link', { name: 'Open the entry' }).click()
  await page.getByRole('cell', { name: 'Remove' }).waitFor()
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove suppression' }).click()
  await page.getByText('No').first().waitFor()
  await until(async () => {
    const { json } = await service.call('POST /v1/suppressions/search', { token, body: { recipient: body.to[0] } })
    return json.suppressions.length === 0 ? true : null
  }, 60_000)
  t.same(faults, [])
  await context.close()
})

t.test('journey: from the printed link to the first delivered event [link.once] [member.test-message]', async (t) => {
  const fresh = await startTestService()
  t.teardown(() => fresh.stop())
  const at = `http://127.0.0.1:${fresh.config.httpPort}`
  const context = await rig.chromium.newContext(VIEW)
  const { page, faults } = await watchedPage(context, at)
  await page.goto(`${at}/dashboard/link#${fresh.firstRun.dashboardUrl.split('#')[1]}`)
  await page.getByLabel('Your address').fill('ada@example.net')
  await page.getByLabel('Your name').fill('Ada Lovelace')
  await page.getByLabel('New password').fill('too short')
  await page.keyboard.press('Enter')
  await page.locator('.issue').waitFor()
  faults.splice(0)
  await page.getByLabel('New password').fill('a long enough password')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Send one' }).click()
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('li.delivered').waitFor()
  await page.getByText('2.0.0 OK (test)').waitFor()
  await page.getByRole('link', { name: 'Open the message' }).click()
  await page.getByRole('heading', { level: 1, name: 'Hello from Sendwright' }).waitFor()
  t.same(faults, [])
  await context.close()
})
