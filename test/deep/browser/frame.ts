/**
 * frame - what every page relies on: a return to where it was left, a lost connection, headings of missing things, new
 * messages counted without reading, and a first view that does not move.
 */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, keepPictures, untilShown, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
const { service, origin, testServerId, liveServerId } = rig
const { token } = service.firstRun.testServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const MESSAGES = 70

async function send(n: number): Promise<void> {
  const body = { from: 'shop@simulator.test', to: ['delivered@simulator.test'], subject: `Order ${n}`, text: 'Hi' }
  const { status, text } = await service.call('POST /v1/email', { token, body })
  if (status !== 200) throw new Error(text)
}

for (let n = 0; n < MESSAGES; n += 1) await send(n)
await until(async () => {
  const { json } = await service.call('POST /v1/messages/outcomes', { token, body: {} })
  return json.recipients.delivered === MESSAGES ? true : null
}, 60_000)

async function opened(path: string) {
  const context = await rig.signedIn(VIEW)
  const seen = await watchedPage(context, origin)
  await seen.page.goto(`${origin}/dashboard${path}`)
  await seen.page.getByRole('heading', { level: 1 }).waitFor()
  await untilShown(seen.page)
  return { context, ...seen }
}

t.test('frame: Back shows a list where it was left, with the pages that were added [dashboard.page]', async (t) => {
  const { context, page, faults, requests } = await opened(`/servers/${testServerId}/messages`)
  await page.getByRole('button', { name: 'Show more' }).click()
  const link = page.getByRole('link', { name: 'Order 3', exact: true })
  await link.scrollIntoViewIfNeeded()
  const before = await page.evaluate('scrollY')
  t.ok(Number(before) > 1000, `scrolled by ${before}`)
  await link.click()
  await page.getByRole('heading', { level: 1, name: 'Order 3' }).waitFor()
  t.equal(await page.evaluate('scrollY'), 0, 'a new page begins at its top')
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await until(async () => (Math.abs(Number(await page.evaluate('scrollY')) - Number(before)) < 3 ? true : null), 10_000)
  t.equal(await page.getByRole('row').count(), MESSAGES + 1)
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  t.equal(await page.evaluate('scrollY'), 0)
  t.ok(requests.length > 0)
  t.same(faults, [])
  await context.close()
})

t.test('frame: new messages are counted by the feed, and shown by a press [dashboard.live]', async (t) => {
  const { context, page, faults, requests } = await opened(`/servers/${testServerId}/messages`)
  const searches = () => requests.filter((url) => url.endsWith('/messages/search')).length
  // The first read behind the opening of the feed.
  await until(() => (searches() >= 2 ? true : null), 20_000)
  const before = searches()
  // Each is counted before the next one comes, so reading would take as many reads.
  for (let n = 1; n <= 4; n += 1) {
    await send(MESSAGES + n - 1)
    await page.getByRole('button', { name: `${n} new message` }).waitFor()
  }
  const button = page.getByRole('button', { name: '4 new messages' })
  // A quiet page is read once in half a minute.
  t.ok(searches() - before <= 1, `${searches() - before} reads to count four`)
  await button.click()
  await page.getByRole('link', { name: `Order ${MESSAGES + 3}` }).waitFor()
  t.same(faults, [])
  await context.close()
})

t.test('frame: a lost connection is said, and what failed is read when it is back [dashboard.page]', async (t) => {
  const { context, page } = await opened(`/servers/${testServerId}/messages`)
  await context.setOffline(true)
  await page.getByRole('link', { name: 'Domains' }).click()
  await page.getByText('Connection lost').waitFor()
  await keepPictures(page, 'frame-lost')
  t.same(await findingsOf(page), [])
  await context.setOffline(false)
  await page.getByText('Connection lost').waitFor({ state: 'detached' })
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await page.getByText('No domain yet').waitFor()
  await context.close()
})

t.test('frame: what is missing has a heading and a way back [dashboard.page]', async (t) => {
  const id = '0193b2a4-6c00-7017-8000-0123456789ab'
  const cases = [
    [`/servers/${testServerId}/messages/${id}`, 'Message not found', 'See messages'],
    [`/servers/${liveServerId}/received/${id}`, 'Received message not found', 'See received messages'],
    [`/servers/${testServerId}/webhooks/${id}`, 'Webhook not found', 'See webhooks'],
    [`/servers/${testServerId}/broadcasts/${id}`, 'Broadcast not found', 'See broadcasts'],
    [`/domains/${id}`, 'Domain not found', 'See domains'],
    ['/nothing-here', 'Page not found', 'Go to the overview'],
  ] as const
  for (const [path, heading, back] of cases) {
    const { context, page } = await opened(path)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await page.getByRole('link', { name: back }).waitFor()
    t.same(await findingsOf(page), [], path)
    await context.close()
  }
})

t.test('frame: a cold page moves by less than a tenth while it is loaded [dashboard.page]', async (t) => {
  for (const path of ['overview', 'messages', 'webhooks']) {
    const context = await rig.signedIn(VIEW)
    const { page } = await watchedPage(context, origin)
    await page.addInitScript(`
      window.moved = 0
      new PerformanceObserver((list) => { for (const one of list.getEntries()) window.moved += one.value })
        .observe({ type: 'layout-shift', buffered: true })`)
    await page.goto(`${origin}/dashboard/servers/${testServerId}/${path}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await untilShown(page)
    const moved = Number(await page.evaluate('moved'))
    t.ok(moved < 0.1, `${path} moved by ${moved}`)
    await context.close()
  }
})

t.test('frame: an action of the search opens its form, a webhook and a person are found [member.find]', async (t) => {
  const { context, page, faults } = await opened(`/servers/${testServerId}/messages`)
  const find = async (text: string, option: RegExp) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type(text)
    await page.getByRole('option', { name: option }).first().waitFor()
  }
  await find('grace', /Grace Hopper/)
  await page.keyboard.press('Escape')
  await find('add a web', /Add a webhook/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Add a webhook' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
  await untilShown(page)
  t.equal(await page.getByRole('dialog').count(), 0, 'not again after a reload')
  t.same(faults, [])
  await context.close()
})
