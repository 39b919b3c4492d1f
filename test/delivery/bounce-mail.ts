/** Scenarios of delivery: reports by mail about the outcomes of messages that came over SMTP (RFC 3461, RFC 3464). */
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { openSubmission } from '../support/peers/submission.ts'
import { startDelivery } from '../support/service/delivery.ts'

const WAIT_MS = 20_000
const delivery = await startDelivery({ SUBMISSION_DSN: 'on' })
const { service, destination, messageWhen } = delivery
const { config, firstRun } = service
const { account, liveServer, testServer } = firstRun
t.teardown(() => delivery.stop())

/** Receives the reports. */
const home = await destination('acme.example')
await destination('refused.test', { rcpt: '550 5.1.1 No such user <ann@refused.test>' })
await destination('taken.test')

const switchTo = async (bounceMail: boolean, serverId = liveServer.serverId) =>
  service.call(`PATCH /v1/servers/${serverId}`, { token: account.token, body: { bounceMail } })

interface Submitted {
  readonly from?: string
  readonly mailFrom?: string
  readonly recipient?: string
  readonly mailParameters?: string
  readonly parameters?: string
  readonly fields?: string
}

let unknowns = 0
/** An address that is refused, and was not before. */
function unknownAddress(): string {
  unknowns += 1
  return `ann${unknowns}@refused.test`
}

/** Submits a message. Returns its id once its recipient has reached a final state. */
async function submit({
  from = 'shop@acme.example',
  mailFrom = from,
  recipient = unknownAddress(),
  mailParameters = '',
  parameters = '',
  fields = '',
}: Submitted): Promise<string> {
  const dialog = await openSubmission(config.submissionPort, { password: liveServer.token })
  await dialog.say(`MAIL FROM:<${mailFrom}>${mailParameters}`)
  await dialog.say(`RCPT TO:<${recipient}>${parameters}`)
  await dialog.say('DATA')
  const header = `From: Shop <${from}>\r\nTo: ${recipient}\r\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nX-Own: yes\r\n`
  const reply = await dialog.say(`${header}Message-ID: <order-1@acme.example>\r\n${fields}\r\nThe secret text\r\n.`)
  dialog.end()
  const id = /^250 2\.0\.0 accepted (\S+)$/.exec(reply)?.[1]
  if (id === undefined) throw new Error(reply)
  await messageWhen(id, ({ status }) => status === 'delivered' || status === 'bounced' || status === 'suppressed')
  return id
}

const reports = () => home.sessions.flatMap(({ messages }) => messages)
const senders = () => home.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('MAIL')))
const reportOf = (id: string) =>
  until(() => reports().find((text) => text.includes(`Message-ID: <${id}.`)) ?? null, WAIT_MS)

/** A message whose report is the sign that all earlier reports would have come. */
async function settle(): Promise<void> {
  await switchTo(true)
  await reportOf(await submit({}))
}

t.test('bounce mail: EHLO offers DSN, and wrong values are refused [submission.reports]', async (t) => {
  const dialog = await openSubmission(config.submissionPort, { password: liveServer.token })
  t.match(await dialog.say('EHLO client.test'), /^250[ -]DSN$/m)
  const wrong = /^501 5\.5\.4 invalid_request Parameter has a wrong value$/
  for (const parameter of ['RET=ALL', `ENVID=${'a'.repeat(101)}`, 'ENVID=+C3+BC', 'ENVID=', 'RET'])
    t.match(await dialog.say(`MAIL FROM:<shop@acme.example> ${parameter}`), wrong, parameter)
  t.match(await dialog.say('MAIL FROM:<shop@acme.example> RET=HDRS RET=HDRS'), /^501 5\.5\.4 /)
  t.match(await dialog.say('MAIL FROM:<shop@acme.example> SMTPUTF8'), /^555 5\.5\.4 /)
  t.match(await dialog.say('MAIL FROM:<shop@acme.example> RET=FULL ENVID=a+2Bb'), /^250 /)
  const bad = ['NOTIFY=ALWAYS', 'NOTIFY=NEVER,FAILURE', 'NOTIFY=', 'ORCPT=ann@x.test', 'ORCPT=rfc822;+C3', 'NOTIFY']
  for (const parameter of [...bad, `ORCPT=rfc822;${'a'.repeat(500)}`])
    t.match(await dialog.say(`RCPT TO:<ann@x.test> ${parameter}`), wrong, parameter)
  t.match(await dialog.say('RCPT TO:<ann@x.test> NOTIFY=SUCCESS,DELAY,FAILURE ORCPT=rfc822;ann@x.test'), /^250 /)
  t.match(await dialog.say('RCPT TO:<bob@x.test> notify=never'), /^250 /)
  dialog.end()
})

