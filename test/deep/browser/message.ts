/**
 * message - a message's page in a real browser: it is sent again only to recipients that were chosen, its request is
 * copied whole, its images are shown while they are stored.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, keepPictures, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

const mx = await startMx({ rcpt: (line) => (line.includes('later') ? '451 4.7.1 later' : '250 2.1.5 ok') })
const zone = await startZone()
const rig = await startDashboard({
  RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
  DNS_SERVERS: zone.server,
  SERVICE_DOMAIN: 'service.example',
})
t.teardown(async () => {
  await rig.stop()
  await zone.close()
  await mx.close()
})
await verifyDomain(rig.service.config.httpPort, rig.service.firstRun, { zone, domain: 'acme.example' })
const { service, origin, testServerId } = rig
const { token } = service.firstRun.testServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const pathOf = (messageId: string) => `${origin}/dashboard/servers/${testServerId}/messages/${messageId}`
const WAIT_MS = 60_000
/** A red pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** Sends a message and waits until every recipient has left the first status. */
async function sendAndWait(body: object) {
  const { messageId } = (await service.call('POST /v1/email', { token, body })).json
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
    return json.recipients.every(({ status }: { status: string }) => status !== 'accepted') ? true : null
  }, WAIT_MS)
  return messageId as string
}

t.test('message: sent again after a question, to those who did not get it [member.send-again]', async (t) => {
  const messageId = await sendAndWait({
    from: 'accounts@simulator.test',
    to: ['delivered@simulator.test'],
    cc: ['hardbounce+ada@simulator.test', 'deferred@simulator.test'],
    bcc: ['delivered+bcc@simulator.test'],
    subject: 'Reset your password',
    text: 'Hello',
  })
  const messages = async () =>
    (await service.call('POST /v1/messages/search', { token, body: {} })).json.messages as {
      readonly messageId: string
      readonly recipients: readonly { readonly recipient: string }[]
    }[]
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(pathOf(messageId))
  await page.getByRole('button', { name: 'Send again' }).click()
  const dialog = page.getByRole('dialog')
  const tick = (name: string) => dialog.getByLabel(name)
  await tick('delivered@simulator.test (to)').waitFor()
  t.notOk(await tick('delivered@simulator.test (to)').isChecked(), 'it was delivered')
  t.notOk(await tick('delivered+bcc@simulator.test (bcc)').isChecked(), 'it was delivered')
  t.notOk(await tick('deferred@simulator.test (cc)').isChecked(), 'it is still retried')
  t.ok(await tick('hardbounce+ada@simulator.test (cc)').isChecked(), 'it bounced')
  t.same(await findingsOf(page), [])
  await keepPictures(page, 'send-again')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  t.equal((await messages()).length, 1, 'a question that is cancelled sends nothing')
  await page.getByRole('button', { name: 'Send again' }).click()
  await tick('hardbounce+ada@simulator.test (cc)').uncheck()
  t.ok(await dialog.getByRole('button', { name: 'Select recipients' }).isDisabled(), 'without a recipient')
  await tick('hardbounce+ada@simulator.test (cc)').check()
  await dialog.getByRole('button', { name: 'Send to 1 recipient' }).click()
  await page.getByText('Sent again. This is the new message.').waitFor()
  const sent = await messages()
  t.equal(sent.length, 2)
  t.same(
    sent.find((one) => one.messageId !== messageId)?.recipients.map(({ recipient }) => recipient),
    ['hardbounce+ada@simulator.test'],
  )
  t.same(faults, [])
  await context.close()
})

