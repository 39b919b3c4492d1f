/**
 * inbound - mails that come in: taken durably a second, beside what Postfix takes of the same sender, and parsed with
 * their event committed a second
 *
 * `smtp-source` (of Postfix) over twenty connections that stay open, 20 KB each. Postfix holds its queue, so that it
 * does nothing but take mail in and have it on the disk before it answers; the product parses and judges meanwhile.
 */

import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { POSTFIX_SKIP, startPostfix } from '../../test/support/peers/postfix.ts'
import { startZone } from '../../test/support/peers/zone.ts'
import { startWholeService } from '../contestants/whole-service.ts'
import { freePort } from '../free-port.ts'
import { type BenchStore, keysOf, startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'
import { readInfo } from './family.ts'

const CONNECTIONS = 20
const BYTES = 20 * 1024
const TARGET_RATIO = 2
const TARGET_WHOLE = 300
const TARGET_BYTES = 300
const DOMAIN = 'bench.example'
const PARSED_MS_MAX = 600_000
const LOOK_MS = 200
const run = promisify(execFile)

interface InboundRun {
  readonly rounds: number
  /** Mails of each connection. */
  readonly each: number
}

/** A service that receives. */
interface Receiving {
  readonly pid: number
  readonly mxPort: number
  readonly address: string
  /** Mails parsed so far. */
  parsed(): Promise<number>
  stop(): Promise<void>
}

/** Rates in mails a second, processor time in milliseconds a mail, for the whole way. */
interface Taken {
  readonly own: number
  readonly other: number
  readonly whole: number
  readonly serviceMs: number | undefined
  readonly redisMs: number | undefined
}

/** Measures and prints. Throws Error where Postfix is not installed, or a mail is not taken. */
export async function benchInbound({ rounds, each }: InboundRun): Promise<void> {
  if (POSTFIX_SKIP !== false) throw new Error(POSTFIX_SKIP)
  const mails = CONNECTIONS * each
  const store = await startStore()
  const zone = await startZone()
  const service = await startReceiving(store, zone.server)
  const port = await freePort()
  const name = `mx.${DOMAIN}`
  const postfix = await startPostfix(
    { host: '127.0.0.1', port },
    { name, domain: DOMAIN, isHeld: true, parent: '/var/tmp' },
  )
  try {
    const own = { port: service.mxPort, to: service.address }
    const other = { port, to: `x@${DOMAIN}` }
    await bring({ ...own, mails: 200 })
    await bring({ ...other, mails: 200 })
    await haveParsed(service, 200)
    const settled = await datasetWithoutContent(store)
    const taken: Taken[] = []
    for (let round = 0; round < rounds; round += 1) {
      await haveParsed(service, 200 + round * mails)
      const startedAtMs = performance.now()
      const { value: rate, percents } = await shareOfCore([service.pid, store.pid], async () => {
        const brought = await bring({ ...own, mails })
        await haveParsed(service, 200 + (round + 1) * mails)
        return brought
      })
      const seconds = (performance.now() - startedAtMs) / 1000
      const [serviceMs, redisMs] = percents.map((percent) => ((percent ?? 0) * 10 * seconds) / mails)
      taken.push({ own: rate, whole: mails / seconds, other: await bring({ ...other, mails }), serviceMs, redisMs })
    }
    print(taken)
    const kept = ((await datasetWithoutContent(store)) - settled) / (rounds * mails)
    const verdict = kept <= TARGET_BYTES ? 'reached' : 'missed'
    console.log(`${formatNumber(kept)} bytes of Redis a mail, its content gone; target <= ${TARGET_BYTES}: ${verdict}`)
  } finally {
    await service.stop()
    await postfix.close()
    await zone.close()
    await store.stop()
  }
}

/** Bytes of the store's dataset, once the rows that go with a mail's content are gone, as after its days. */
async function datasetWithoutContent({ client }: BenchStore): Promise<number> {
  const rows = await keysOf(client, '{s*}:received-head:*')
  if (rows.length > 0) await client.del(...rows)
  return readInfo(client, 'memory', 'used_memory_dataset')
}

/** Resolves once so many are parsed. Asking costs the service a few milliseconds, so that it is done seldom. */
async function haveParsed(service: Receiving, mails: number): Promise<void> {
  const deadlineMs = performance.now() + PARSED_MS_MAX
  while ((await service.parsed()) !== mails) {
    if (performance.now() > deadlineMs) throw new Error(`Of ${mails} mails not all were parsed`)
    await delay(LOOK_MS)
  }
}

/** Has mails brought. Out: mails a second. */
async function bring({ port, to, mails }: { port: number; to: string; mails: number }): Promise<number> {
  const args = [
    '-d',
    '-s',
    String(CONNECTIONS),
    '-m',
    String(mails),
    '-l',
    String(BYTES),
    '-f',
    `s@${DOMAIN}`,
    '-t',
    to,
  ]
  const startedAtMs = performance.now()
  await run('smtp-source', [...args, `127.0.0.1:${port}`])
  return (mails / (performance.now() - startedAtMs)) * 1000
}

/** A service that receives at an address. */
async function startReceiving(store: BenchStore, dnsServer: string): Promise<Receiving> {
  const service = await startWholeService(store, { DNS_SERVERS: dnsServer })
  const limits = { inboundPerMinuteLimit: 1_000_000_000 }
  await service.call('PATCH', `/v1/operator/accounts/${service.accountId}`, service.operator, limits)
  const stream = { kind: 'inbound', name: 'Mail' }
  const made = (await service.call('POST', '/v1/streams', service.live, stream)) as { inboundAddress: string }
  return {
    pid: service.pid,
    mxPort: service.mxPort,
    address: made.inboundAddress,
    async parsed() {
      const page = await (await fetch(`http://127.0.0.1:${service.operatorPort}/metrics`)).text()
      return [...page.matchAll(/^sendwright_parsed_total\{.*\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0)
    },
    stop: () => service.stop(),
  }
}

function print(taken: readonly Taken[]): void {
  const row = (name: string, rates: readonly number[]): string[] => [
    name,
    ...[median(rates), Math.min(...rates), Math.max(...rates)].map((one) => formatNumber(one)),
  ]
  const [own, other, whole] = [
    taken.map((one) => one.own),
    taken.map((one) => one.other),
    taken.map((one) => one.whole),
  ]
  const head = ['', 'mails/s', 'least', 'most']
  console.log(
    formatTable([head, row('taken', own), row('Postfix smtpd', other), row('parsed, event committed', whole)]),
  )
  const ratio = median(own) / median(other)
  console.log(
    `\nTaken at ${formatNumber(ratio, 2)} of Postfix; target >= ${TARGET_RATIO}: ${ratio >= TARGET_RATIO ? 'reached' : 'missed'}`,
  )
  const rate = median(whole)
  console.log(
    `The whole way ${formatNumber(rate)}/s; target >= ${TARGET_WHOLE}: ${rate >= TARGET_WHOLE ? 'reached' : 'missed'}`,
  )
  const [serviceMs, redisMs] = [taken.map((one) => one.serviceMs ?? 0), taken.map((one) => one.redisMs ?? 0)]
  console.log(
    `Processor time of a mail, the whole way: ${formatNumber(median(serviceMs), 2)} ms of the service, ${formatNumber(median(redisMs), 2)} ms of Redis`,
  )
}
