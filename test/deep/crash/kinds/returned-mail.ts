/**
 * The process is ended with SIGKILL while a bounce is being handed to it: right after the final dot, and a moment
 * later, when it may have been recorded. A mail server that got no 250 sends it again; one that did need not. Either
 * way it is told once.
 */
import t from 'tap'
import { freePort } from '../../../support/machine/port.ts'
import { until } from '../../../support/machine/until.ts'
import { startMx } from '../../../support/peers/mx.ts'
import { deliverMail, openDialog } from '../../../support/peers/smtp-dialog.ts'
import { startZone } from '../../../support/peers/zone.ts'
import { verifyDomain } from '../../../support/service/crash-live.ts'
import { startScene } from '../../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../../support/service/host.ts'

const WAIT_MS_MAX = 15_000
const DSN = `From: MAILER-DAEMON@mx.example
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: message/delivery-status

Final-Recipient: rfc822; person@example.com
Action: failed
Status: 5.1.1

--b--
`

const id = 'bounce.once'
t.test(`crash: killed between DATA and 250, a bounce is told once and none is lost [${id}]`, async (t) => {
  const mx = await startMx()
  const zone = await startZone()
  const mxPort = await freePort()
  const relay = { RELAY_URL: `smtp://127.0.0.1:${mx.port}`, MX_PORT: String(mxPort), CONTENT_STORE: 'file' }
  const scene = await startScene({ ...relay, DNS_SERVERS: zone.server })
  const { settings, firstRun } = scene
  let host: Host = scene.host
  t.teardown(async () => {
    await host.kill('SIGKILL')
    await scene.end()
    await mx.close()
    await zone.close()
  })
  const port = Number(settings.HTTP_PORT)
  await verifyDomain(port, firstRun, { zone, domain: 'acme.example' })
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${firstRun.liveServer.token}`, connection: 'close' }
    const json = body === undefined ? {} : { body: JSON.stringify(body) }
    const type = { ...headers, 'content-type': 'application/json' }
    return (await fetch(`http://127.0.0.1:${port}${path}`, { method, headers: type, ...json })).json() as Promise<{
      messageId: string
      status: string
      events: { event: string }[]
    }>
  }
  for (const killAfter of ['dot', 'moment'] as const) {
    const to = [`${killAfter}@example.com`]
    const sent = await call('POST', '/v1/email', { from: 'shop@acme.example', to, subject: 'Hello', text: 'Mail' })
    const read = () => call('GET', `/v1/messages/${sent.messageId}`)
    await until(async () => (await read()).status === 'delivered', WAIT_MS_MAX)
    const said = mx.sessions.flatMap(({ commands }) => commands)
    const returnPath = said.map((line) => /^MAIL FROM:<([^>]*)>/.exec(line)?.[1]).findLast(Boolean) ?? ''
    const dialog = await openDialog(mxPort)
    for (const line of ['EHLO mx.example', 'MAIL FROM:<>', `RCPT TO:<${returnPath}>`, 'DATA']) await dialog.say(line)
    const mail = DSN.replaceAll('\n', '\r\n')
    const answer = dialog.say(`${mail}\r\n.`)
    // The commit of the bounce is under way once the mail was parsed; nobody can say at which step the end comes.
    if (killAfter === 'moment')
      await Promise.race([answer, until(async () => (await read()).events.length > 1, WAIT_MS_MAX)])
    await host.kill('SIGKILL')
    const heard = await answer
    host = await startHost(settings)
    if (heard.startsWith('250')) t.equal((await read()).status, 'bounced', `${killAfter}: 250 was a promise`)
    else t.match(await deliverMail(mxPort, returnPath, DSN), /^250 /)
    const message = await read()
    t.same(
      message.events.map(({ event }) => event),
      ['delivered', 'bounced'],
      killAfter,
    )
  }
})
