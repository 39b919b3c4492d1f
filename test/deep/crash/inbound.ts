/**
 * The process is ended with SIGKILL at each step of receiving a mail: in the content store, in the commit, in parsing,
 * and at random moments. A mail answered with 250 is stored once for each recipient, byte for byte; any other is
 * stored once or not at all.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { contentFolder } from '../../../src/content/files.ts'
import { type SentMail, sendMails } from '../../support/clients/mail-load.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { startScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { CONTENT_POINTS } from '../../support/store/crash-content.ts'
import type { CrashPoint } from '../../support/store/crash-shard.ts'

const MAILS = 24
/** Every second one of these mails is large, so that it has an unfinished name. */
const LARGE_IN = 2
const SENDERS = 4
const WAIT_MS = 60_000
/** A claim of four killed processes waits a minute before its last try. */
const PARSED_MS_MAX = 180_000
const KILLS = Number(process.env.KILLS ?? 2)
/** A start takes its time. Without `EVERY_POINT` only the most critical steps are tried. */
const isEvery = process.env.EVERY_POINT === '1'
const seed = Number(process.env.SEED ?? 7)
const TURN_POINTS: readonly CrashPoint[] = isEvery
  ? ['read', 'decided', 'committed, reply lost', 'claim committed', 'outcome not committed']
  : ['decided', 'committed, reply lost']
const PAGE = 100

interface Received {
  readonly inboundMessageId: string
  readonly subject: string | null
  readonly parseIssue: string | null
}

t.jobs = 1
const scene = await startScene({ CONTENT_STORE: 'file', MX_PORT: String(await freePort()) })
const { settings, firstRun } = scene
const port = Number(settings.MX_PORT)
const root = contentFolder(settings.DATA_DIR as string)
let host: Host = scene.host
t.teardown(async () => {
  await host.kill('SIGKILL')
  await scene.end()
})

async function call(method: string, path: string, body?: object): Promise<Response> {
  const headers = {
    authorization: `Bearer ${firstRun.liveServer.token}`,
    'content-type': 'application/json',
    connection: 'close',
  }
  const json = body === undefined ? {} : { body: JSON.stringify(body) }
  return fetch(`http://127.0.0.1:${settings.HTTP_PORT}${path}`, { method, headers, ...json })
}

const limits = { inboundPerMinuteLimit: 1_000_000 }
await fetch(`http://127.0.0.1:${settings.OPERATOR_PORT}/v1/operator/accounts/${firstRun.account.accountId}`, {
  method: 'PATCH',
  headers: {
    authorization: `Bearer ${firstRun.operatorToken}`,
    'content-type': 'application/json',
    connection: 'close',
  },
  body: JSON.stringify(limits),
})
const made = (await (await call('POST', '/v1/streams', { kind: 'inbound', name: 'Mail' })).json()) as {
  inboundAddress: string
}
const [local, domain] = made.inboundAddress.split('@') as [string, string]
const recipients = [made.inboundAddress, `${local}+b@${domain}`]

/** All received messages, once all of them are parsed. */
function received(): Promise<Received[]> {
  return until(async () => {
    const all: Received[] = []
    for (let after: string | null = ''; after !== null; ) {
      const page = { limit: PAGE, ...(after !== '' && { after }) }
      const answer = (await (await call('POST', '/v1/inbound/search', page)).json()) as {
        messages: Received[]
        next: string | null
      }
      all.push(...answer.messages)
      after = answer.next
    }
    return all.every(({ subject }) => subject !== null) ? all : null
  }, PARSED_MS_MAX)
}

function files(): string[] {
  if (!existsSync(root)) return []
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[]
  return names.filter((name) => name !== '.id' && statSync(join(root, name), { throwIfNoEntry: false })?.isFile())
}

