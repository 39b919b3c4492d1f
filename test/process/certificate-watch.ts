/** certificate-watch - renewed files are loaded, files that do not fit are not; both SMTP listeners use the result. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { makeCertificate } from '../../src/process/certificate.ts'
import { type CertificateWatch, watchCertificate } from '../../src/process/certificate-watch.ts'
import { startMxListener } from '../../src/reception/mx-listener.ts'
import { makeSenderRate } from '../../src/reception/sender-rate.ts'
import { until } from '../support/machine/until.ts'
import { startRig } from '../support/service/submission-rig.ts'

const DAY_MS = 86_400_000
const folder = mkdtempSync(join(tmpdir(), 'certificate-watch-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const files = { tlsCert: join(folder, 'cert.pem'), tlsKey: join(folder, 'key.pem') }
const place = { ...files, dataDir: folder, name: 'mx.example' }

/** Replaces a file as an ACME client does. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}

/** Writes a new pair. Out: the pair. */
function renew(nowMs = Date.now()) {
  const pair = makeCertificate('mx.example', nowMs)
  replace(files.tlsCert, pair.cert)
  replace(files.tlsKey, pair.key)
  return pair
}

/** A watch that is closed with its test, and its log. */
function open(t: Test, checkMs = 60_000): { watch: CertificateWatch; lines: string[] } {
  const lines: string[] = []
  const add = (facts: object, sentence: string) => void lines.push(`${sentence} ${JSON.stringify(facts)}`)
  const watch = watchCertificate(place, { log: { info: add, warn: add, error: add }, checkMs })
  t.teardown(() => watch.close())
  return { watch, lines }
}

t.test('a renewed pair is loaded; half of one, or garbage, is not', async (t) => {
  const first = renew()
  const { watch, lines } = open(t)
  const used: string[] = []
  watch.onRenewed(({ cert }) => used.push(cert))
  await watch.check()
  t.same([watch.current, used, lines], [first, [], []], 'nothing has changed')
  const next = makeCertificate('mx.example', Date.now() + DAY_MS)
  replace(files.tlsCert, next.cert)
  await watch.check()
  await watch.check()
  t.same([watch.current, used], [first, []], 'the key is still the old one')
  t.equal(lines.length, 1, 'which is logged once')
  t.match(lines[0], /not loaded.*TLS_KEY is not the private key/)
  replace(files.tlsKey, next.key)
  await watch.check()
  t.same([watch.current, used], [next, [next.cert]])
  t.match(lines[1], /^Renewed certificate loaded/)
  t.ok(watch.expiresMs > Date.now() + 3650 * DAY_MS)
  for (const text of ['', 'garbage', next.key]) {
    replace(files.tlsCert, text)
    await watch.check()
    t.same(watch.current, next)
  }
  const renewed = renew()
  // A chain of which only the first certificate is whole: the listeners could not use it.
  const cutOff = `${renewed.cert}${first.cert.slice(0, 200)}\n`
  replace(files.tlsCert, cutOff)
  await watch.check()
  t.same(watch.current, next)
  t.match(lines.at(-1), /not loaded.*TLS does not take the chain/)
  t.throws(() => watchCertificate(place, { log: { info() {}, warn() {}, error() {} } }), /TLS_CERT.*chain for TLS/)
  replace(files.tlsCert, renewed.cert)
  await watch.check()
  t.same(watch.current, renewed, 'the whole one is loaded')
  replace(files.tlsCert, next.cert)
  replace(files.tlsKey, next.key)
  await watch.check()
  rmSync(files.tlsCert)
  await watch.check()
  t.same(watch.current, next, 'a missing file changes nothing')
})

t.test('SIGHUP checks at once, the timer within its time, and a closed watch never', async (t) => {
  renew()
  const before = process.listeners('SIGHUP')
  const { watch } = open(t)
  const second = renew()
  // The test runner ends the process if SIGHUP is emitted, so the listener is called directly.
  const added = process.listeners('SIGHUP').filter((one) => !before.includes(one))
  t.equal(added.length, 1)
  added[0]?.('SIGHUP')
  await until(() => watch.current.cert === second.cert, 5000)
  watch.close()
  t.same(process.listeners('SIGHUP'), before)
  const third = renew()
  const timed = open(t, 20).watch
  t.same(timed.current, third)
  const fourth = renew()
  await until(() => timed.current.cert === fourth.cert, 5000)
  t.same(watch.current, second)
})

t.test('both SMTP listeners: new sessions get the renewed certificate, open ones continue', async (t) => {
  const first = renew()
  const { watch } = open(t)
  const rate = makeSenderRate(() => performance.now())
  const mx = await startMxListener({
    host: '127.0.0.1',
    port: 0,
    name: 'mx.example',
    certificate: watch,
    proxies: [],
    rate,
    handlers: {
      recipient: async () => ({ target: 'one' }),
      mail: async () => ({ code: 250, text: '2.0.0 Ok' }),
    },
    log: { error: () => undefined, debug: () => undefined },
  })
  t.teardown(() => mx.close())
  const submission = await startRig(t, {}, { certificate: watch, isImplicitTls: true })
  const peers = async () => [await certificateOfStarttls(mx.port), (await openTls(t, submission.port)).serial]
  const before = serialOf(first.cert)
  t.same(await peers(), [before, before])
  const kept = await openTls(t, submission.port)
  const renewed = renew()
  await watch.check()
  const after = serialOf(renewed.cert)
  t.not(after, before)
  t.same(await peers(), [after, after])
  kept.socket.write('EHLO client.example\r\n')
  const [reply] = (await once(kept.socket, 'data')) as [Buffer]
  t.match(reply.toString(), /^250/, 'a session that was open continues with its certificate')
})

function serialOf(cert: string): string {
  return new X509Certificate(cert).serialNumber
}

/** Connects with TLS from the first byte and waits for the greeting. Out: the open socket, and the peer's serial. */
async function openTls(t: Test, port: number): Promise<{ socket: TLSSocket; serial: string }> {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.teardown(() => socket.destroy())
  await once(socket, 'data')
  return { socket, serial: socket.getPeerX509Certificate()?.serialNumber ?? '' }
}

/** The serial number of the certificate that a session gets after STARTTLS. */
async function certificateOfStarttls(port: number): Promise<string> {
  const plain = connectPlain(port, '127.0.0.1')
  await once(plain, 'data')
  for (const line of ['EHLO client.example', 'STARTTLS']) {
    plain.write(`${line}\r\n`)
    await once(plain, 'data')
  }
  const secure = connect({ socket: plain, rejectUnauthorized: false })
  await once(secure, 'secureConnect')
  const serial = secure.getPeerX509Certificate()?.serialNumber ?? ''
  secure.destroy()
  return serial
}
