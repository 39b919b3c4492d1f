/**
 * pages - every page of the dashboard in a real browser: without a finding of axe in both schemes, without an overflow
 * at 1,280 and 375 px, without console output or requests to other hosts, with few requests. The data is as long as in
 * real life: replies of large providers, a subject of 400 characters, an inbound stream.
 *
 * `PICTURES=folder` keeps a picture of each in both schemes and both widths for a review.
 */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, SCHEMES, untilShown, VIEWS, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { layoutFaults } from '../../support/pages/layout.ts'
import { startMx } from '../../support/peers/mx.ts'
import { deliverMail, openDialog } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { reportSamples } from '../../support/reports/samples.ts'
import { publishReporter, reportMail, sayMail } from '../../support/reports/send.ts'
import { SAMPLE_DOMAIN } from '../../support/reports/texts.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

/** As Gmail and Outlook reply: several hundred characters. */
const REPLIES: readonly (readonly [address: RegExp, reply: string])[] = [
  [
    /nouser/,
    "550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos or unnecessary spaces. For more information, go to https://support.google.com/mail/?p=NoSuchUser 4fb4d7f45d1cf-6415bb2f2fesi1234567a12.201 - gsmtp",
  ],
  [
    /outlook/,
    '451 4.7.500 Server busy. Please try again later from [192.0.2.25]. (S77719) [Name=Protocol Filter Agent][AGT=PFA][MxId=11BC5D0D4E6F7A21] [AM4PEPF00027A62.eurprd04.prod.outlook.com 2026-11-24T09:21:17.456Z 08DE2A4F7E2B0A1C]',
  ],
]
const mx = await startMx({
  rcpt: (line) => REPLIES.find(([address]) => address.test(line))?.[1] ?? '250 2.1.5 OK 4fb4d7f45d1cf - gsmtp',
})
const zone = await startZone()
const rig = await startDashboard({
  RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
  DNS_SERVERS: zone.server,
  SERVICE_DOMAIN: 'service.example',
  CONTENT_STORE: 'file',
})
t.teardown(async () => {
  await rig.stop()
  await zone.close()
  await mx.close()
})
const { service, testServerId, liveServerId } = rig
const { token } = service.firstRun.testServer
const account = service.firstRun.account.token
const LONG_SUBJECT = 'Your order 4711 of twelve umbrellas '.repeat(12).trim().slice(0, 400)
const PICTURES = process.env.PICTURES
/**
 * The requests of a page with its data, without files that are cached for good, and without mail and feed that
 * continue.
 */
