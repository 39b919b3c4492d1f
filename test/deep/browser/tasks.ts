/**
 * tasks - what users come to the dashboard for, each within a bound of presses: why Ada did not get her mail, which
 * provider rejects mail, which webhook fails, whether a domain is set up, and a test message. Mail goes to receiving
 * servers under the names of real providers.
 */
import type { Page } from 'playwright-core'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { findingsOf, keepPictures, untilShown, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { layoutFaults } from '../../support/pages/layout.ts'
import { type MxScript, startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

const FROM_DOMAIN = 'shop.northwind.example'
const NO_SUCH_USER =
  "550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos or unnecessary spaces. For more information, go to https://support.google.com/mail/?p=NoSuchUser - gsmtp"
const BUSY =
  '451 4.7.500 Server busy. Please try again later from [192.0.2.25]. (S77719) [Name=Protocol Filter Agent][AGT=PFA]'
const SPAM = '554 5.7.1 [SS] Message blocked: our systems have detected that this message is likely spam'
/** Receiving domains, their mail servers and replies. */
const PROVIDERS: readonly (readonly [domain: string, host: string, script: MxScript])[] = [
  [
    'gmail.example',
    'gmail-smtp-in.l.google.com',
    { rcpt: (line) => (/nouser/.test(line) ? NO_SUCH_USER : '250 2.1.5 OK - gsmtp') },
  ],
  ['outlook.example', 'outlook-example.mail.protection.outlook.com', { rcpt: BUSY }],
  ['yahoo.example', 'mta5.am0.yahoodns.net', { dot: SPAM }],
  ['gmx.example', 'mx00.emig.gmx.net', {}],
]
const zone = await startZone()
const port = await freePort()
const rig = await startDashboard({
  DNS_SERVERS: zone.server,
  DELIVERY_PORT: String(port),
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'service.example',
})
const servers = await Promise.all(
  PROVIDERS.map(async ([domain, host, script], n) => {
    const address = `127.0.78.${n + 1}`
    zone.set(domain, { type: 'MX', exchange: host, priority: 10 })
    zone.set(host, { type: 'A', address })
    return startMx(script, { host: address, port })
  }),
)
t.teardown(async () => {
  await rig.stop()
  for (const server of servers) await server.close()
  await zone.close()
})
const { service, origin, liveServerId, testServerId } = rig
const { token } = service.firstRun.liveServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const

async function send(to: object | string, subject: string): Promise<void> {
  const from = { email: `receipts@${FROM_DOMAIN}`, name: 'Northwind Trading Company' }
  const { status, text } = await service.call('POST /v1/email', {
    token,
    body: { from, to: [to], subject, text: 'Hi' },
  })
  if (status !== 200) throw new Error(text)
}

await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: FROM_DOMAIN })
const account = service.firstRun.account.token
await service.call('POST /v1/domains', { token: account, body: { domain: 'news.northwind.example' } })
const hook = { url: 'https://hooks.northwind.example/sendwright/production/events' }
const { webhookId } = (await service.call('POST /v1/webhooks', { token, body: hook })).json
for (let n = 0; n < 24; n += 1) await send(`customer${n}@gmail.example`, `Your order ${4700 + n}`)
for (let n = 0; n < 6; n += 1) await send(`customer${n}@gmx.example`, `Ihre Bestellung ${4800 + n}`)
for (let n = 0; n < 3; n += 1) await send(`customer${n}@outlook.example`, `Your order ${4900 + n}`)
for (let n = 0; n < 2; n += 1) await send(`customer${n}@yahoo.example`, `Your order ${5000 + n}`)
await send({ email: 'nouser.ada@gmail.example', name: 'Ada Lovelace' }, 'Reset your Northwind password')
await until(async () => {
  const { json } = await service.call('GET /v1/stats?groupBy=site&by=total', { token })
  const sum = (of: string) => json.groups.reduce((all: number, one: Record<string, number>) => all + (one[of] ?? 0), 0)
  return sum('delivered') === 30 && sum('hardBounced') + sum('softBounced') === 3 && sum('deferred') >= 3 ? true : null
}, 120_000)

/** Presses of the mouse and of Enter; typing counts as nothing. */
class Presses {
  count = 0
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  async click(name: string | RegExp, role: 'link' | 'button' | 'row' = 'link'): Promise<void> {
    this.count += 1
    await this.page.getByRole(role, { name }).first().click()
  }

  async key(key: string): Promise<void> {
    this.count += 1
    await this.page.keyboard.press(key)
  }
}

async function opened(path: string) {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await untilShown(page)
  return { context, page, faults, presses: new Presses(page) }
}

const ofLive = (page: string) => `/servers/${liveServerId}/${page}`

