/**
 * pages - every page of the dashboard in a real browser: without a finding of axe in both schemes, at 1,280 and 375 px
 * without anything over the edge, no line on the console, nothing asked of another host, few requests.
 *
 * `PICTURES=folder` keeps a picture of each in both schemes and both widths, to be looked at.
 */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, SCHEMES, untilShown, VIEWS, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
const { service, testServerId, liveServerId } = rig
const { token } = service.firstRun.testServer
const account = service.firstRun.account.token
const PICTURES = process.env.PICTURES
/** Of a page with its data, files that are kept for good left out, and the mail and the feed that go on. */
const REQUESTS_MAX = 10
/** What a scheme decides. */
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

const ids = await seed()
const of = (page: string, id?: string) => `/servers/${testServerId}/${page}${id === undefined ? '' : `/${id}`}`

/** Every page, and its heading. */
const PAGES: readonly (readonly [path: string, heading: string | RegExp])[] = [
  [of('overview'), 'Overview'],
  [of('start'), 'Send a test message'],
  [of('messages'), 'Messages'],
  [`/servers/${liveServerId}/messages`, 'Messages'],
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
  ['/requests', 'Requests'],
  ['/people', 'People'],
  ['/erasures', 'Erasures'],
  ['/activity', 'Activity'],
  ['/account', 'First account'],
  ['/me', 'Grace Hopper'],
]

const isOver = (page: Page) => page.evaluate('document.documentElement.scrollWidth > innerWidth')

async function keep(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return
  await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true })
  // What is seen first: docs/guides/dashboard.md shows some of these.
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
    t.ok(asked.length <= REQUESTS_MAX, `${path} asks ${asked.length} times: ${asked.join(' ')}`)
    for (const view of VIEWS)
      for (const scheme of SCHEMES) {
        await page.setViewportSize(view)
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
        const isFirst = scheme === 'light'
        t.same(await findingsOf(page, isFirst ? undefined : OF_COLOURS), [], `${path} ${view.width} ${scheme}`)
        t.notOk(await isOver(page), `${path} ${view.width} stands over the edge`)
        await keep(page, `${heading.toString().replace(/\W+/g, '-').slice(0, 30)}-${scheme}-${view.width}`)
      }
    t.same(faults, [], path)
    await page.close()
  }
  await context.close()
})
