/**
 * docs - the documentation site in a real browser: every page without a finding of axe, without a sideways scroll on a
 * phone, and without a request to anything but the service; the reference of the API; the search. Skipped if there is
 * no Chromium.
 */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { ROOT } from '../../support/machine/root.ts'
import { findingsOf, startChromium, watchedPage } from '../../support/pages/chromium.ts'
import { startTestService } from '../../support/service/service.ts'

interface Group {
  readonly title: string
  readonly pages: readonly { readonly path: string; readonly text: string }[]
}

const PHONE = { width: 375, height: 812 }
const DESKTOP = { width: 1280, height: 860 }

/** A question of a new reader, the link of the front page that answers it, and the heading on the page behind it. */
const QUESTIONS = [
  ['set Reply-To', 'Sending', 'Reply-To and other headers'],
  ['test a password-reset mail', 'Test your emails', 'Test a password reset'],
  ['why a message bounced', 'Suppressions and bounces', 'Why did it bounce?'],
  ['verify a webhook', 'Webhooks', 'Verify each request'],
  ['how large a machine must be', 'Size the machine', 'Measurements'],
  ['a full disk', 'Run', 'When the store or the disk fills up'],
] as const

const browser = await startChromium()
const { NODE_OPTIONS: _loader, ...env } = process.env
execFileSync('/usr/bin/env', ['-u', 'NODE_OPTIONS', 'npm', 'run', '--silent', 'docs'], {
  cwd: ROOT,
  env,
  stdio: 'pipe',
})
const { SIDEBAR } = (await import(pathToFileURL(join(ROOT, 'docs/.vitepress/sidebar.mjs')).href)) as {
  readonly SIDEBAR: readonly Group[]
}
const paths = ['', ...SIDEBAR.flatMap(({ pages }) => pages.map(({ path }) => path))]
const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.httpPort}`

t.test('docs: every page fits a phone, passes axe and stays on its origin [docs.policy]', async (t) => {
  const context = await browser.newContext({ viewport: PHONE, reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  for (const path of paths) {
    const answer = await page.goto(`${origin}/docs/${path}`, { waitUntil: 'networkidle' })
    t.equal(answer?.status(), 200, path)
    t.equal(await page.locator('h1').count(), 1, `${path}: one title`)
    const wider = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    t.equal(wider, 0, `${path}: no sideways scroll`)
    t.same(await findingsOf(page), [], path)
    t.same(faults.splice(0), [], path)
  }
  t.same(await context.cookies(), [], 'no cookie is set')
  await context.close()
})

t.test('docs: the front page links to the answer of each first question [docs.page]', async (t) => {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce' })
  const { page } = await watchedPage(context, origin)
  for (const [question, link, heading] of QUESTIONS) {
    await page.goto(`${origin}/docs/`, { waitUntil: 'networkidle' })
    await page.locator('main').getByRole('link', { name: link, exact: true }).first().click()
    await page.locator('main h2, main h3').filter({ hasText: heading }).first().waitFor({ timeout: 10_000 })
    t.pass(question)
  }
  await context.close()
})

t.test('docs: the search finds a page by its words, in light and dark [docs.page]', async (t) => {
  const context = await browser.newContext({ viewport: DESKTOP, colorScheme: 'dark', reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/docs/`, { waitUntil: 'networkidle' })
  t.same(await findingsOf(page), [], 'dark')
  await page.keyboard.press('Control+k')
  await page.fill('#localsearch-input', 'Idempotency-Key')
  await page.locator('#localsearch-list a').first().waitFor()
  t.ok((await page.locator('#localsearch-list a').count()) > 1)
  t.same(faults, [])
  await context.close()
})

t.test('docs: the reference shows the document that the service serves [docs.page] [docs.policy]', async (t) => {
  const context = await browser.newContext({ viewport: DESKTOP, reducedMotion: 'reduce' })
  const { page, faults, requests } = await watchedPage(context, origin)
  await page.goto(`${origin}/docs/http-api/`, { waitUntil: 'networkidle' })
  await page.getByRole('heading', { name: 'Send one message to up to 50 recipients' }).first().waitFor()
  t.ok(requests.includes(`${origin}/v1/openapi.json`))
  t.same(faults, [])
  await context.close()
})
