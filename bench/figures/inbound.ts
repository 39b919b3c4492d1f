/**
 * inbound - received mails: the rate of durable acceptance, compared with that of Postfix for the same sender, and of
 * parsing with the event committed; then the Redis memory of a message, and the latency of other requests next to very
 * large mails
 *
 * `smtp-source` (of Postfix) over twenty connections that stay open, 20 KB each. Postfix holds its queue, so it only
 * accepts mail and writes it to disk before it answers; the product parses and judges at the same time.
 */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { POSTFIX_SKIP, startPostfix } from '../../test/support/peers/postfix.ts'
import { startZone, type Zone } from '../../test/support/peers/zone.ts'
import { startReceiving } from '../contestants/receiving.ts'
import { freePort } from '../free-port.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'
import { measureBytes } from './inbound-bytes.ts'
import { measureLarge } from './inbound-large.ts'

const CONNECTIONS = 20
const BYTES = 20 * 1024
const TARGET_RATIO = 2
const TARGET_WHOLE = 300
const DOMAIN = 'bench.example'
const run = promisify(execFile)

interface InboundRun {
  readonly rounds: number
  /** Mails of each connection. */
  readonly each: number
  /** Which measurements: `rate`, `bytes`, `large`. */
  readonly only: readonly string[]
}

/** Received messages in segments with postings whose bytes are counted. */
const BUSY_MESSAGES = 20_000

/** Rates in mails a second, processor time in milliseconds a mail, for the whole way. */
interface Taken {
  readonly own: number
  readonly other: number
  readonly whole: number
  readonly serviceMs: number | undefined
  readonly redisMs: number | undefined
}

/** Measures and prints. Throws Error where Postfix is not installed, or a mail is not taken. */
export async function benchInbound({ rounds, each, only }: InboundRun): Promise<void> {
  const zone = await startZone()
  try {
    if (only.includes('rate')) await measureRate(zone, { rounds, mails: CONNECTIONS * each })
    if (only.includes('bytes')) await measureBytes(zone, BUSY_MESSAGES)
    if (only.includes('large')) await measureLarge(zone)
  } finally {
    await zone.close()
  }
}

async function measureRate(zone: Zone, { rounds, mails }: { rounds: number; mails: number }): Promise<void> {
  if (POSTFIX_SKIP !== false) throw new Error(POSTFIX_SKIP)
  const store = await startStore()
  const receiving = await startReceiving(store, zone.server)
  const { service } = receiving
  const port = await freePort()
  const name = `mx.${DOMAIN}`
  const postfix = await startPostfix(
    { host: '127.0.0.1', port },
    { name, domain: DOMAIN, isHeld: true, parent: '/var/tmp' },
  )
  try {
    const own = { port: service.mxPort, to: receiving.address }
    const other = { port, to: `x@${DOMAIN}` }
    await bring({ ...own, mails: 200 })
    await bring({ ...other, mails: 200 })
    const taken: Taken[] = []
    for (let round = 0; round < rounds; round += 1) {
      await receiving.haveParsed(200 + round * mails)
      const startedAtMs = performance.now()
      const { value: rate, percents } = await shareOfCore([service.pid, store.pid], async () => {
        const brought = await bring({ ...own, mails })
        await receiving.haveParsed(200 + (round + 1) * mails)
        return brought
      })
      const seconds = (performance.now() - startedAtMs) / 1000
      const [serviceMs, redisMs] = percents.map((percent) => ((percent ?? 0) * 10 * seconds) / mails)
      taken.push({ own: rate, whole: mails / seconds, other: await bring({ ...other, mails }), serviceMs, redisMs })
    }
    print(taken)
  } finally {
    await service.stop()
    await postfix.close()
    await store.stop()
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