const REQUESTS_MAX = 9
/** The same of the overview, which is the first page after signing in. */
const OVERVIEW_REQUESTS_MAX = 6
/** The values that a scheme decides. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block']

const send = async (body: object) => (await service.call('POST /v1/email', { token, body })).json.messageId as string

async function seed() {
  const from = { email: 'accounts@simulator.test', name: 'Northwind' }
  const webhook = await service.call('POST /v1/webhooks', {
    token,
    body: { url: 'https://hooks.northwind.example/mail' },
  })
  const domain = await service.call('POST /v1/domains', { token: account, body: { domain: 'mail.northwind.example' } })
  const messageId = await send({
    from,
    to: [{ email: 'deferred@simulator.test', name: 'Ada Lovelace' }],
    cc: ['bounce@simulator.test'],
    subject: 'Reset your Northwind password',
    text: 'Hello Ada',
    html: '<h1>Reset your password</h1><p>Hello Ada, <a href="https://northwind.example/reset">press here</a>.</p>',
    tag: 'password-reset',
    metadata: { user: '8123', release: '2026.47' },
  })
  const long = `${'very.'.repeat(10)}long@simulator.test`
  await send({ from, to: [long, 'second@simulator.test'], subject: 'مرحبا بك في نورثويند', text: 'Hello' })
  await send({ from, to: ['complaint@simulator.test'], subject: 'word '.repeat(60), text: 'Hello', tag: 'news' })
  await send({ from, to: ['blocked@simulator.test'], subject: 'Your receipt', text: 'Hello' })
  const body = { kind: 'broadcast', name: 'News' }
  const { streamId } = (await service.call('POST /v1/streams', { token, body })).json
  const broadcast = await service.call('POST /v1/broadcasts', {
    token,
    body: {
      streamId,
      from,
      subject: 'The news of November',
      text: 'Hello',
      messages: [{ to: 'delivered@simulator.test' }],
    },
  })
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
    return json.events.length >= 4 ? true : null
  }, 60_000)
  return {
    messageId,
    webhookId: webhook.json.webhookId as string,
    domainId: domain.json.domainId as string,
    broadcastId: broadcast.json.broadcastId as string,
  }
}

/** A domain with reports, one of which is not authenticated. */
async function seedReports(): Promise<string> {
  const { json } = await service.call('POST /v1/domains', { token: account, body: { domain: SAMPLE_DOMAIN } })
  const address = /mailto:(\S+)$/.exec(json.recommended[0].value)?.[1] as string
  const genuine = reportSamples(Date.now()).filter(({ content }) => !('issue' in content))
  const dialog = await openDialog(service.config.mxPort)
  await dialog.say('EHLO mx.reporter.example')
  for (const [at, sample] of genuine.slice(0, 22).entries()) {
    publishReporter(zone, sample.reporter)
    const reply = await sayMail(dialog, address, reportMail(sample, address, { isSigned: at > 0 }))
    if (!reply.startsWith('250')) throw new Error(reply)
  }
  dialog.end()
  return json.domainId
}

/** Live mail with long replies, and received mail on an inbound stream. */
async function seedLive() {
  const { token } = service.firstRun.liveServer
  await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: 'shop.northwind.example' })
  const sent = await service.call('POST /v1/email', {
    token,
    body: {
      from: { email: 'receipts@shop.northwind.example', name: 'Northwind Trading Company' },
      to: ['nouser.ada2@gmail.example'],
      cc: ['grace.hopper@outlook.example', 'billing@northwind.example'],
      subject: LONG_SUBJECT,
      html: '<p>Thank you for your order.</p>',
      tag: 'order-confirmation',
    },
  })
  // As many as a grown account has, with names as long as people give them.
  for (const n of [1, 2, 3, 4, 5, 6]) {
    const url = `https://hooks-${n}.customer-notifications.northwind.example/api/v2/integrations/sendwright/events`
    await service.call('POST /v1/webhooks', { token, body: { url } })
  }
  for (const name of ['transactional-emails-of-the-web-shop', 'invoices'])
    await service.call('POST /v1/domains', { token: account, body: { domain: `${name}.northwind.example` } })
  const news = { kind: 'broadcast', name: 'Newsletter for customers in the Nordic countries' }
  await service.call('POST /v1/streams', { token, body: news })
  const body = { kind: 'inbound', name: 'Receipts and complaints of customers' }
  const stream = (await service.call('POST /v1/streams', { token, body })).json
  const mail = `From: Ada Lovelace <ada@example.net>\nTo: Help <help@northwind.example>\nSubject: ${LONG_SUBJECT}\n\nWhere is my order?\n`
  const reply = await deliverMail(service.config.mxPort, stream.inboundAddress, mail)
  if (!reply.startsWith('250')) throw new Error(reply)
  const { messageId } = sent.json
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
    return json.events.length >= 3 ? true : null
  }, 60_000)
  const received = await until(async () => {
    const { json } = await service.call('POST /v1/inbound/search', { token, body: {} })
    return json.messages[0]?.subject == null ? null : json.messages[0]
  }, 60_000)
  return { messageId: messageId as string, receivedId: received.inboundMessageId as string }
}

