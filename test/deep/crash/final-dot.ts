/**
 * The process is ended when the receiving server has the whole message and has not yet answered. After a SIGKILL the
 * next start must deliver the message; the receiver may get it once more, not more often, and it is the same message.
 * A SIGTERM waits for a server that answers in time, and that server gets nothing twice.
 */
import t, { type Test } from 'tap'
import { checkSettled } from '../../support/clients/crash-check.ts'
import { sendAll } from '../../support/clients/ledger.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'

const MESSAGES = 3
const ARRIVED_MS_MAX = 15_000

const WAYS: readonly [string, (port: number) => Record<string, string>][] = [
  ['relay', (port) => ({ RELAY_URL: `smtp://127.0.0.1:${port}`, RELAY_CONNECTIONS: String(MESSAGES) })],
  ['mx', (port) => ({ DELIVERY_PORT: String(port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' })],
]

t.jobs = 3
const id = 'crash.final-dot-sent'
for (const [way, settingsOf] of WAYS)
  t.test(`crash: killed when final dot sent (${way}), each message comes once more at most [${id}]`, (t) =>
    killAtFinalDot(t, settingsOf),
  )

const [, [, ofMx]] = WAYS as [(typeof WAYS)[0], (typeof WAYS)[0]]
t.test('crash: told to stop when final dot sent, it waits for the answer [crash.stop-final-dot]', async (t) => {
  const { mx, dying, settle, isListening } = await sendToFinalDot(t, ofMx)
  const ended = dying.kill('SIGTERM')
  await until(async () => !(await isListening()), ARRIVED_MS_MAX)
  t.ok(dying.isRunning(), 'it takes nothing new, and waits')
  t.notOk(
    mx.sessions.some(({ messages, closed }) => messages.length > 0 && closed),
    'the server has all the time that is left',
  )
  mx.answer('250 2.0.0 at last')
  await ended
  t.equal(await dying.exited, 0)
  mx.script({})
  await settle()
  t.equal(messagesOf(mx).length, MESSAGES, 'no message came twice')
})

async function killAtFinalDot(t: Test, settingsOf: (port: number) => Record<string, string>): Promise<void> {
  const { mx, dying, settle } = await sendToFinalDot(t, settingsOf)
  await dying.kill('SIGKILL')
  mx.script({})
  const next = await settle()
  const copies = new Map<string, string[]>()
  for (const message of messagesOf(mx)) {
    const name = /^message-id: *(\S+)/im.exec(message)?.[1] ?? 'none'
    copies.set(name, [...(copies.get(name) ?? []), message])
  }
  t.equal(copies.size, MESSAGES, 'copies of one message share its Message-ID')
  for (const [first, ...others] of copies.values()) {
    t.equal(others.length, 1, 'it came once more: the first time nobody knows what became of it')
    t.equal(others[0], first, 'the same bytes')
  }
  await next.kill('SIGTERM')
  t.equal(await next.exited, 0)
}

/**
 * A service whose messages the server has whole, and has not answered; `settle` starts the next and waits for their
 * end.
 */
async function sendToFinalDot(t: Test, settingsOf: (port: number) => Record<string, string>) {
  const mx = await startMx()
  const zone = await startZone()
  zone.set('example.com', { type: 'MX', exchange: 'mx.example.com', priority: 10 })
  zone.set('mx.example.com', { type: 'A', address: '127.0.0.1' })
  const scene = await startScene({ ...settingsOf(mx.port), DNS_SERVERS: zone.server })
  let host: Host | null = null
  t.teardown(async () => {
    await host?.kill('SIGKILL')
    await scene.end()
    await mx.close()
    await zone.close()
  })
  const { redis, settings, firstRun } = scene
  const dying = scene.host
  host = dying
  await verifyDomain(Number(settings.HTTP_PORT), firstRun, { zone, domain: 'acme.example' })
  mx.script({ dot: 'hang' })
  const ledger = await sendAll({
    port: Number(settings.HTTP_PORT),
    token: firstRun.liveServer.token,
    clients: MESSAGES,
    from: 'shop@acme.example',
    recipient: (n) => `person${n}@example.com`,
    goOn: (sent) => sent < MESSAGES,
  })
  await until(() => messagesOf(mx).length === MESSAGES, ARRIVED_MS_MAX)
  const settle = async (): Promise<Host> => {
    const next = await startHost(settings)
    host = next
    const { socketPath } = redis
    const found = await checkSettled(t, { socketPath, firstRun, ledger, live: true })
    t.equal(found.told, MESSAGES)
    return next
  }
  const url = `http://127.0.0.1:${settings.HTTP_PORT}/v1/server`
  const isListening = () =>
    fetch(url, { headers: { connection: 'close' } }).then(
      () => true,
      () => false,
    )
  return { mx, dying, settle, isListening }
}

function messagesOf(mx: Awaited<ReturnType<typeof startMx>>): string[] {
  return mx.sessions.flatMap(({ messages }) => messages)
}