t.test('bounce mail: none unless the server has it switched on [submission.reports]', async (t) => {
  const { json } = await service.call('GET /v1/server', { token: liveServer.token })
  t.equal(json.bounceMail, false)
  const off = await submit({})
  t.match((await switchTo(true, testServer.serverId)).json, {
    ...{ error: 'invalid_request', issues: [{ path: 'bounceMail', message: 'Must be false on a test server' }] },
  })
  t.match(await switchTo(true), { status: 200, json: { bounceMail: true } })
  await settle()
  t.notOk(reports().some((text) => text.includes(off)))
})

t.test('bounce mail: a failure is reported once, with the fields of its message [submission.reports]', async (t) => {
  await switchTo(true)
  const recipient = 'Ann@refused.test'
  const parameters = ' ORCPT=rfc822;ann@refused.test'
  const id = await submit({ recipient, mailParameters: ' RET=FULL ENVID=order+2B17', parameters })
  const report = await reportOf(id)
  for (const line of [
    /^From: Mail Delivery <postmaster@service\.example>$/m,
    /^To: <shop@acme\.example>$/m,
    new RegExp(`^Message-ID: <${id}\\.0\\.0@service\\.example>$`, 'm'),
    /^Auto-Submitted: auto-replied$/m,
    /^Content-Type: multipart\/report; report-type=delivery-status;$/m,
    /^Original-Envelope-Id: order\+17$/m,
    /^Reporting-MTA: dns; \S+$/m,
    /^Original-Recipient: rfc822; Ann@refused\.test$/m,
    /^Final-Recipient: rfc822; Ann@refused\.test$/m,
    /^Action: failed$/m,
    /^Status: 5\.1\.1$/m,
    /^Diagnostic-Code: smtp; 550 5\.1\.1 No such user <Ann@refused\.test>$/m,
    /^Content-Type: text\/rfc822-headers$/m,
    /^Message-ID: <order-1@acme\.example>$/m,
    /^Subject: =\?UTF-8\?/im,
    /^X-Own: yes$/m,
  ])
    t.match(report.replaceAll('\r\n', '\n'), line)
  t.notMatch(report, /secret/, 'no content')
  t.notMatch(report, /Feedback-ID|^Received/m)
  const again = await reportOf(await submit({ recipient }))
  t.match(again, /^Diagnostic-Code: x-sendwright; The address is on the suppression list/m)
  await settle()
  t.equal(reports().filter((text) => text.includes(`<${id}.`)).length, 1)
  t.ok(
    senders().every((line) => line.startsWith('MAIL FROM:<>')),
    'the null sender',
  )
})

t.test('bounce mail: NOTIFY chooses [submission.reports]', async (t) => {
  await switchTo(true)
  const relayed = await reportOf(await submit({ recipient: 'ann@taken.test', parameters: ' NOTIFY=SUCCESS' }))
  t.match(relayed, /^Action: relayed\r$/m)
  t.match(relayed, /^Status: 2\.\d+\.\d+\r$/m)
  const silent = [
    await submit({ recipient: 'ann@taken.test' }),
    await submit({ recipient: 'ann@taken.test', parameters: ' NOTIFY=FAILURE,DELAY' }),
    await submit({ parameters: ' NOTIFY=NEVER' }),
    await submit({ parameters: ' NOTIFY=SUCCESS' }),
  ]
  await settle()
  for (const id of silent)
    t.notOk(
      reports().some((text) => text.includes(id)),
      id,
    )
})

t.test('bounce mail: none to others, and none about automatic mail [submission.reports]', async (t) => {
  await switchTo(true)
  const silent = [
    await submit({ mailFrom: '' }),
    await submit({ mailFrom: 'boss@acme.example' }),
    await submit({ mailFrom: 'victim@bank.example' }),
    await submit({ fields: 'Auto-Submitted: auto-generated\r\n' }),
    await submit({ fields: 'Precedence: bulk\r\n' }),
    await submit({ fields: 'List-Id: <a.list.test>\r\n' }),
    await submit({ fields: 'Content-Type: multipart/report; boundary=b\r\n' }),
  ]
  const reported = await submit({ mailFrom: 'SHOP@Acme.example', fields: 'Auto-Submitted: no\r\n' })
  t.match(await reportOf(reported), /^Action: failed\r$/m)
  await settle()
  for (const id of silent)
    t.notOk(
      reports().some((text) => text.includes(id)),
      id,
    )
})
