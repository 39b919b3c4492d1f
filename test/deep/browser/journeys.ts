/**
 * journeys - the main tasks of users, in a real browser against the real product: a domain until it is verified, a
 * key, the removal of a role, with the keyboard alone if the title says so. The first two are in
 * `test/browser/first-journeys.ts`.
 */
import t from 'tap'
import { watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { startZone } from '../../support/peers/zone.ts'

const zone = await startZone()
const rig = await startDashboard({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
t.teardown(async () => {
  await rig.stop()
  await zone.close()
})
const { service, origin, testServerId } = rig
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

t.test('journey: signs in with the keyboard alone and reaches the requested page [dashboard.page]', async (t) => {
  const context = await rig.chromium.newContext(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/domains`)
  await page.waitForURL(/sign-in$/)
  t.equal(faults.splice(0).filter((line) => !line.includes('401')).length, 0)
  await page.getByLabel('Address').waitFor()
  await page.keyboard.type(rig.address)
  await page.keyboard.press('Tab')
  await page.keyboard.type('a wrong password')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  t.equal(await page.getByLabel('Address').inputValue(), rig.address, 'a form keeps its text')
  faults.splice(0)
  await page.getByLabel('Password').focus()
  await page.keyboard.press('Control+A')
  await page.keyboard.type(rig.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/dashboard\/domains$/)
  await page.getByRole('heading', { level: 1, name: 'Domains' }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/sign-in$/)
  await page.goto(`${origin}/dashboard/account`)
  await page.waitForURL(/sign-in$/)
  await context.close()
})

t.test('journey: retention of account, server and stream [retention.settings]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  const days = page.getByLabel('Days for text and HTML of sent mail')
  const save = async () => {
    await page.getByRole('button', { name: 'Save retention' }).click()
    await page.getByText('It applies within a day').last().waitFor()
  }
  await page.goto(`${origin}/dashboard/account`)
  await days.fill('20')
  await page.getByLabel('Months for messages and events').fill('14')
  await page.getByRole('button', { name: 'Save retention' }).click()
  await page.locator('.issue').waitFor()
  faults.splice(0)
  await page.getByLabel('Months for messages and events').fill('12')
  await save()
  await page.goto(`${origin}/dashboard/servers`)
  await page.getByRole('button', { name: 'Retention' }).first().click()
  await days.fill('5')
  await save()
  await page.goto(`${origin}/dashboard/servers/${testServerId}/streams`)
  await page.getByRole('button', { name: 'Retention' }).first().click()
  await days.fill('0')
  await save()
  const token = service.firstRun.account.token
  const account = await service.call('GET /v1/account/retention', { token })
  t.match(account.json, { sentContentDays: 20, logRetentionMonths: 12 })
  const { testServer } = service.firstRun
  const stream = await service.call(`GET /v1/streams/${testServer.streamId}/retention`, { token: testServer.token })
  t.match(stream.json, { sentContentDays: 0 })
  t.same(faults, [])
  await context.close()
})

t.test('journey: a domain from its records to verified, while its page is open [domain.verify]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/domains`)
  await page.getByRole('button', { name: 'Add a domain' }).first().click()
  await page.getByRole('textbox', { name: 'Domain' }).fill('not a domain')
  await page.keyboard.press('Enter')
  await page.locator('.issue').waitFor()
  faults.splice(0)
  await page.getByRole('textbox', { name: 'Domain' }).fill('mail.northwind.example')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'mail.northwind.example' }).waitFor()
  await page.getByText('nothing under this name').first().waitFor()
  const { json } = await service.call('GET /v1/domains', { token: service.firstRun.account.token })
  const { returnPath, dkim } = json.domains[0]
  zone.set(returnPath.host, { type: 'CNAME', domain: 'elsewhere.example' })
  await page.getByRole('button', { name: 'Check now' }).click()
  await page.getByText('elsewhere.example').first().waitFor()
  zone.set(returnPath.host, { type: 'CNAME', domain: returnPath.value })
  zone.set(dkim.host, { type: 'TXT', data: dkim.value.match(/.{1,255}/g) })
  // Without a click: the page checks by itself.
  await page.getByText('Verified. Ready to send.').waitFor()
  t.same(faults, [])
  await context.close()
})

t.test(
  'journey: a key is created after the password, shown once, revoked [key.create] [session.confirm]',
  async (t) => {
    const context = await rig.chromium.newContext(VIEW)
    const { page, faults } = await watchedPage(context, origin)
    await page.goto(`${origin}/dashboard/sign-in`)
    await page.getByLabel('Address').fill(rig.address)
    await page.getByLabel('Password').fill(rig.password)
    await page.keyboard.press('Enter')
    await page.waitForURL(/overview$/)
    await page.goto(`${origin}/dashboard/servers/${testServerId}/keys`)
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByLabel('Name').fill('web shop')
    await page.keyboard.press('Enter')
    const made = page.getByRole('dialog').locator('pre')
    const asked = page.getByRole('heading', { name: 'Confirm that it is you' })
    await made.or(asked).first().waitFor()
    if (await asked.isVisible()) {
      await page.getByLabel('Password').fill(rig.password)
      await page.getByRole('button', { name: 'Confirm' }).click()
    }
    await made.waitFor()
    const key = (await made.textContent()) ?? ''
    t.match(key, /^sk_test_/)
    t.equal((await service.call('GET /v1/server', { token: key })).status, 200)
    await page.getByRole('button', { name: 'I have it' }).click()
    const row = page.getByRole('row', { name: /web shop/ })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.getByText('Revoked').waitFor()
    t.equal((await service.call('GET /v1/server', { token: key })).status, 401)
    t.same(
      faults.filter((line) => !line.includes('403')),
      [],
    )
    await context.close()
  },
)
