/** lists - filters and the search in a real browser: typed into at once, refused in place; received mail. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { keepPictures, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'

const rig = await startDashboard({ CONTENT_STORE: 'file' })
t.teardown(() => rig.stop())
const { service, origin, testServerId, liveServerId } = rig
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

t.test('lists: a text filter is typed into at once and refused in its place [dashboard.page]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/messages`)
  await page.getByRole('button', { name: 'More filters' }).click()
  await page.getByRole('button', { name: 'From', exact: true }).click()
  await page.keyboard.type('gmail.com')
  await page.keyboard.press('Enter')
  await page.getByText('Enter a whole address, such as accounts@example.com.').waitFor()
  await keepPictures(page, 'filter-refused')
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  t.equal(await page.locator('.pick.on').count(), 0, 'what was refused is no filter')
  await page.getByRole('button', { name: 'Recipient' }).click()
  await page.keyboard.type('ada@example.org')
  await page.keyboard.press('Enter')
  await page.locator('.pick.on').getByText('ada@example.org').waitFor()
  await page.getByText('No messages match these filters').or(page.getByText('No messages match')).first().waitFor()
  t.same(faults, [])
  await context.close()
})

t.test('lists: Esc closes the search with one press, whatever is typed [dashboard.page]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/messages`)
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox').waitFor()
  await page.keyboard.type('Key')
  await page.getByRole('option').first().waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('combobox').waitFor({ state: 'detached' })
  t.same(faults, [])
  await context.close()
})

t.test('lists: received mail names its hidden parts, and shows them on request [member.content]', async (t) => {
  const { token } = service.firstRun.liveServer
  const stream = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Help' } })
  const mail =
    'From: Ada Lovelace <ada@example.net>\nTo: help@acme.example\nSubject: Where is my order\n\nIt is late.\n'
  t.match(await deliverMail(service.config.mxPort, stream.json.inboundAddress, mail), /^250/)
  await until(async () => {
    const { json } = await service.call('POST /v1/inbound/search', { token, body: {} })
    return json.messages[0]?.subject == null ? null : true
  }, 60_000)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${liveServerId}/received`)
  const hidden = page.getByRole('link', { name: 'Hidden until you open it' })
  await hidden.waitFor()
  t.equal(await page.getByText(/No subject|not kept/i).count(), 0, 'nothing untrue')
  await keepPictures(page, 'received-hidden')
  await hidden.click()
  await page.getByRole('heading', { level: 1, name: 'Received message' }).waitFor()
  await page.getByText('Sender hidden until you show the content').waitFor()
  await page.getByRole('button', { name: /^Show/ }).click()
  await page.getByRole('heading', { level: 1, name: 'Where is my order' }).waitFor()
  await page.getByText('From Ada Lovelace <ada@example.net>').first().waitFor()
  await keepPictures(page, 'received-shown')
  t.same(faults, [])
  await context.close()
})

t.test('lists: a list is saved as CSV with its filters, by keyboard [dashboard.page] [export.csv]', async (t) => {
  const { token } = service.firstRun.testServer
  for (const [to, tag] of [
    ['delivered@simulator.test', 'one'],
    ['hardbounce@simulator.test', 'two'],
  ]) {
    const body = { from: 'shop@simulator.test', to: [to], subject: '=1+1', text: 'It works', tag }
    t.equal((await service.call('POST /v1/email', { token, body })).status, 200)
  }
  await until(async () => {
    const { json } = await service.call('POST /v1/messages/search', { token, body: { status: 'bounced' } })
    return json.messages.length === 1 ? true : null
  }, 60_000)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  const saved = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).focus()
    const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')])
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') }
  }
  await page.goto(`${origin}/dashboard/servers/${testServerId}/messages`)
  const all = await saved('Export CSV')
  t.match(all.name, /^messages-\d{4}-\d\d-\d\d\.csv$/)
  t.equal(all.text.split('\r\n').length, 4)
  t.match(all.text, /,'=1\+1,/)
  await keepPictures(page, 'export')
  await page.getByRole('button', { name: 'Status' }).click()
  await page.getByRole('button', { name: 'Bounced', exact: true }).click()
  const bounces = await saved('Export bounces')
  t.match(bounces, { name: /^bounces-/, text: /InvalidRecipient/ })
  t.equal((await saved('Export CSV')).text.split('\r\n').length, 3, 'with the filter alone')
  await page.goto(`${origin}/dashboard/servers/${testServerId}/suppressions`)
  t.match((await saved('Export CSV')).text, /hard_bounce/)
  await page.goto(`${origin}/dashboard/activity`)
  await page.getByText('Export suppressions').waitFor()
  await page.getByText('1 row, complete').first().waitFor()
  t.match((await saved('Export CSV')).text, /exportMessages/)
  await keepPictures(page, 'export-activity')
  t.same(faults, [])
  await context.close()
})
