/**
 * sizing - the cost of a message of usual size: memory and file of the store, with its content, its events at a
 * webhook, and the memory of the process; the source of docs/operate/sizing.md
 *
 * Runs the service itself on a Redis of its own, with messages of 20 KB of HTML on its test server, then the same
 * number with a webhook that answers. `memory` measures the remainder after the content has expired.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { sendAll } from '../../test/support/clients/ledger.ts'
import { uncertainRecipients } from '../../test/support/clients/settle.ts'
import { until } from '../../test/support/machine/until.ts'
import { startReceiver } from '../../test/support/peers/receiver.ts'
import { raiseLimits } from '../../test/support/service/crash-scene.ts'
import { startTestService } from '../../test/support/service/service.ts'
import { readInfo } from '../store.ts'
import { formatNumber } from '../table.ts'

const CLIENTS = 8
const HTML_BYTES = 20_000
const PERSONS = 2_000
const WAIT_MS = 600_000
const WORDS =
  'order shipped parcel thank you arrives between Monday and Friday size blue large refund account total tax address'

/**
 * Sends `messages` twice and prints bytes a message. Throws Error where openssl, which the receiver needs, is missing.
 */
export async function benchSizing(messages: number): Promise<void> {
  const receiver = await startReceiver()
  if (receiver === null) throw new Error('openssl is not installed')
  const service = await startTestService(
    { PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8', EDGE_RATE: '0' },
    { smtp: { ca: receiver.ca } },
  )
  const redis = new Redis({ path: service.redis.socketPath })
  const { firstRun, config } = service
  const token = firstRun.testServer.token
  try {
    await raiseLimits(config.operatorPort, firstRun)
    const read = async () => ({
      dataset: await readInfo(redis, 'memory', 'used_memory_dataset'),
      file: fileBytes(await directoryOf(redis)),
    })
    const send = async (): Promise<void> => {
      const recipient = (n: number): string => `person${n % PERSONS}@example.com`
      const fields = (n: number): object => ({ html: htmlOf(n), tag: 'receipt', metadata: { orderId: String(n) } })
      await sendAll({
        port: config.httpPort,
        token,
        clients: CLIENTS,
        recipient,
        fields,
        goOn: (sent) => sent < messages,
      })
      await until(async () => (await uncertainRecipients(redis)).unclear.length === 0, WAIT_MS)
    }
    const [empty, cpuBefore] = [await read(), process.cpuUsage()]
    await send()
    const [plain, cpu] = [await read(), process.cpuUsage(cpuBefore)]
    const made = await service.call('POST /v1/webhooks', { token, body: { url: `${receiver.url}/hook` } })
    if (made.status !== 201) throw new Error(`No webhook: ${made.status}`)
    await send()
    await until(() => receiver.received.length >= messages, WAIT_MS)
    const posted = await read()
    const each = (bytes: number): string => formatNumber(bytes / messages)
    console.log(
      `sizing: ${formatNumber(messages)} messages of ${formatNumber(HTML_BYTES)} bytes of HTML, then as many with a webhook\n`,
    )
    console.log(`store, with content:        ${each(plain.dataset - empty.dataset)} bytes a message`)
    console.log(`its file before a rewrite:  ${each(plain.file - empty.file)} bytes a message`)
    console.log(
      `one webhook beside it:      ${each(posted.dataset - plain.dataset - (plain.dataset - empty.dataset))} bytes a message`,
    )
    console.log(`file, with the webhook:     ${each(posted.file - plain.file)} bytes a message`)
    console.log(
      `processor of the service and its clients: ${((cpu.user + cpu.system) / 1000 / messages).toFixed(2)} ms a message`,
    )
  } finally {
    redis.disconnect()
    await service.stop()
    await receiver.close()
  }
}

/** A typical receipt: much markup, few words, individual numbers. */
function htmlOf(n: number): string {
  const words = WORDS.split(' ')
  let html = '<!doctype html><html><body style="margin:0;font-family:Helvetica,Arial,sans-serif;color:#222222">'
  for (let row = 0; html.length < HTML_BYTES; row += 1) {
    const text = Array.from(
      { length: 12 },
      (_, at) => words[(n * 7 + row * 13 + at * at * (n % 11)) % words.length],
    ).join(' ')
    html += `<tr><td style="padding:8px 16px;border-bottom:1px solid #dddddd">${text}</td><td align="right">${(n * 31 + row * 977) % 100_000}</td></tr>`
  }
  return html
}

async function directoryOf(redis: Redis): Promise<string> {
  const [, dir = ''] = (await redis.config('GET', 'dir')) as string[]
  return join(dir, 'appendonlydir')
}

function fileBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}