/** Checks everything that was sent under a name. */
async function check(t: Test, name: string, sent: readonly SentMail[]): Promise<void> {
  const all = (await received()).filter(({ subject }) => subject?.startsWith(`${name} `) === true)
  const told = sent.filter(({ reply }) => reply.startsWith('250'))
  const counts = new Map<string | null, number>()
  for (const { subject } of all) counts.set(subject, (counts.get(subject) ?? 0) + 1)
  t.same(
    told.filter(({ subject, copies }) => counts.get(subject) !== copies).map(({ subject }) => subject),
    [],
    'what was answered is there once for each recipient',
  )
  const others = sent.filter(({ reply }) => !reply.startsWith('250'))
  t.same(
    others.filter(({ subject, copies }) => ![0, copies].includes(counts.get(subject) ?? 0)),
    [],
    'what was not is there whole or not at all',
  )
  t.same(
    [...counts.keys()].filter((subject) => !sent.some((one) => one.subject === subject)),
    [],
    'and nothing else',
  )
  t.ok(
    all.every(({ parseIssue }) => parseIssue === null),
    'all of it is parsed',
  )
  let broken = 0
  for (const { inboundMessageId, subject } of all) {
    const raw = await (await call('GET', `/v1/inbound/${inboundMessageId}/raw`)).text()
    if (raw !== sent.find((one) => one.subject === subject)?.raw) broken += 1
  }
  t.equal(broken, 0, 'byte for byte')
  await until(() => files().every((path) => !path.startsWith('tmp/')), WAIT_MS)
}

async function killedAt(t: Test, name: string, dying: () => Promise<Host>): Promise<void> {
  await host.kill('SIGKILL')
  host = await dying()
  const goOn = (begun: number): boolean => begun < MAILS
  const load = sendMails({ port, recipients, senders: SENDERS, name, goOn, largeIn: LARGE_IN })
  await host.exited
  host = await startHost(settings)
  await check(t, name, await load)
}

for (const point of CONTENT_POINTS.filter((one) => (isEvery ? one !== 'removed' : one === 'names on the disk')))
  t.test(
    `crash: killed when a mail is ${point}, nothing answered is lost, nothing is stored twice [inbound.receive]`,
    (t) => killedAt(t, `content ${point}`, () => startHost({ ...settings, CONTENT_POINT: point })),
  )

for (const point of TURN_POINTS)
  t.test(
    `crash: killed when a mail is ${point}, nothing answered is lost, nothing is stored twice [inbound.receive]`,
    (t) => killedAt(t, `turn ${point}`, () => startHost(settings, { point })),
  )

t.test('crash: killed during DATA, nothing of the mail is left [inbound.receive]', async (t) => {
  const before = (await received()).length
  const dialog = await openDialog(port)
  for (const line of ['EHLO x', 'MAIL FROM:<>', `RCPT TO:<${made.inboundAddress}>`, 'DATA']) await dialog.say(line)
  dialog.write(`Subject: half\r\n\r\n${'x'.repeat(500_000)}`)
  await until(() => files().some((path) => path.startsWith('tmp/')), WAIT_MS)
  await host.kill('SIGKILL')
  host = await startHost(settings)
  await until(() => files().every((path) => !path.startsWith('tmp/')), WAIT_MS)
  t.equal((await received()).length, before)
})

t.test(`crash: ${KILLS} kills under load, at moments of chance (seed ${seed}) [inbound.receive]`, async (t) => {
  let state = seed
  const chance = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return state / 2 ** 32
  }
  let isOver = false
  const load = sendMails({ port, recipients, senders: SENDERS, name: 'chance', goOn: () => !isOver, bytes: 20_000 })
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = files().length
    const some = 10 + Math.floor(chance() * 30)
    await until(() => files().length > before + some, WAIT_MS)
    await host.kill('SIGKILL')
    host = await startHost(settings)
  }
  isOver = true
  const sent = await load
  t.ok(sent.filter(({ reply }) => reply.startsWith('250')).length > KILLS)
  await check(t, 'chance', sent)
})
