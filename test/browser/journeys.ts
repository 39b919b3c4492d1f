/**
 * journeys - what people come for, in a real browser against the real product: the printed link, why a mail did not
 * arrive, a domain to verified, a role that is taken away, by the keyboard alone where it is said.
 */
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { watchedPage } from '../support/pages/chromium.ts'
import { startDashboard } from '../support/pages/dashboard.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const zone = await startZone()
const rig = await startDashboard({ DNS_SERVERS: zone.server, SERVICE_DOMAIN: 'service.example' })
t.teardown(async () => {
  await rig.stop()
  await zone.close()
})
const { service, origin, testServerId } = rig
const { token } = service.firstRun.testServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

t.test('journey: signs in by the keyboard alone and comes to the page that was wanted [dashboard.page]', async (t) => {
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
  await page.getByText('The mailbox does not exist. The address is now on the suppression list').waitFor()
  await page.locator('iframe').scrollIntoViewIfNeeded()
  await page.frameLocator('iframe').getByText('Hello Ada').waitFor()
  t.notOk(
    requests.some((url) => url.includes('ada')),
    'her address stands in no URL',
  )
  await page.getByRole('link', { name: 'Open the entry' }).click()
  await page.getByRole('cell', { name: 'Lift' }).waitFor()
  await page.getByRole('button', { name: 'Lift' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Lift it' }).click()
  await page.getByText('No').first().waitFor()
  await until(async () => {
    const { json } = await service.call('POST /v1/suppressions/search', { token, body: { recipient: body.to[0] } })
    return json.suppressions.length === 0 ? true : null
  }, 60_000)
  t.same(faults, [])
  await context.close()
})

t.test('journey: a domain from its records to verified, while it is watched [domain.verify]', async (t) => {
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
  // Nobody presses anything: the page looks by itself.
  await page.getByText('Both records stand').waitFor()
  t.same(faults, [])
  await context.close()
})

t.test('journey: a key is made after the password, shown once, revoked [key.create] [session.confirm]', async (t) => {
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
