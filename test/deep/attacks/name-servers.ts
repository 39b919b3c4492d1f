/**
 * Name servers of strangers that answer as much as a message holds, 64 KB, to each of thousands of questions: asked of
 * the senders of received mail, and of the domains that mail is sent to.
 */
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { encodeSection } from '../../support/peers/dns-answer.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { isHarmless, startAttacked } from '../../support/service/attacked.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'

const HEAP_MB = 300
/** Without the bounds of the caches it is twice as much, and without any bound the process ends. */
const GROWN_MB = { senders: 80, exchanges: 40, hosts: 120 }
const SENDERS = 400
const SESSIONS = 10
const RECIPIENTS = 400
const BATCH = 50
const HOSTS_ASKED = 2_000
const WAIT_MS = 120_000
/** A string of each: three bytes on the wire and some thirty in the heap. */
const stringsOf = (count: number) => encodeSection([{ type: 'TXT', data: Array<string>(count).fill('xy') }])
/** Just below the bound of an answer, and as much as there can be. */
const LARGE = stringsOf(4_500)
const HUGE = stringsOf(20_000)
const EXCHANGES = encodeSection(
  Array.from({ length: 250 }, (_, n) => ({
    type: 'MX' as const,
    priority: n,
    exchange: `${n}.${`${'x'.repeat(60)}.`.repeat(3)}huge.test`,
  })),
)
const ADDRESSES = encodeSection(
  Array.from({ length: 3_000 }, (_, n) => ({ type: 'A' as const, address: `10.0.${n >> 8}.${n & 255}` })),
)
const MANY_HOSTS = Array.from({ length: 10 }, (_, n) => n)

const zone = await startZone()
const service = await startAttacked(
  t,
  { SERVICE_DOMAIN: 'service.example', DNS_SERVERS: zone.server, PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' },
  HEAP_MB,
)
t.teardown(() => zone.close())
const { liveServer, account, operatorToken } = service.firstRun
const { status } = await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
  token: operatorToken,
  body: { inboundPerMinuteLimit: 100_000 },
})
if (status !== 200) throw new Error(`The limit was not raised: ${status}`)
const { json: stream } = await service.call('POST /v1/streams', {
  token: liveServer.token,
  body: { kind: 'inbound', name: 'Mail' },
})

zone.flood((name, type) => {
  if (type === 'TXT' && name.endsWith('.senders.test')) {
    // A domain includes ten names, each with its own record.
    const included = /^i(\d)\./.exec(name)?.[1]
    const includes = included === undefined ? MANY_HOSTS.map((n) => `include:i${n}.${name} `).join('') : ''
    const record = encodeSection([{ type: 'TXT', data: `v=spf1 ${includes}?all` }])
    return included === undefined ? [record] : [record, Number(included) < 4 ? LARGE : HUGE]
  }
  if (type === 'MX' && name.endsWith('.exchanges.test')) return [EXCHANGES]
  if (type === 'MX' && /^\w+\.hosts\.test$/.test(name))
    return [encodeSection(MANY_HOSTS.map((n) => ({ type: 'MX', priority: n, exchange: `h${n}.${name}` })))]
  if (type === 'A' && name.endsWith('.hosts.test')) return [ADDRESSES]
  return null
})

/** How many mails were judged. */
async function judged(): Promise<number> {
  const { text } = await service.operate('GET /metrics')
  const counts = [...text.matchAll(/^sendwright_checks_total\{check="spf",.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

/** Sends mail from as many domains as there are numbers, in one session. */
async function mailFrom(numbers: readonly number[]): Promise<void> {
  const replies: string[] = []
  const dialog = await openDialog(service.mxPort, '127.0.0.1', `127.0.78.${1 + ((numbers[0] ?? 0) % 200)}`)
  await dialog.say(`EHLO helo${numbers[0]}.senders.test`)
  for (const n of numbers) {
    replies.push(await dialog.say(`MAIL FROM:<ann@d${n}.senders.test>`))
    replies.push(await dialog.say(`RCPT TO:<${stream.inboundAddress}>`))
    await dialog.say('DATA')
    replies.push(await dialog.say(`From: Ann <ann@d${n}.senders.test>\r\nSubject: Hello\r\n\r\nText\r\n.`))
  }
  dialog.end()
  const refused = replies.find((reply) => !reply.startsWith('250'))
  if (refused !== undefined) throw new Error(`Mail was refused: ${refused}`)
}

// Code is compiled by then: that is a pause too.
await mailFrom([SENDERS])
await until(async () => (await judged()) > 0 || null, WAIT_MS)

t.test('name servers: huge answers about senders do not fill the heap [inbound.authentication]', async (t) => {
  const harm = await service.during(async () => {
    const all = Array.from({ length: SENDERS }, (_, n) => n)
    await Promise.all(Array.from({ length: SESSIONS }, (_, at) => mailFrom(all.filter((n) => n % SESSIONS === at))))
    await until(async () => (await judged()) > SENDERS || null, WAIT_MS)
  })
  isHarmless(t, harm, { grownMb: GROWN_MB.senders })
})

for (const kind of ['exchanges', 'hosts'] as const)
  t.test(`name servers: huge answers about ${kind} of recipients do not fill the heap [delivery.mx]`, async (t) => {
    const port = Number(service.settings.HTTP_PORT)
    await verifyDomain(port, service.firstRun, { zone, domain: `${kind}.example` })
    const send = async (domains: readonly string[]) => {
      const messages = domains.map((domain) => ({
        from: `shop@${kind}.example`,
        to: [`ann@${domain}`],
        subject: 'Hello',
        text: 'Text',
      }))
      const body = { messages }
      const { status, text } = await service.call('POST /v1/email/batch', { token: liveServer.token, body })
      if (status !== 200) throw new Error(text)
    }
    const names = (count: number, from: number, zoneName: string) =>
      Array.from({ length: count }, (_, n) => `d${from + n}.${zoneName}.test`)
    await send(names(100, 0, 'absent'))
    await delay(3_000)
    const asked = (start: string) =>
      zone.asked.filter((one) => one.startsWith(start) && one.endsWith(`.${kind}.test`)).length
    const harm = await service.during(async () => {
      for (let from = 0; from < RECIPIENTS; from += BATCH) await send(names(BATCH, from, kind))
      await until(async () => asked('MX d') >= RECIPIENTS || null, WAIT_MS)
      if (kind === 'hosts') await until(async () => asked('A h') >= HOSTS_ASKED || null, WAIT_MS)
    })
    isHarmless(t, harm, { grownMb: GROWN_MB[kind] })
  })
