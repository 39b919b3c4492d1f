/**
 * together - users at work at the same time, in a real browser against the real product: a stranger joins by a mailed
 * invitation, a role is removed while its member watches, a link arrives by mail, events are shown as they happen, a
 * delivery is posted again, a user switches accounts.
 */
import type { Page } from 'playwright-core'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startReceiver } from '../../support/peers/receiver.ts'

const WAIT_MS = 30_000
const PASSWORD = 'a long enough password'
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const PHONE = { width: 375, height: 812 }
const mx = await startMx()
const receiver = await startReceiver()
const rig = await startDashboard(
  {
    RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
    SERVICE_DOMAIN: 'service.example',
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  },
  receiver === null ? {} : { smtp: { ca: receiver.ca } },
)
t.teardown(async () => {
  await rig.stop()
  await Promise.all([mx.close(), receiver?.close()])
})
const { service, origin, testServerId } = rig
const { token } = service.firstRun.testServer
const pageOf = (name: string) => `${origin}/dashboard/servers/${testServerId}/${name}`

/** The link in the newest mail to a user, on the address that the browser knows. */
async function wayIn(address: string): Promise<string> {
  const mail = await until(() => {
    const own = mx.sessions.flatMap(({ messages }) => messages).filter((one) => one.includes(`To: ${address}`))
    return own.at(-1) ?? null
  }, WAIT_MS)
  const [, link = ''] = /(\/dashboard\/link#[\w.-]+)/.exec(mail.replaceAll('=\r\n', '')) ?? []
  return origin + link
}

async function send(to: string, subject: string): Promise<string> {
  const body = { from: 'accounts@simulator.test', to: [to], subject, text: 'Hello' }
  return (await service.call('POST /v1/email', { token, body })).json.messageId
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

t.test(
  'together: a stranger joins by a mailed invitation; a role is removed during its use [invitation.send]',
  async (t) => {
    const [grace, bob] = [await rig.signedIn(VIEW), await rig.chromium.newContext(VIEW)]
    const her = await watchedPage(grace, origin)
    const his = await watchedPage(bob, origin)
    await her.page.goto(`${origin}/dashboard/people`)
    await her.page.getByRole('button', { name: 'Invite' }).click()
    await her.page.getByLabel('Address').fill('bob@northwind.example')
    await her.page.keyboard.press('Enter')
    await her.page.getByText('bob@northwind.example is invited').waitFor()
    await his.page.goto(await wayIn('bob@northwind.example'))
    await his.page.getByText('wants you as a member').waitFor()
    t.same(await findingsOf(his.page), [], 'the door of an invitation')
    await his.page.getByLabel('Your name').fill('Bob')
    await his.page.getByLabel('New password').fill(PASSWORD)
    await his.page.keyboard.press('Enter')
    await heading(his.page, 'Overview')
    await his.page.goto(pageOf('keys'))
    await his.page.getByRole('button', { name: 'New key' }).waitFor()
    await her.page.reload()
    const row = her.page.getByRole('row', { name: /Bob/ })
    await row.getByRole('button', { name: 'Role' }).click()
    await her.page.getByRole('dialog').getByLabel('Role').selectOption('reader')
    await her.page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await row.getByText('Reads only').waitFor()
    // The member's page still shows the button, and the request is refused.
    await his.page.getByRole('button', { name: 'New key' }).click()
    await his.page.getByLabel('Name').fill('shop')
    await his.page.keyboard.press('Enter')
    await his.page.getByRole('alert').getByText('Your role in this account does not allow this').waitFor()
    await row.getByRole('button', { name: 'Remove' }).click()
    await her.page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await row.waitFor({ state: 'detached' })
    // The next action reads data, and the session has no user any more.
    await his.page.keyboard.press('Escape')
    await his.page.waitForURL(/sign-in$/)
    t.same(her.faults, [])
    await Promise.all([grace.close(), bob.close()])
  },
)

t.test('together: a link arrives by mail, and signs its owner in once [link.mail]', async (t) => {
  const context = await rig.chromium.newContext(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/forgot`)
  await page.getByLabel('Address').fill(rig.address)
  await page.keyboard.press('Enter')
  await heading(page, 'Check your mail')
  const way = await wayIn(rig.address)
  await page.goto(way)
  await page.getByRole('button', { name: 'Continue' }).click()
  await heading(page, 'Overview')
  t.notMatch(page.url(), '#')
  t.same(faults, [])
  const other = await rig.chromium.newContext(VIEW)
  const late = await watchedPage(other, origin)
  await late.page.goto(way)
  await heading(late.page, 'This link no longer works')
  await Promise.all([context.close(), other.close()])
})

t.test('together: events are shown as they happen, and no row jumps away [member.live]', async (t) => {
  await send('delivered@simulator.test', 'Before')
  const context = await rig.signedIn(VIEW)
  const { page, faults, requests } = await watchedPage(context, origin)
  await page.goto(pageOf('messages'))
  await page.getByRole('link', { name: 'Before' }).waitFor()
  await until(() => requests.some((url) => url.endsWith('/events')), WAIT_MS)
  await send('delivered@simulator.test', 'Meanwhile')
  await send('softbounce@simulator.test', 'And again')
  const fresh = page.getByRole('button', { name: '2 new messages' })
  await fresh.waitFor()
  t.equal(await page.getByRole('link', { name: 'Meanwhile' }).count(), 0, 'it waits for a press')
  t.same(await findingsOf(page), [])
  await page.setViewportSize(PHONE)
  t.same(await findingsOf(page), [], 'on a phone')
  t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'))
  await page.setViewportSize(VIEW.viewport)
  await fresh.click()
  const row = page.getByRole('row', { name: /Meanwhile/ })
  await row.locator('.chip.delivered').waitFor()
  await fresh.waitFor({ state: 'detached' })
  const before = requests.filter((url) => url.endsWith('/search')).length
  await page.getByRole('link', { name: 'Overview' }).click()
  await heading(page, 'Overview')
  t.ok(before > 1)
  t.same(faults, [])
  await context.close()
})

t.test('together: without a feed a page refreshes by itself [member.live]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page } = await watchedPage(context, origin)
  await page.route('**/events', (route) => route.fulfill({ status: 409, body: '{}' }))
  await page.goto(pageOf('start'))
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('li.delivered').waitFor()
  t.match(await page.locator('.line').textContent(), '2.0.0 OK (test)')
  await context.close()
})

t.test('together: a broadcast is resumed, and its progress updates by itself [broadcast.read]', async (t) => {
  const { streamId } = (await service.call('POST /v1/streams', { token, body: { kind: 'broadcast', name: 'News' } }))
    .json
  const messages = Array.from({ length: 30 }, (_, n) => ({ to: `delivered+${n}@simulator.test` }))
  const body = { streamId, from: 'accounts@simulator.test', subject: 'News', text: 'Hello', messages }
  const { broadcastId } = (await service.call('POST /v1/broadcasts', { token, body })).json
  await service.call(`POST /v1/broadcasts/${broadcastId}/pause`, { token })
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${pageOf('broadcasts')}/${broadcastId}`)
  await page.getByText('Paused').waitFor()
  const progress = page.getByRole('progressbar', { name: 'Released' })
  const before = Number(await progress.getAttribute('value'))
  t.ok(before < messages.length, 'it is not over')
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText(`${messages.length} of ${messages.length}`).waitFor()
  await page.locator('.chip', { hasText: 'Completed' }).waitFor()
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' })
  t.equal(await progress.getAttribute('value'), String(messages.length))
  t.same(faults, [])
  await context.close()
})

t.test('together: a delivery is posted once more [webhook.replay]', { skip: receiver === null }, async (t) => {
  if (receiver === null) return
  const body = { url: `${receiver.url}/mail`, events: ['delivered'] }
  const made = await service.call('POST /v1/webhooks', { token, body })
  t.equal(made.status, 201, made.text)
  const messageId = await send('delivered@simulator.test', 'Told')
  await until(() => receiver.received.length === 1, WAIT_MS)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${pageOf('messages')}/${messageId}`)
  await page.getByText('Webhook localhost').click()
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByText('Queued again').waitFor()
  await until(() => receiver.received.length === 2, WAIT_MS)
  const [first, second] = receiver.received
  t.equal(second?.json.id, first?.json.id, 'it keeps its id')
  t.ok(second?.json.attempt > first?.json.attempt)
  t.same(faults, [])
  await context.close()
})

t.test('together: a user switches accounts with the keyboard alone [session.read]', async (t) => {
  const { operatorToken } = service.firstRun
  const operate = (what: string, body: object) =>
    service.operate(`POST /v1/operator/accounts${what}`, { token: operatorToken, body })
  const name = 'A second account with a name that is rather long for the side'
  const { accountId } = (await operate('', { name, administrators: [] })).json
  await operate(`/${accountId}/servers`, { name: 'Theirs', mode: 'test' })
  const { url } = (await operate(`/${accountId}/link`, { address: rig.address })).json
  const context = await rig.chromium.newContext(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/link#${url.split('#')[1]}`)
  await page.getByLabel('New password').fill(rig.password)
  await page.keyboard.press('Enter')
  const menu = page.getByRole('button', { name: `Switch from account ${name}` })
  await menu.waitFor()
  const other = await context.newPage()
  await other.goto(`${origin}/dashboard/account`)
  await heading(other, name)
  await menu.focus()
  await page.keyboard.press('Enter')
  const choice = page.getByRole('button', { name: /^First account/ })
  await choice.waitFor()
  t.same(await findingsOf(page), [])
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'First accountadministrator')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Switch from account First account' }).waitFor()
  await other.getByRole('button', { name: 'Switch from account First account' }).waitFor()
  t.notMatch(other.url(), 'account', 'the other tab follows')
  await page.goto(`${origin}/dashboard/sign-in`)
  await page.getByLabel('Address').fill(rig.address)
  await page.getByLabel('Password').fill(rig.password)
  await page.keyboard.press('Enter')
  await menu.waitFor()
  await other.getByRole('button', { name: `Switch from account ${name}` }).waitFor()
  await menu.click()
  await choice.click()
  // The same choice as before is announced again.
  await other.getByRole('button', { name: 'Switch from account First account' }).waitFor()
  await page.getByRole('button', { name: 'Switch from account First account' }).waitFor()
  await page.setViewportSize(PHONE)
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('button', { name: 'Switch from account First account' }).click()
  t.same(await findingsOf(page), [], 'on a phone')
  t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'))
  t.same(faults, [])
  await context.close()
})