const ids = await seed()
const live = await seedLive()
const reportedId = await seedReports()
const ofLive = (page: string, id?: string) => `/servers/${liveServerId}/${page}${id === undefined ? '' : `/${id}`}`
const of = (page: string, id?: string) => `/servers/${testServerId}/${page}${id === undefined ? '' : `/${id}`}`

/** Every page, and its heading. */
const PAGES: readonly (readonly [path: string, heading: string | RegExp])[] = [
  [of('overview'), 'Overview'],
  [`${ofLive('overview')}?range=30d`, 'Overview'],
  [ofLive('webhooks'), 'Webhooks'],
  [of('start'), 'Send a test message'],
  [of('messages'), 'Messages'],
  [ofLive('messages'), 'Messages'],
  [ofLive('messages', live.messageId), LONG_SUBJECT],
  [ofLive('received'), 'Received'],
  [ofLive('received', live.receivedId), /./],
  [ofLive('streams'), 'Streams'],
  [of('messages', ids.messageId), 'Reset your Northwind password'],
  [of('broadcasts'), 'Broadcasts'],
  [of('broadcasts', ids.broadcastId), 'The news of November'],
  [of('received'), 'Received'],
  [of('suppressions'), 'Suppressions'],
  [of('webhooks'), 'Webhooks'],
  [of('webhooks', ids.webhookId), 'https://hooks.northwind.example/mail'],
  [of('streams'), 'Streams'],
  [of('keys'), 'Keys'],
  ['/servers', 'Servers'],
  ['/domains', 'Domains'],
  [`/domains/${ids.domainId}`, 'mail.northwind.example'],
  [`/domains/${ids.domainId}/reports`, 'Reports'],
  [`/domains/${reportedId}/reports`, 'Reports'],
  ['/requests', 'Requests'],
  ['/people', 'People'],
  ['/erasures', 'Erasures'],
  ['/activity', 'Activity'],
  ['/account', 'First account'],
  ['/me', 'Grace Hopper'],
]

/** `/servers/<uuid>/messages/<uuid>` is `test-messages-one`. */
function nameOf(path: string): string {
  const words = path
    .replace(testServerId, 'test')
    .replace(liveServerId, 'live')
    .replace(/[0-9a-f-]{36}/, 'one')
    .replace(/[?].*/, '')
  return words.replace('/servers/', '/').replaceAll('/', '-').slice(1)
}

async function keep(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })
  // The first view. docs/guides/dashboard.md shows some of these.
  await page.screenshot({ path: join(PICTURES, `${name}-top.jpg`), quality: 72 })
}

t.test('pages: each without a finding, in both schemes and widths [dashboard.page] [dashboard.policy]', async (t) => {
  const context = await rig.signedIn({ viewport: VIEWS[0], colorScheme: 'light', reducedMotion: 'reduce' })
  for (const [path, heading] of PAGES) {
    const { page, faults, requests } = await watchedPage(context, rig.origin)
    await page.goto(`${rig.origin}/dashboard${path}`)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await page.waitForLoadState('load')
    await untilShown(page)
    const asked = requests.filter((url) => !/\.(?:js|css|woff2)$|\/events$|\/dashboard\/mail\//.test(url))
    const most = heading === 'Overview' ? OVERVIEW_REQUESTS_MAX : REQUESTS_MAX
    t.ok(asked.length <= most, `${path} asks ${asked.length} times: ${asked.join(' ')}`)
    for (const view of VIEWS)
      for (const scheme of SCHEMES) {
        await page.setViewportSize(view)
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
        const isFirst = scheme === 'light'
        t.same(await findingsOf(page, isFirst ? undefined : OF_COLOURS), [], `${path} ${view.width} ${scheme}`)
        t.same(await layoutFaults(page), [], `${path} ${view.width}`)
        await keep(page, `${nameOf(path)}-${scheme}-${view.width}`)
      }
    t.same(faults, [], path)
    await page.close()
  }
  await context.close()
})
