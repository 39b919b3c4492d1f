/**
 * erasure - the time to erase a person with very many messages, sent and received, and the latency of other requests
 * next to it
 *
 * The product is a process as `sendwright start` runs it. The person's sent mail is a test server's, whose log has no
 * postings: every entry is looked at. Other requests are those of clients of the same server, at an even rate, in runs
 * of some seconds: one to warm up, which is not counted, some without an erasure, and then one after the other while
 * an erasure runs. Told is the p99 of the middle run, and of the worst. A count that is not exact fails the run.
 */

import { Agent } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { openDialog } from '../../test/support/peers/smtp-dialog.ts'
import { startZone } from '../../test/support/peers/zone.ts'
import { startWholeService, type WholeService } from '../contestants/whole-service.ts'
import { makeClient, sendBatches } from '../load/batches.ts'
import { pace } from '../load/pace.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'

const PERSON = 'delivered+person@simulator.test'
const SENDER = 'person@far.example'
const OTHERS_PER_SECOND = 200
const RUN_SECONDS = 3
const QUIET_RUNS = 7
const TARGETS = { seconds: 60, p99Ratio: 2 }
const SMTP_CONNECTIONS = 8
const LOOK_MS = 100
const WAIT_MS_MAX = 1_200_000

interface Erasure {
  readonly erasureId: string
  readonly status: string
  readonly createdAt: string
  readonly completedAt: string | null
  readonly messages: number | null
  readonly receivedMessages: number | null
}

/** Measures and prints. Throws Error if a count is not exact. */
export async function benchErasure({ messages, received }: { messages: number; received: number }): Promise<void> {
  const store = await startStore()
  const zone = await startZone()
  const service = await startWholeService(store, { DNS_SERVERS: zone.server })
  try {
    const much = 1_000_000_000
    const limits = { testPerMinuteLimit: much, testMonthlyCap: much, inboundPerMinuteLimit: much }
    await service.call('PATCH', `/v1/operator/accounts/${service.accountId}`, service.operator, limits)
    const key = (await service.call('POST', `/v1/operator/accounts/${service.accountId}/tokens`, service.operator, {
      name: 'Bench',
    })) as { token: string }
    await fill(service, { messages, received })
    await others(service)
    const quiet = await quietRuns(service)
    const sent = await erase(service, key.token, PERSON)
    const inbound = await erase(service, key.token, SENDER)
    if (sent.erasure.messages !== messages) throw new Error(`${sent.erasure.messages} of ${messages} were counted`)
    if (inbound.erasure.receivedMessages !== received)
      throw new Error(`${inbound.erasure.receivedMessages} of ${received} received ones were counted`)
    const row = (what: string, { seconds, p99s }: Awaited<ReturnType<typeof erase>>) => [
      what,
      `${formatNumber(seconds, 1)} of ${TARGETS.seconds}`,
      formatNumber(median(p99s), 1),
      formatNumber(Math.max(...p99s), 1),
      `${formatNumber(median(p99s) / median(quiet), 2)} of ${TARGETS.p99Ratio}`,
    ]
    console.log(
      formatTable([
        ['erased', 'seconds, at most', 'p99 of others, ms', 'in the worst run', 'of quiet, at most'],
        ['nothing', '', formatNumber(median(quiet), 1), formatNumber(Math.max(...quiet), 1), ''],
        row(`${messages} sent`, sent),
        row(`${received} received`, inbound),
      ]),
    )
  } finally {
    await service.stop()
    await zone.close()
    await store.stop()
  }
}

/** p99 of the other senders in one run, ms. */
async function others({ httpPort, test }: WholeService): Promise<number> {
  const target = { port: httpPort, keys: [test], domain: 'simulator.test' }
  const count = OTHERS_PER_SECOND * RUN_SECONDS
  const measured = await pace(target, { rate: OTHERS_PER_SECOND, count })
  if (measured.accepted !== count) throw new Error(`${count - measured.accepted} messages of others were not accepted`)
  return measured.p99Ms
}

async function quietRuns(service: WholeService): Promise<number[]> {
  const p99s: number[] = []
  for (let run = 0; run < QUIET_RUNS; run += 1) p99s.push(await others(service))
  return p99s
}

/** Erases while others send; out: how long it took, and the p99 of each run of others that began before its end. */
async function erase(service: WholeService, token: string, address: string) {
  const ordered = (await service.call('POST', '/v1/erasures', token, { address })) as Erasure
  const p99s: number[] = []
  let isDone = false
  const sending = (async () => {
    do p99s.push(await others(service))
    while (!isDone)
  })()
  const deadlineMs = performance.now() + WAIT_MS_MAX
  for (;;) {
    const erasure = (await service.call('GET', `/v1/erasures/${ordered.erasureId}`, token)) as Erasure
    if (erasure.completedAt !== null) {
      isDone = true
      await sending
      const seconds = (Date.parse(erasure.completedAt) - Date.parse(erasure.createdAt)) / 1000
      return { erasure, seconds, p99s }
    }
    if (performance.now() > deadlineMs) throw new Error('It was not done')
    await delay(LOOK_MS)
  }
}

/** Sends and receives the person's mail, and waits until all of it is processed. */
async function fill(
  service: WholeService,
  { messages, received }: { messages: number; received: number },
): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const client = makeClient({ port: service.httpPort, keys: [service.test] }, agent)
  const mail = { from: 'hello@simulator.test', to: [PERSON], subject: 'For you', text: 'Some words for one person' }
  await sendBatches(client, messages, () => mail)
  agent.destroy()
  await reached(service, 'attempts', messages)
  const { inboundAddress } = (await service.call('POST', '/v1/streams', service.live, {
    kind: 'inbound',
    name: 'In',
  })) as { inboundAddress: string }
  const each = Math.ceil(received / SMTP_CONNECTIONS)
  const bring = async (count: number) => {
    const dialog = await openDialog(service.mxPort)
    await dialog.say('EHLO far.example')
    for (let n = 0; n < count; n += 1) {
      await dialog.say(`MAIL FROM:<${SENDER}>`)
      await dialog.say(`RCPT TO:<${inboundAddress}>`)
      await dialog.say('DATA')
      dialog.write(Buffer.from(`From: ${SENDER}\r\nTo: x@example.org\r\nSubject: Words\r\n\r\nWords\r\n.\r\n`))
      const reply = await dialog.say(null)
      if (!reply.startsWith('250')) throw new Error(reply)
    }
    dialog.end()
  }
  const counts = Array.from({ length: SMTP_CONNECTIONS }, (_, n) => Math.max(0, Math.min(each, received - n * each)))
  await Promise.all(counts.map(bring))
  await reached(service, 'parsed', received)
}

/** Resolves once so many were counted under a name on the page of metrics. */
async function reached({ operatorPort }: WholeService, name: string, count: number): Promise<void> {
  const line = new RegExp(`^sendwright_${name}_total\\{.*\\} (\\d+)$`, 'gm')
  const deadlineMs = performance.now() + WAIT_MS_MAX
  for (;;) {
    const page = await (await fetch(`http://127.0.0.1:${operatorPort}/metrics`)).text()
    if ([...page.matchAll(line)].reduce((sum, [, n]) => sum + Number(n), 0) >= count) return
    if (performance.now() > deadlineMs) throw new Error(`Of ${count} not all are counted as ${name}`)
    await delay(LOOK_MS)
  }
}