t.test('task: why did Ada not get her mail: by her name, in three presses [dashboard.page]', async (t) => {
  const { context, page, faults, presses } = await opened(ofLive('overview'))
  await presses.key('Control+k')
  await page.getByRole('combobox').waitFor()
  await page.keyboard.type('Ada')
  await page.getByRole('option', { name: /Mail to Ada/ }).waitFor()
  await keepPictures(page, 'task-find')
  await presses.key('Enter')
  await presses.click('Reset your Northwind password')
  await page.getByText('The email account that you tried to reach does not exist').first().waitFor()
  t.ok(presses.count <= 3, `${presses.count} presses`)
  t.same(faults, [])
  await context.close()
})

t.test('task: which provider rejects mail, and which messages, in one press [dashboard.page]', async (t) => {
  const { context, page, faults, presses } = await opened(`${ofLive('overview')}?range=7d`)
  const table = page.getByRole('table', { name: 'Outcomes by provider' })
  await table.getByRole('row', { name: /Google.*24 \(96\.0 %\).*1 \(4\.0 %\)/ }).waitFor()
  await table.getByRole('row', { name: /Microsoft/ }).waitFor()
  await table.getByRole('row', { name: /Yahoo.*2 \(100\.0 %\)/ }).waitFor()
  await keepPictures(page, 'task-overview')
  t.same(await findingsOf(page), [])
  t.same(await layoutFaults(page), [])
  presses.count += 1
  await table
    .getByRole('row', { name: /Yahoo/ })
    .getByRole('link', { name: /100\.0 %/ })
    .click()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await page.getByRole('link', { name: 'Your order 5001' }).waitFor()
  t.equal(await page.getByRole('row').count(), 3, 'two messages and the head')
  t.match(page.url(), /site=yahoo&event=bounced&submittedFrom=/, 'the filters are in the address')
  t.ok(presses.count <= 1)
  t.same(faults, [])
  await context.close()
})

t.test('task: which webhook fails and why, in one press from the overview [webhook.health]', async (t) => {
  const { context, page, faults, presses } = await opened(ofLive('overview'))
  await page.getByText('hooks.northwind.example rejects events').waitFor()
  await presses.click('See deliveries')
  await page.getByRole('heading', { level: 1, name: hook.url }).waitFor()
  await page
    .getByText(/0 of the newest \d+ delivered/)
    .first()
    .waitFor()
  await page.getByText('DNS error').first().waitFor()
  await keepPictures(page, 'task-webhook')
  t.same(await findingsOf(page), [])
  await page.goto(`${origin}/dashboard${ofLive('webhooks')}`)
  await page.getByRole('row', { name: /hooks\.northwind\.example.*Failing.*DNS error/ }).waitFor()
  await keepPictures(page, 'task-webhooks')
  t.same(await findingsOf(page), [])
  t.ok(presses.count <= 1)
  t.match(page.url(), /webhooks$/)
  t.ok(webhookId)
  t.same(faults, [])
  await context.close()
})

t.test('task: is my domain set up, found by its name, in two presses [dashboard.page]', async (t) => {
  const { context, page, faults, presses } = await opened(ofLive('messages'))
  await presses.key('Control+k')
  await page.getByRole('combobox').waitFor()
  await page.keyboard.type('news.north')
  await page
    .getByRole('option', { name: /news\.northwind\.example/ })
    .first()
    .waitFor()
  await presses.key('Enter')
  await page.getByRole('heading', { level: 1, name: 'news.northwind.example' }).waitFor()
  await page.getByText('nothing under this name').first().waitFor()
  t.ok(presses.count <= 2)
  t.same(faults, [])
  await context.close()
})

t.test(
  'task: a test message from anywhere, in three presses, until it is delivered [member.test-message]',
  async (t) => {
    const { context, page, faults, presses } = await opened(`/servers/${testServerId}/keys`)
    await presses.key('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type('test mess')
    await page.getByRole('option', { name: /Send a test message/ }).waitFor()
    await presses.key('Enter')
    await page.getByRole('heading', { level: 1, name: 'Send a test message' }).waitFor()
    await presses.click('Send', 'button')
    await page.getByRole('link', { name: 'Open the message' }).waitFor()
    await page
      .getByText(/Delivered/)
      .first()
      .waitFor()
    t.ok(presses.count <= 3)
    t.same(faults, [])
    await context.close()
  },
)

t.test('task: the chart is read with keys, and leads to the messages of its hour [dashboard.page]', async (t) => {
  const { context, page, faults } = await opened(ofLive('overview'))
  const slider = page.getByRole('slider', { name: 'Hour shown' })
  t.match(await slider.getAttribute('aria-valuetext'), /36 accepted, .*delivered/)
  await slider.focus()
  await page.keyboard.press('ArrowLeft')
  t.match(await slider.getAttribute('aria-valuetext'), /: 0 accepted$/)
  await page.keyboard.press('ArrowRight')
  await page.getByRole('link', { name: 'See messages' }).click()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await page.getByRole('row').nth(36).waitFor()
  t.match(page.url(), /submittedFrom=.*&submittedTo=/)
  t.same(faults, [])
  await context.close()
})
