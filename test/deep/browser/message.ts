/** message - a message's page in a real browser: it is sent again only to recipients that were chosen. */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { findingsOf, keepPictures, watchedPage } from '../../support/pages/chromium.ts'
import { startDashboard } from '../../support/pages/dashboard.ts'

const rig = await startDashboard()
t.teardown(() => rig.stop())
const { service, origin, testServerId } = rig
const { token } = service.firstRun.testServer
const VIEW = { viewport: { width: 1280, height: 860 }, reducedMotion: 'reduce' } as const
const pathOf = (messageId: string) => `${origin}/dashboard/servers/${testServerId}/messages/${messageId}`
const WAIT_MS = 60_000

/** Sends a message and waits until none of its recipients is new. */
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
