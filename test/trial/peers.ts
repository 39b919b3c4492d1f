/**
 * peers - what a machine of the trial meets on its network: name servers, a receiving mail server, and clients that
 * send through its proxy. A process on that network; each line that it reads is an order, each that it prints an
 * answer.
 */
import { createInterface } from 'node:readline'
import { type Load, startLoad } from '../support/clients/ledger.ts'
import { type Probe, startProbe } from '../support/clients/probe.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone, type ZoneRecord } from '../support/peers/zone.ts'

/** The orders: records of a name, a load, its end, or the received mail. */
export type Order =
  | { readonly order: 'set'; readonly name: string; readonly records: readonly ZoneRecord[] }
  | { readonly order: 'load'; readonly port: number; readonly token: string }
  | { readonly order: 'passes'; readonly count: number }
  | { readonly order: 'end' }
  /** A connection to each port every 20 ms, and the end of that. */
  | { readonly order: 'probe'; readonly ports: readonly number[] }
  | { readonly order: 'probed' }
  | { readonly order: 'mail' }

/** The result of a load. */
export interface Loaded {
  /** Key and id of each message that has its 200. */
  readonly told: readonly (readonly [key: string, messageId: string])[]
  /** The number of answers by status; 0: no answer. */
  readonly statuses: Readonly<Record<string, number>>
}

const CLIENTS = 4
/** Together fewer requests than one client may send by default. */
const EVERY_MS = 250

const zone = await startZone()
const mx = await startMx()
let load: Load | null = null
let probe: Probe | null = null

async function obey(order: Order): Promise<object> {
  if (order.order === 'set') zone.set(order.name, ...order.records)
  if (order.order === 'load')
    load = startLoad({
      port: order.port,
      token: order.token,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      recipient: (n) => `person${n % 100}@example.com`,
    })
  if (order.order === 'probe') probe = startProbe(order.ports)
  if (order.order === 'probed') return { outcomes: (await probe?.end()) ?? {} }
  if (order.order === 'passes') await load?.passes(order.count)
  if (order.order === 'mail') return { messages: mx.sessions.flatMap(({ messages }) => messages) }
  if (order.order !== 'end' || load === null) return {}
  const { told, statuses } = await load.end()
  const ids = [...told].flatMap(([key, all]) => [...all].map((id) => [key, id] as const))
  return { told: ids, statuses: Object.fromEntries(statuses) } satisfies Loaded
}

console.log(JSON.stringify({ dns: zone.server, smtp: mx.port }))
for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(await obey(JSON.parse(line))))
process.exit(0)
