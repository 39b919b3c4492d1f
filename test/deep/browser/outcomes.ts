/** outcomes - the overview by provider, reason and stream, by keyboard. A figure leads to its messages. */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { keepPictures, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
const { service, origin, testServerId } = rig
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const { token } = service.firstRun.testServer

async function send(local: string, tag: string): Promise<void> {
  const body = {
    from: 'shop@simulator.test',
    to: [`${local}@simulator.test`],
    subject: 'Hello',
    text: 'It works',
    tag,
  }
  t.equal((await service.call('POST /v1/email', { token, body })).status, 200)
}

t.test('outcomes: three presses lead from the overview to the messages of a stream [dashboard.page]', async (t) => {
  for (let n = 0; n < 20; n += 1) await send(`delivered+${n}`, 'receipt')
  await send('hardbounce', 'receipt')
  await send('delivered', 'welcome')
  await until(async () => {
    const { json } = await service.call('GET /v1/stats?groupBy=stream&by=total', { token })
    return json.groups[0]?.delivered === 21 && json.groups[0].hardBounced === 1 ? true : null
  }, 60_000)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/overview`)
  const row = page.getByRole('table', { name: 'Outcomes by provider' }).getByRole('row', { name: /Simulator/ })
  await row.getByText('21 (95.5 %)').waitFor()
  t.match(await row.textContent(), /\d+\.\d s/, 'twenty deliveries have a time')
  await keepPictures(page, 'outcomes-provider')
  await page.getByRole('button', { name: 'Reason' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('table', { name: 'Outcomes by reason' }).getByText('Invalid recipient').waitFor()
  await page.getByRole('button', { name: 'Stream', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('table', { name: 'Outcomes by stream' }).getByRole('link', { name: /^21 / }).click()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await page.getByRole('row').nth(20).waitFor()
  t.same(faults, [])
  await context.close()
})

t.test('outcomes: a test message is one press away, and a third key is not offered [dashboard.page]', async (t) => {
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/overview`)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Send a test message' }).first().click()
  await page.getByRole('heading', { level: 1, name: 'Send a test message' }).waitFor()
  const body = { name: 'second' }
  t.equal((await service.call('POST /v1/tokens', { token, body })).status, 201)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/keys`)
  await page.getByText('2 keys are active, the maximum. Revoke one to create another.').waitFor()
  t.ok(await page.getByRole('button', { name: 'New key' }).isDisabled())
  t.same(faults, [])
  await context.close()
})

t.test('outcomes: a broadcast shows its own, and its figures lead to its messages [message.outcomes]', async (t) => {
  const stream = await service.call('POST /v1/streams', { token, body: { kind: 'broadcast', name: 'News' } })
  const to = ['delivered+1', 'delivered+2', 'hardbounce+news'].map((local) => ({ to: `${local}@simulator.test` }))
  const body = {
    streamId: stream.json.streamId,
    from: 'shop@simulator.test',
    subject: 'News',
    text: 'Hi',
    messages: to,
  }
  const { broadcastId } = (await service.call('POST /v1/broadcasts', { token, body })).json
  await until(async () => {
    const { json } = await service.call('POST /v1/messages/outcomes', { token, body: { broadcastId } })
    return json.recipients.delivered === 2 && json.recipients.bounced === 1 ? true : null
  }, 60_000)
  const context = await rig.signedIn(VIEW)
  const { page, faults } = await watchedPage(context, origin)
  await page.goto(`${origin}/dashboard/servers/${testServerId}/broadcasts/${broadcastId}`)
  const outcomes = page.getByRole('region', { name: 'Outcomes' })
  await outcomes.getByText('66.7 %').waitFor()
  await outcomes.getByText('33.3 %').waitFor()
  await keepPictures(page, 'outcomes-broadcast')
  await outcomes.getByRole('link', { name: 'InvalidRecipient 1' }).waitFor()
  await outcomes.getByRole('link', { name: 'Bounced' }).click()
  await page.getByRole('heading', { level: 1, name: 'Messages' }).waitFor()
  await page.getByText('hardbounce+news@simulator.test').waitFor()
  t.equal(await page.getByRole('row').count(), 2)
  t.same(faults, [])
  await context.close()
})