t.test('message: a scheduled one shows its time and is cancelled after a question [message.cancel]', async (t) => {
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const body = { from: 'a@simulator.test', to: ['delivered@simulator.test'], subject: 'Later', text: 'Hello', sendAt }
  const { messageId } = (await service.call('POST /v1/email', { token, body })).json
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/messages?status=scheduled`)
  await page.getByRole('link', { name: 'Later' }).click()
  await page.getByText('Scheduled for').waitFor()
  t.same(await findingsOf(page), [])
  await keepPictures(page, 'scheduled')
  const head = page.locator('main')
  await head.getByRole('button', { name: 'Cancel', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel message' }).click()
  await page.getByText('The message is cancelled').waitFor()
  await page.getByText('Scheduled for').waitFor({ state: 'detached' })
  const { json } = await service.call(`GET /v1/messages/${messageId}`, { token })
  t.equal(json.recipients[0].status, 'cancelled')
  t.same(faults, [])
  await context.close()
})

t.test('message: copied as the request that made it, with its real content [dashboard.page]', async (t) => {
  const request = {
    from: { email: 'accounts@simulator.test', name: 'Northwind' },
    to: [{ email: 'delivered@simulator.test', name: "Ada O'Neill" }],
    bcc: ['delivered+bcc@simulator.test'],
    subject: 'Your key isn\'t "lost"',
    text: "It's here: $HOME `id` \\n",
    html: '<p style="color:red">It\'s here</p>',
    headers: { 'Reply-To': 'help@simulator.test' },
    tag: 'key',
    metadata: { user: '8123' },
  }
  const messageId = await sendAndWait(request)
  const context = await rig.signedIn(VIEW)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin })
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(pathOf(messageId))
  await page.getByRole('button', { name: 'Copy as curl' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const command: string = await page.evaluate('navigator.clipboard.readText()')
  // A shell runs it as it is: only the key is not in it.
  const run = await promisify(execFile)('sh', ['-c', command.replace('sk_test_...', token)], { timeout: WAIT_MS })
  t.match(JSON.parse(run.stdout), { status: 'accepted' }, run.stderr)
  const sent = await service.call(`GET /v1/messages/${JSON.parse(run.stdout).messageId}`, { token })
  for (const name of ['from', 'subject', 'text', 'html', 'headers', 'tag', 'metadata'] as const)
    t.same(sent.json[name], (await service.call(`GET /v1/messages/${messageId}`, { token })).json[name], name)
  t.match(sent.json.recipients, [
    { recipient: 'delivered@simulator.test', name: "Ada O'Neill", kind: 'to' },
    { recipient: 'delivered+bcc@simulator.test', kind: 'bcc' },
  ])
  t.same(faults, [])
  await context.close()
})

t.test('message: its images are shown while they are stored, then their end [member.frame]', async (t) => {
  const { token, serverId } = service.firstRun.liveServer
  const image = { name: 'logo.png', content: PIXEL, contentType: 'image/png', contentId: 'logo@acme' }
  const send = async (to: string) => {
    const html = '<p>Hello <img src="cid:logo@acme" alt="Logo"></p>'
    const body = { from: 'news@acme.example', to: [to], subject: 'Pictures', html, attachments: [image] }
    return (await service.call('POST /v1/email', { token, body })).json.messageId as string
  }
  const [waiting, done] = [await send('later@b.example'), await send('bob@b.example')]
  await until(async () => {
    const { json } = await service.call(`GET /v1/messages/${done}`, { token })
    return json.status === 'delivered' ? true : null
  }, WAIT_MS)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  const sourceOf = async (messageId: string) => {
    await page.goto(`${origin}/dashboard/servers/${serverId}/messages/${messageId}`)
    await page.getByRole('button', { name: /^Show/ }).click()
    await page.locator('iframe').scrollIntoViewIfNeeded()
    const picture = page.frameLocator('iframe').locator('img')
    await picture.waitFor()
    await keepPictures(page, `inline-image-${messageId === done ? 'gone' : 'stored'}`)
    return (await picture.getAttribute('src')) ?? ''
  }
  t.equal(await sourceOf(waiting), `data:image/png;base64,${PIXEL}`)
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'logo.png' }).click(),
  ])
  t.equal(readFileSync(await file.path()).toString('base64'), PIXEL)
  await page.getByRole('tab', { name: 'Raw' }).click()
  const [raw] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: /as it is sent/ }).click(),
  ])
  t.match(readFileSync(await raw.path(), 'latin1'), /^DKIM-Signature: /)
  const gone = await sourceOf(done)
  t.equal(await page.getByRole('tab', { name: 'Raw' }).count(), 0)
  t.equal(await page.getByRole('link', { name: 'logo.png' }).count(), 0)
  t.match(gone, /^data:image\/svg\+xml;base64,/)
  t.match(Buffer.from(gone.split(',')[1] ?? '', 'base64').toString(), 'Image no longer stored')
  t.same(faults, [])
  await context.close()
})

t.test('message: what mail clients drop is listed, and links are checked when that is asked for', async (t) => {
  const html = '<p>Hello</p>\n<video></video><a href="https://acme.example/r/k3J9xQ2mZ8vT5bN1cR7wL0">Reset</a>'
  const body = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'Checks', html }
  const { messageId } = (await service.call('POST /v1/email', { token, body })).json
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/messages/${messageId}`)
  await page.getByRole('tab', { name: 'Checks' }).click()
  await page.getByRole('button', { name: 'Check content and links' }).click()
  const findings = page.getByRole('list', { name: 'Findings' })
  await findings.getByText(/<video> element/).waitFor()
  t.match((await findings.textContent()) ?? '', /line 2/)
  t.match((await page.getByRole('list', { name: 'Links' }).textContent()) ?? '', /Not checked, token, html line 2/)
  t.same(faults, [])
  await context.close()
})
