/**
 * delivery - the latency of delivery: idle, from a message's 200 to the first byte at the mail server; and next to
 * dead destinations, from acceptance to the final dot
 */

import { Agent } from 'node:http'
import type { Redis } from 'ioredis'
import { type Host, startHost } from '../contestants/host.ts'
import { startArrivals } from '../load/arrivals.ts'
import { makeClient, sendBatches } from '../load/batches.ts'
import { addSite, openField } from '../load/mail-field.ts'
import { bodyTemplate, formatPlace, PLACE } from '../load/message.ts'
import { pace } from '../load/pace.ts'
import { keysOf, startStore, sumOf } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'

const ACCOUNTS = 20
const IDLE_SENDS = 40
const SILENT = '127.0.91.'
const SETTLE_MS = 3000

export interface DeliveryOrder {
  readonly seconds: number
  readonly rate: number
  readonly dead: number
  /** Messages that wait for each dead destination. */
  readonly each: number
}

/** Measures and prints. */
export async function benchDelivery({ seconds, rate, dead, each }: DeliveryOrder): Promise<void> {
  const store = await startStore()
  const arrivals = await startArrivals((address) => address.startsWith(SILENT))
  const field = await openField(arrivals.port)
  for (let n = 0; n < dead; n += 1) addSite(field.zone, `z${formatPlace(n)}.example.net`, `${SILENT}${n + 1}`)
  try {
    const host = await startHost('product', store, { accounts: ACCOUNTS, isHeld: false, mode: 'live', mx: field.mx })
    const idle = await measureIdle(host, arrivals.nextFirstByte)
    const load = { rate, count: rate * seconds, recipients: field.recipients }
    await pace(host.ready, { ...load, count: rate * 2 })
    arrivals.take()
    const alone = await pace(host.ready, load)
    await pause(SETTLE_MS)
    const undisturbed = arrivals.take()
    await fill(host, { dead, each })
    const beside = await pace(host.ready, load)
    await pause(SETTLE_MS)
    const disturbed = arrivals.take()
    const waiting = await depthOf(store.client)
    await host.stop()
    console.log(`idle, from the 200 to the first byte: p50 ${formatNumber(idle, 1)} ms of ${IDLE_SENDS}\n`)
    const row = (name: string, way: typeof disturbed, accepted: typeof alone) => [
      name,
      formatNumber(way.count),
      formatNumber(way.p50Ms),
      formatNumber(way.p99Ms),
      formatNumber(accepted.p99Ms, 1),
    ]
    console.log(
      formatTable([
        [`${rate}/s for ${seconds} s to 20 sites`, 'arrived', 'p50 ms', 'p99 ms', 'accept p99 ms'],
        row('undisturbed', undisturbed, alone),
        row(`beside ${dead} dead destinations of ${each}`, disturbed, beside),
      ]),
    )
    console.log(`\nwaiting for the dead at the end: ${formatNumber(waiting)}`)
    for (const { accepted } of [alone, beside])
      if (accepted !== load.count) throw new Error(`${accepted} of ${load.count} messages were accepted`)
  } finally {
    await arrivals.close()
    await field.close()
    await store.stop()
  }
}

/** Messages in the queues of dead destinations. */
async function depthOf(client: Redis): Promise<number> {
  return sumOf(client, await keysOf(client, '{s*}:due:deliver/z*'), (pipeline, key) => pipeline.zcard(key))
}

/** Puts `each` messages into the queue of every dead destination. */
async function fill({ ready }: Host, { dead, each }: Pick<DeliveryOrder, 'dead' | 'each'>): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  const body = bodyTemplate(ready.domain, `person@z${PLACE}.example.net`)
  await sendBatches(makeClient(ready, agent), dead * each, (n) =>
    JSON.parse(body.replace(PLACE, formatPlace(n % dead))),
  )
  agent.destroy()
}

/** Median of the time from an answer to the first byte at the mail server, each time to another site. */
async function measureIdle({ ready }: Host, nextFirstByte: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < IDLE_SENDS; n += 1) {
    const came = nextFirstByte()
    const body = bodyTemplate(ready.domain, `person@s${formatPlace(n % 20)}.example.net`)
    const answer = await fetch(`http://127.0.0.1:${ready.port}/v1/email`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ready.keys[0]}`, 'content-type': 'application/json' },
      body,
    })
    const answeredAtMs = performance.now()
    if (answer.status !== 200) throw new Error(await answer.text())
    times.push(Math.max(0, (await came) - answeredAtMs))
    await pause(300)
  }
  return times.sort((a, b) => a - b)[times.length >> 1] as number
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
