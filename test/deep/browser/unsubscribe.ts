/**
 * unsubscribe - the page in a real browser: the button, its undo, an undo that comes too late; light, dark and on a
 * phone, without a finding of axe. Skipped if there is no Chromium.
 */
import t from 'tap'
import { formatUnsubscribeToken } from '../../../src/mail/unsubscribe-token.ts'
import { makeSecrets } from '../../../src/process/secrets.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { until } from '../../support/machine/until.ts'
import { findingsOf, startChromium } from '../../support/pages/chromium.ts'
import { startTestService } from '../../support/service/service.ts'
import { ringOf } from '../../support/world/rings.ts'

const MINUTE_DAYS = 61 / 86_400

const browser = await startChromium()
const clock = MOVED_CLOCK_SKIP === false ? makeMovedClock() : null
const service = await (clock === null ? startTestService() : clock.around(() => startTestService()))
const { token, serverId } = service.firstRun.testServer
const { accountId } = service.firstRun.account
t.teardown(async () => {
  await browser.close()
  await service.stop()
})
const secrets = makeSecrets(ringOf(service.config.secretKey as string))
const call = (what: string, body: object) => service.call(what, { token, body })
const { streamId } = (await call('POST /v1/streams', { kind: 'broadcast', name: 'News' })).json

/** Sends to an address. Returns the link in the mail. */
async function linkOf(address: string, name = 'Acme "News" <b>'): Promise<string> {
  const from = { email: 'news@simulator.test', name }
  const { json } = await call('POST /v1/email', { from, to: [address], subject: 'News', text: 'Hello', streamId })
  const hmac = secrets.addressHmac(accountId, address)
  const of = { messageId: json.messageId, recipient: 0, serverId, streamId, hmac }
  return `http://127.0.0.1:${service.config.httpPort}/u/${formatUnsubscribeToken(secrets.tokenKey, of)}`
}

const reasonsOf = async (recipient: string) =>
  (await call('POST /v1/suppressions/search', { recipient })).json.suppressions.map(
    ({ reason }: { reason: string }) => reason,
  )

t.test('unsubscribe: a person clicks, undoes it, clicks again [unsubscribe.page] [unsubscribe.minute]', async (t) => {
  const page = await browser.newPage({ locale: 'de-AT' })
  const faults: string[] = []
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()))
  page.on(
    'request',
    (request) => new URL(request.url()).host !== `127.0.0.1:${service.config.httpPort}` && faults.push(request.url()),
  )
  const link = await linkOf('delivered+a@simulator.test')
  await page.goto(link)
  t.match(await page.textContent('main'), /Acme "News" <b>.*news@simulator\.test/)
  t.equal(await page.getAttribute('html', 'lang'), 'de')
  await page.click('button')
  t.match(await page.textContent('main'), /Sie sind abgemeldet/)
  await page.click('button')
  t.match(await page.textContent('main'), /Sie bleiben angemeldet/)
  await page.reload()
  await page.click('button')
  t.match(await page.textContent('main'), /Sie sind abgemeldet/)
  t.same(faults, [], 'nothing is refused by the policy, and nothing fetched from elsewhere')
  await page.close()
})

t.test(
  'unsubscribe: with the keyboard alone, and an undo that comes too late [unsubscribe.minute]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    const address = 'delivered+b@simulator.test'
    const page = await browser.newPage({ locale: 'en-US' })
    await page.goto(await linkOf(address))
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.waitForURL(/confirm$/)
    clock?.moveTo(MINUTE_DAYS)
    await until(async () => ((await reasonsOf(address)).length > 0 ? true : null), 20_000)
    await page.click('button')
    t.match(await page.textContent('main'), /too late/)
    t.equal(await page.locator('button').count(), 0)
    t.same(await reasonsOf(address), ['unsubscribe'])
    await page.close()
  },
)

for (const [name, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { colorScheme: 'dark', viewport: { width: 320, height: 560 } }],
] as const)
  t.test(`unsubscribe: ${name} [unsubscribe.page]`, async (t) => {
    const page = await browser.newPage(options)
    const link = await linkOf(`delivered+${name}@simulator.test`, 'n'.repeat(100))
    for (const url of [link, `${link}x`]) {
      await page.goto(url)
      t.same(await findingsOf(page), [])
      const size = await page.evaluate('JSON.stringify([document.documentElement.scrollWidth, innerWidth])')
      const [scrollWidth, clientWidth] = JSON.parse(size as string) as [number, number]
      t.equal(scrollWidth, clientWidth, 'nothing stands over the edge')
    }
    await page.goto(link)
    const box = await page.locator('button').boundingBox()
    t.ok((box?.height ?? 0) >= 44, 'a finger hits the button')
    await page.close()
  })
