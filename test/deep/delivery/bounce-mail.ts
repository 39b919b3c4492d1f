/**
 * The process is ended with SIGKILL while bounces are recorded, and once more while their reports are being handed
 * over: the sender gets one report of each.
 */
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { openSubmission } from '../../support/peers/submission.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const WAIT_MS = 20_000
const MESSAGES = 20

t.test('crash: killed while reports wait, each is sent once [submission.reports]', async (t) => {
  const [zone, port] = [await startZone(), await freePort()]
  const submissionPort = await freePort()
  const [refusing, home] = [
    await startMx({ rcpt: '550 5.1.1 No such user' }, { host: '127.0.79.1', port }),
    await startMx({ banner: 'hang' }, { host: '127.0.79.2', port }),
  ]
  for (const [domain, address] of [
    ['refused.test', '127.0.79.1'],
    ['acme.example', '127.0.79.2'],
  ] as const) {
    zone.set(domain, { type: 'MX', exchange: `mx.${domain}`, priority: 10 })
    zone.set(`mx.${domain}`, { type: 'A', address })
  }
  const scene = await startScene({
    ...{ DNS_SERVERS: zone.server, DELIVERY_PORT: String(port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' },
    ...{ SUBMISSION_DSN: 'on', SUBMISSION_PORT: String(submissionPort), SERVICE_DOMAIN: 'service.example' },
  })
  const { settings, firstRun } = scene
  let host: Host = scene.host
  t.teardown(async () => {
    await host.kill('SIGKILL')
    await scene.end()
    await Promise.all([refusing.close(), home.close(), zone.close()])
  })
  const httpPort = Number(settings.HTTP_PORT)
  await verifyDomain(httpPort, firstRun, { zone, domain: 'acme.example' })
  const switched = await fetch(`http://127.0.0.1:${httpPort}/v1/servers/${firstRun.liveServer.serverId}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${firstRun.account.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ bounceMail: true }),
  })
  t.equal(switched.status, 200)
  const submit = async (n: number): Promise<string> => {
    const dialog = await openSubmission(submissionPort, { password: firstRun.liveServer.token })
    await dialog.say('MAIL FROM:<shop@acme.example>')
    await dialog.say(`RCPT TO:<ann${n}@refused.test>`)
    await dialog.say('DATA')
    const reply = await dialog.say(`From: shop@acme.example\r\nSubject: ${n}\r\n\r\nHello\r\n.`)
    dialog.end()
    return /^250 2\.0\.0 accepted (\S+)$/.exec(reply)?.[1] ?? reply
  }
  const ids: string[] = []
  for (let n = 0; n < MESSAGES; n += 1) ids.push(await submit(n))
  const refusals = () =>
    refusing.sessions.flatMap(({ commands }) => commands.filter((line) => line.startsWith('RCPT'))).length
  // Some outcomes are recorded and others are on their way.
  await until(() => refusals() >= MESSAGES / 2, WAIT_MS)
  await host.kill('SIGKILL')
  host = await startHost(settings)
  await until(() => home.sessions.length > 0, WAIT_MS)
  await host.kill('SIGKILL')
  home.script({})
  host = await startHost(settings)
  const reports = () => home.sessions.flatMap(({ messages }) => messages)
  const reportsOf = (id: string) => reports().filter((text) => text.includes(`Message-ID: <${id}.0.0@`)).length
  await until(() => ids.every((id) => reportsOf(id) > 0), 3 * WAIT_MS)
  const last = await submit(MESSAGES)
  await until(() => reportsOf(last) > 0, 3 * WAIT_MS)
  t.same(
    ids.map(reportsOf),
    ids.map(() => 1),
  )
})
