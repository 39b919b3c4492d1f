/**
 * erasure - processes that are killed while a person is erased. Every message to the person and every received one
 * from it is counted once, nothing of it is left in any key, and mail accepted after the order is untouched.
 */
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { type Host, startHost } from '../../support/service/host.ts'
import { Seeker, seekInRedis } from '../../support/store/seek.ts'

const KILLS = Number(process.env.KILLS ?? 2)
/** Kills at most, until one has fallen within an erasure. */
const KILLS_MAX = KILLS + 8
const BATCHES = 4
const BATCH = 100
const RECEIVED = 12
const WAIT_MS = 120_000
/** The duration of a walk of this many messages. The kill happens anywhere in it, earlier after late arrivals. */
const KILL_MS_MAX = 90
/** Letters and digits that nothing has but the persons. */
const WORD = `q${Math.random().toString(36).slice(2).padEnd(12, 'x')}q`

const zone = await startZone()
const { redis, settings, firstRun, end } = await setScene({
  CONTENT_STORE: 'file',
  DNS_SERVERS: zone.server,
  MX_PORT: String(await freePort()),
})
const store = new Redis(redis.socketPath)
let host: Host | null = null
t.teardown(async () => {
  await host?.kill('SIGKILL')
  store.disconnect()
  await end()
  await zone.close()
})
const { account, liveServer, testServer } = firstRun

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
type Json = any

/** A request that is repeated until a process answers it. Each has a key, so nothing is done twice. */
async function call(what: string, body?: object, { token = testServer.token, key = '' } = {}): Promise<Json> {
  const [method = 'GET', path = '/'] = what.split(' ')
  return until(async () => {
    const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        connection: 'close',
        ...(key !== '' && { 'idempotency-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(() => null)
    if (answer === null || answer.status === 503) return null
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }, WAIT_MS)
}

const mail = (to: string, text: string) => ({ from: 'hello@simulator.test', to: [to], subject: text, text })

/** A mail from an address, accepted once. It is sent again without an answer, or after one other than 250. */
async function receive(address: string, to: string, subject: string): Promise<void> {
  const text = `From: ${address}\nTo: x@example.org\nSubject: ${subject}\n\nWords\n`
  await until(async () => {
    const reply = await deliverMail(Number(settings.MX_PORT), to, text).catch(() => '')
    return reply.startsWith('250') ? true : null
  }, WAIT_MS)
}

t.test(`crash: ${KILLS} kills while people are erased [erasure.states] [erasure.cut]`, async (t) => {
  host = await startHost(settings)
  const of = { token: account.token }
  const stream = { kind: 'inbound', name: 'In' }
  const { inboundAddress } = await call('POST /v1/streams', stream, { token: liveServer.token })
  let kept = 0
  let within = 0
  let kill = 0
  for (; kill < KILLS || (within === 0 && kill < KILLS_MAX); kill += 1) {
    const word = `${WORD}${kill}`
    const person = `delivered+${word}@simulator.test`
    for (let batch = 0; batch < BATCHES; batch += 1) {
      const messages = Array.from({ length: BATCH }, (_, n) =>
        n % 10 === 9 ? mail('delivered+other@simulator.test', 'kept') : mail(person, `For ${word}`),
      )
      await call('POST /v1/email/batch', { messages }, { key: `${word} ${batch}` })
    }
    kept += (BATCHES * BATCH) / 10
    // Some of them are not parsed yet when the order arrives, so their headers are read.
    for (let n = 0; n < RECEIVED; n += 1) await receive(person, inboundAddress, `From ${word}`)
    const ordered = await call('POST /v1/erasures', { address: person }, of)
    const later = call('POST /v1/email', mail(person, 'later mail'), { key: `${word} later` })
    const late = kill - within
    await new Promise((resolve) => setTimeout(resolve, (Math.random() * KILL_MS_MAX) / (1 + late)))
    await host.kill('SIGKILL')
    const killedMs = Date.now()
    host = await startHost(settings)
    const { messageId } = await later
    const done = await until(async () => {
      const seen = await call(`GET /v1/erasures/${ordered.erasureId}`, undefined, of)
      return seen.status === 'done' ? seen : null
    }, WAIT_MS)
    t.match(done, { messages: BATCHES * BATCH * 0.9, receivedMessages: RECEIVED })
    if (Date.parse(done.completedAt) > killedMs) within += 1
    await receive(person, inboundAddress, 'later mail')
    t.match(await call(`GET /v1/messages/${messageId}`), { subject: 'later mail', text: 'later mail' })
    const again = await call('POST /v1/erasures', { address: person }, of)
    const last = await until(async () => {
      const seen = await call(`GET /v1/erasures/${again.erasureId}`, undefined, of)
      return seen.status === 'done' ? seen : null
    }, WAIT_MS)
    t.match(last, { messages: 1, receivedMessages: 1, pseudonym: done.pseudonym }, 'the later mail alone is left')
  }
  t.same(await seekInRedis(store, new Seeker(WORD)), [], 'nothing of any person is in any key')
  t.ok(within > 0, `${within} of ${kill} kills fell within an erasure`)
  const heads = (await store.keys('*:head:*')).map((key) => store.hvals(key))
  const rows = (await Promise.all(heads)).flat()
  t.equal(rows.filter((row) => row.includes('"kept"')).length, kept, 'mail to others is untouched')
})
