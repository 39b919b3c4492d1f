/**
 * submission - messages over SMTP: durable acceptance, compared with Postfix for the same clients, and with the API
 *
 * Twenty connections that stay open, encrypted, and logged in if the server requires it; 1.4 KB each. Effects are
 * held; Postfix holds its queue too, so that both do nothing but take mail in and have it on the disk before they
 * answer.
 */

import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { POSTFIX_SKIP, startPostfix } from '../../test/support/peers/postfix.ts'
import { type Host, startHost } from '../contestants/host.ts'
import { freePort } from '../free-port.ts'
import type { Measured } from '../load/measured.ts'
import { pace } from '../load/pace.ts'
import type { SubmitterOrder } from '../load/submitter.ts'
import { childEnvironment } from '../load/wrk.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'

const CONNECTIONS = 20
const ACCOUNTS = 4
const TARGET_RATIO = 3
const TARGET_P99_RATIO = 2
/** Share of SMTP's maximum rate next to which the API's answers are timed, and share of the API's own maximum. */
const BESIDE_SHARE = 0.5
const API_SHARE = 0.25
const DOMAIN = 'bench.example'

interface SubmissionRun {
  readonly rounds: number
  /** Messages of each connection. */
  readonly each: number
}

/** Measures and prints. Throws Error where Postfix is not installed, or a message is not taken. */
export async function benchSubmission({ rounds, each }: SubmissionRun): Promise<void> {
  if (POSTFIX_SKIP !== false) throw new Error(POSTFIX_SKIP)
  const store = await startStore()
  const host = await startHost('product', store, { accounts: ACCOUNTS, isSubmission: true, contentStore: 'file' })
  const address = { host: '127.0.0.1', port: await freePort() }
  const postfix = await startPostfix(address, {
    name: `mx.${DOMAIN}`,
    domain: DOMAIN,
    isHeld: true,
    parent: '/var/tmp',
  })
  try {
    const own = orderOf(host, each)
    const other = { ...own, ...address, keys: [], domain: DOMAIN }
    await whole(own)
    await whole(other)
    const taken: { own: Measured; other: Measured; api: Measured }[] = []
    for (let round = 0; round < rounds; round += 1) {
      const measured = { own: await whole(own), other: await whole(other) }
      taken.push({ ...measured, api: await pace(host.ready, { rate: null, count: CONNECTIONS * each * 2 }) })
    }
    print(taken)
    await besideApi(host, {
      own,
      apiRate: medianRate(taken.map(({ api }) => api)) * API_SHARE,
      smtpRate: medianRate(taken.map(({ own }) => own)),
    })
  } finally {
    await host.stop()
    await postfix.close()
    await store.stop()
  }
}

/** The latency of the API's clients next to messages over SMTP. */
async function besideApi(
  host: Host,
  { own, apiRate, smtpRate }: { own: SubmitterOrder; apiRate: number; smtpRate: number },
): Promise<void> {
  const seconds = 8
  const order = { rate: Math.round(apiRate), count: apiRate * seconds }
  await pace(host.ready, order)
  const quiet = await pace(host.ready, order)
  const rate = smtpRate * BESIDE_SHARE
  const each = Math.ceil((rate * (seconds + 2)) / CONNECTIONS)
  const [beside, smtp] = await Promise.all([pace(host.ready, order), whole({ ...own, rate, each })])
  const ratio = beside.p99Ms / quiet.p99Ms
  console.log(
    `\nAPI at ${formatNumber(apiRate)}/s: p99 ${formatNumber(quiet.p99Ms, 1)} ms quiet, ${formatNumber(beside.p99Ms, 1)} ms beside ${formatNumber(smtp.perSecond)}/s over SMTP (p99 ${formatNumber(smtp.p99Ms, 1)} ms): ${formatNumber(ratio, 2)}; target <= ${TARGET_P99_RATIO}: ${ratio <= TARGET_P99_RATIO ? 'reached' : 'missed'}`,
  )
}

function orderOf({ ready }: Host, each: number): SubmitterOrder {
  const { keys, domain, submissionPort = 0 } = ready
  const from = `billing@${domain}`
  return { host: '127.0.0.1', port: submissionPort, keys, connections: CONNECTIONS, each, rate: null, from, domain }
}

/** A run of the clients, which must all be accepted. */
async function whole(order: SubmitterOrder): Promise<Measured> {
  const child = fork(fileURLToPath(new URL('../load/submitter.js', import.meta.url)), { env: childEnvironment() })
  child.send(order)
  const measured = await new Promise<Measured>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Measured))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`The clients ended with ${code}`)))
  })
  if (measured.refused + measured.broken > 0)
    throw new Error(`${measured.refused} messages were refused, ${measured.broken} had no answer`)
  return measured
}

function print(taken: readonly { own: Measured; other: Measured; api: Measured }[]): void {
  const row = (name: string, all: readonly Measured[]): string[] => {
    const rates = all.map(({ perSecond }) => perSecond)
    const p99 = median(all.map(({ p99Ms }) => p99Ms))
    return [
      name,
      ...[median(rates), Math.min(...rates), Math.max(...rates)].map((one) => formatNumber(one)),
      formatNumber(p99, 1),
    ]
  }
  const [own, other, api] = [taken.map((one) => one.own), taken.map((one) => one.other), taken.map((one) => one.api)]
  const head = ['', 'accepted/s', 'least', 'most', 'p99 ms']
  console.log(formatTable([head, row('SMTP', own), row('Postfix smtpd', other), row('API', api)]))
  const ratio = medianRate(own) / medianRate(other)
  const verdict = ratio >= TARGET_RATIO ? 'reached' : 'missed'
  console.log(
    `\n${formatNumber(ratio, 2)} times Postfix; target >= ${TARGET_RATIO}: ${verdict}. ${formatNumber(medianRate(own) / medianRate(api), 2)} of the API's rate.`,
  )
}

function medianRate(all: readonly Measured[]): number {
  return median(all.map(({ perSecond }) => perSecond))
}
