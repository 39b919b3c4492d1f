/**
 * waiting - pages of things that are due, lost or not there yet: a message that waits for its turn, a link that is
 * pasted over an old one, a read that fails, the dead deliveries of a webhook, and a live server without mail.
 */
import t, { type Test } from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, keepPictures, untilShown, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

const zone = await startZone()
const rig = await startDashboard({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
t.teardown(async () => {
  await rig.stop()
  await zone.close()
})
const { service, origin, testServerId, liveServerId } = rig
const { account, liveServer, testServer, operatorToken } = service.firstRun
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const WAIT_MS = 60_000

async function opened(path: string) {
  const context = await rig.signedIn(VIEW)
  const seen = await watchedPage(context, origin)
  await seen.page.goto(`${origin}/dashboard${path}`)
  await seen.page.getByRole('heading', { level: 1 }).waitFor()
  await untilShown(seen.page)
  return { context, ...seen }
}

t.test('waiting: a live server without mail names the address of the user [dashboard.page]', async (t) => {
  const { context, page, faults } = await opened(`/servers/${liveServerId}/messages`)
  const command = await page.getByText('"to"').textContent()
  t.match(command, `"to": ["${rig.address}"]`)
  t.notMatch(command, /simulator/)
  t.same(faults, [])
  await context.close()
})

t.test('waiting: the page of a due message shows that it waits, and names the site [dashboard.page]', async (t) => {
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'acme.example' })
  const order = { token: operatorToken, body: { domain: 'held.example' } }
  t.equal((await service.operate('POST /v1/operator/queue/hold', order)).status, 200)
  const body = { from: 'shop@acme.example', to: ['ada@held.example'], subject: 'Hello', text: 'Hello' }
  const { messageId } = (await service.call('POST /v1/email', { token: liveServer.token, body })).json
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token: liveServer.token })
    return Date.parse(json.recipients[0].nextAttemptAt) < Date.now()
  }, WAIT_MS)
  const { context, page, faults } = await opened(`/servers/${liveServerId}/messages/${messageId}`)
  await page.getByText('Due now, waiting for its turn at held.example.').waitFor()
  t.notMatch(await page.getByRole('main').textContent(), /next attempt is .* ago/)
  await keepPictures(page, 'waiting-due')
  t.same(await findingsOf(page), [])
  t.same(faults, [])
  await context.close()
})

t.test('waiting: a new link pasted over an old one is read [dashboard.link]', async (t) => {
  const { json } = await service.operate(`POST /v1/operator/accounts/${account.accountId}/link`, {
    token: operatorToken,
    body: { address: rig.address },
  })
  const fresh = new URL(json.url)
  const context = await rig.chromium.newContext(VIEW)
  const page = await context.newPage()
  await page.goto(`${origin}${fresh.pathname}#${'a'.repeat(fresh.hash.length - 1)}`)
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
  await page.goto(`${origin}${fresh.pathname}${fresh.hash}`)
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor({ state: 'detached' })
  await page.getByRole('button').first().waitFor()
  t.same(await findingsOf(page), [])
  await context.close()
})

t.test('waiting: a read that fails has words of its own, and is read again [dashboard.page]', async (t) => {
  const { context, page } = await opened(`/servers/${testServerId}/messages`)
  const words = { error: 'service_unavailable', message: 'Service unavailable: nothing was accepted, try again' }
  await page.route('**/domains*', (route) => route.fulfill({ status: 503, json: words }))
  await page.getByRole('link', { name: 'Domains' }).click()
  await page.getByText('This could not be read. Try again in a moment.').waitFor()
  t.notMatch(await page.getByRole('main').textContent(), /accepted/)
  t.same(await findingsOf(page), [])
  await page.unroute('**/domains*')
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('acme.example').first().waitFor()
  await context.close()
})

/** A webhook with a number of dead deliveries in its health, put in because a delivery takes a day until it is dead. */
async function openDead(t: Test, dead: number) {
  const body = { url: 'https://hooks.northwind.example/mail' }
  const { webhookId } = (await service.call('POST /v1/webhooks', { token: testServer.token, body })).json
  const seen = await opened(`/servers/${testServerId}/messages`)
  await seen.page.route('**/webhooks/health*', async (route) => {
    const response = await route.fetch()
    const { webhooks, ...rest } = await response.json()
    await route.fulfill({ json: { ...rest, webhooks: webhooks.map((one: object) => ({ ...one, dead })) } })
  })
  const posted = seen.page.waitForRequest((request) => request.url().endsWith('/replay'), { timeout: WAIT_MS })
  await seen.page.goto(`${origin}/dashboard/servers/${testServerId}/webhooks/${webhookId}`)
  await seen.page.getByRole('button', { name: 'Replay dead' }).click()
  t.same(await findingsOf(seen.page), [])
  return { ...seen, posted }
}

t.test(
  'waiting: every dead delivery is replayed unless another span is chosen, and counted [webhook.replay]',
  async (t) => {
    const { context, page, posted } = await openDead(t, 312)
    const dialog = page.getByRole('dialog')
    const chosen = await dialog.getByLabel('Failed in').locator('option:checked').textContent()
    t.equal(chosen, 'all 312 dead deliveries')
    await keepPictures(page, 'waiting-replay')
    await dialog.getByRole('button', { name: 'Replay' }).click()
    const order = await posted
    const { createdFrom, status } = order.postDataJSON()
    t.equal((await order.response())?.status(), 202)
    t.equal(status, 'dead')
    t.equal(createdFrom, '1970-01-01T00:00:00.000Z')
    await context.close()
  },
)

t.test('waiting: on a phone a figure of a list has its title [dashboard.page]', async (t) => {
  const body = { url: 'https://hooks.northwind.example/phone' }
  const { webhookId } = (await service.call('POST /v1/webhooks', { token: testServer.token, body })).json
  await service.call(`POST /v1/webhooks/${webhookId}/test`, { token: testServer.token, body: { event: 'bounced' } })
  const context = await rig.signedIn({ ...VIEW, viewport: { width: 375, height: 800 } })
  const { page } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/webhooks/${webhookId}`)
  const cell = page.locator('td[data-title="Attempts"]').first()
  await cell.waitFor()
  t.ok(await cell.isVisible())
  const before = `getComputedStyle(document.querySelector('td[data-title="Attempts"]'), '::before').content`
  const title = String(await page.evaluate(before))
  t.match(title, /Attempts|attr\(data-title\)/)
  await context.close()
})
