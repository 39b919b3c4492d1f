/**
 * factors - second factors in a real browser: an authenticator and a passkey are set up, and each signs in, as does a
 * recovery code. The pages before the session are without a finding in both schemes and widths.
 */
import type { Page } from 'playwright-core'
import t from 'tap'
import { totpCode, totpStepAt } from '../../../src/dashboard/factor/totp.ts'
import { decodeBase32 } from '../../../src/mail/base32.ts'
import { findingsOf, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
// Browsers give an IP address no passkeys.
const origin = rig.origin.replace('127.0.0.1', 'localhost')
const VIEWS = [
  { width: 1280, height: 860 },
  { width: 375, height: 812 },
] as const

/** The current page, in both schemes and widths. */
async function look(page: Page, name: string) {
  for (const view of VIEWS)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize(view)
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      t.same(await findingsOf(page), [], `${name} ${view.width} ${colorScheme}`)
      t.notOk(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), `${name} ${view.width}`)
    }
  await page.setViewportSize(VIEWS[0])
}

async function signIn(page: Page) {
  await page.goto(`${origin}/dashboard/sign-in`)
  await page.getByLabel('Address').waitFor()
  await page.keyboard.type(rig.address)
  await page.keyboard.press('Tab')
  await page.keyboard.type(rig.password)
  await page.keyboard.press('Enter')
}

/**
 * Sets up an authenticator on the user's own page. Returns its codes by their step, and the recovery codes on the
 * screen.
 */
async function setUpTotp(page: Page) {
  await page.getByRole('button', { name: 'Set up' }).click()
  const digits = page.getByLabel('Six digits')
  await digits.waitFor()
  await look(page, 'authenticator')
  const shown = (await page.locator('dialog .copy span:not(.unseen)').first().textContent()) ?? ''
  const secret = decodeBase32(shown.replaceAll(' ', '').toLowerCase())
  const code = (ahead: number) => totpCode(secret, totpStepAt(Date.now()) + ahead)
  await digits.fill(code(0))
  await page.keyboard.press('Enter')
  const codes = ((await page.locator('dialog pre').textContent()) ?? '').split('\n')
  return { code, codes }
}

async function signOut(page: Page) {
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/sign-in$/)
}

t.test('factors: set up, signed in with, one after the other [session.factor] [session.passkey]', async (t) => {
  const context = await rig.chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await signIn(page)
  await page.waitForURL(/overview$/)
  await page.goto(`${origin}/dashboard/me`)
  const { code, codes } = await setUpTotp(page)
  t.equal(codes.length, 10)
  await page.getByRole('button', { name: 'I have them' }).click()
  await page.getByText('10 left').waitFor()
  await look(page, 'me')
  t.same(faults.splice(0), [])

  await page.route('**/dashboard/api/session', (route) => {
    const json = { error: 'unavailable', message: 'Service unavailable: nothing was accepted, try again' }
    return route.request().method() === 'DELETE' ? route.fulfill({ status: 503, json }) : route.continue()
  })
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('Service unavailable').waitFor()
  t.match(page.url(), /\/me$/, 'who could not be signed out stays')
  await page.unroute('**/dashboard/api/session')
  faults.splice(0)
  await signOut(page)
  await look(page, 'sign in')

  await signIn(page)
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await look(page, 'second step')
  await page.getByLabel('Code').fill('000000')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  faults.splice(0)
  await page.getByLabel('Code').fill(code(1))
  await page.keyboard.press('Enter')
  await page.waitForURL(/overview$/)

  // The check with axe ends the wait, so no one polls any more.
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  await page.goto(`${origin}/dashboard/me`)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('This laptop')
  await page.keyboard.press('Enter')
  await page.getByText('This laptop').waitFor()
  await signOut(page)
  await page.getByRole('button', { name: 'Use a passkey' }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(/overview$/)
  await signOut(page)

  // After the password it is the second step too, by the keyboard alone.
  await signIn(page)
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await page.getByRole('button', { name: 'Use a passkey' }).focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(/overview$/)
  await signOut(page)

  await signIn(page)
  await page.getByLabel('Code').fill(codes[0] ?? '')
  await page.keyboard.press('Enter')
  await page.waitForURL(/overview$/)
  // The first factor has ended the user's session elsewhere.
  const session = (await page.context().cookies()).find(({ name }) => name === 'sendwright')
  rig.administrator.cookie = `sendwright=${session?.value}`
  await page.goto(`${origin}/dashboard/me`)
  await page.getByText('9 left').waitFor()
  t.same(faults, [])
  await context.close()
})

t.test('factors: a user without a required factor sets one up first [session.factor] [dashboard.page]', async (t) => {
  const { accountId } = rig.service.firstRun.account
  const asked = await rig.administrator.call('PATCH /account', { requireSecondFactor: true })
  t.equal(asked.status, 200, asked.text)
  const made = await rig.service.operate(`POST /v1/operator/accounts/${accountId}/link`, {
    token: rig.service.firstRun.operatorToken,
    body: { address: 'joan@northwind.example', role: 'member' },
  })
  const context = await rig.chromium.newContext({ viewport: VIEWS[0], reducedMotion: 'reduce' })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/link#${made.json.url.split('#')[1]}`)
  await page.getByLabel('Your name').fill('Joan')
  await page.getByLabel('New password').fill(rig.password)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/me$/)
  await page.getByText('takes a second factor of everybody').waitFor()
  await page.getByRole('link', { name: 'People' }).click()
  await page.waitForURL(/\/me$/)
  await setUpTotp(page)
  await page.getByRole('button', { name: 'I have them' }).click()
  await page.getByText('10 left').waitFor()
  t.equal(await page.getByText('takes a second factor of everybody').count(), 0)
  await page.getByRole('link', { name: 'Messages' }).click()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  t.same(
    faults.filter((line) => !line.includes('409')),
    [],
  )
  await context.close()
})
