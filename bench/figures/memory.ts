/**
 * memory - the Redis memory of a message once it is delivered and its content has gone: bytes, by family
 *
 * The messages really pass through acceptance, simulator and outcome. Then content and idempotency records are removed
 * as by their expiry, and the store's dataset is compared with its size before the first message.
 */

import type { Redis } from 'ioredis'
import { until } from '../../test/support/machine/until.ts'
import { countLog } from '../contestants/contestant.ts'
import { startHost } from '../contestants/host.ts'
import { readFigure } from '../contestants/product-figures.ts'
import { ADDRESSES } from '../load/message.ts'
import { pace } from '../load/pace.ts'
import { type BenchStore, type Family, keysOf, measureFamilies, readInfo, startStore } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'

const SERVERS = 4
const TARGET_BYTES = 600
const DELIVERY_MS_MAX = 900_000
const UNLINK_COUNT = 1000

/** Sends, waits for every delivery, and prints bytes per message. Throws Error when one is missing. */
export async function benchMemory(messages: number): Promise<void> {
  const store = await startStore()
  try {
    const before = await measureStore(store)
    const host = await startHost('product', store, { accounts: SERVERS, isHeld: false, mode: 'test' })
    const settled = await measureStore(store)
    const measured = await pace(host.ready, { rate: null, count: messages })
    if (measured.accepted !== messages) throw new Error(`${measured.accepted} of ${messages} messages were accepted`)
    await waitForDelivery(host.ready.operatorPort as number, messages)
    if ((await countLog(store.client)) !== messages) throw new Error('The log does not hold every message')
    await host.stop()
    const withContent = await measureStore(store)
    for (const family of ['bodies', 'content', 'idempotency']) await unlinkFamily(store.client, family)
    const after = await measureStore(store)
    console.log(
      `memory: ${formatNumber(messages)} messages, ${SERVERS} servers, ${formatNumber(ADDRESSES)} addresses\n`,
    )
    console.log(
      `Dataset of the empty store, and with its accounts: ${formatNumber(before.dataset)}, ${formatNumber(settled.dataset)} bytes`,
    )
    console.log(formatBreakdown({ settled, withContent, after }, messages))
    const perMessage = (after.dataset - settled.dataset) / messages
    const verdict = perMessage <= TARGET_BYTES ? 'reached' : 'missed'
    console.log(`\n${formatNumber(perMessage)} bytes per message; target <= ${TARGET_BYTES}: ${verdict}`)
  } finally {
    await store.stop()
  }
}

interface Reading {
  /** `used_memory_dataset`, which excludes buffers of clients and of the append-only file. */
  readonly dataset: number
  readonly families: ReadonlyMap<string, Family>
}

async function measureStore({ client }: BenchStore): Promise<Reading> {
  // A rewrite keeps copies of changes during it, and a lazy UNLINK ends later.
  await until(async () => (await readInfo(client, 'persistence', 'aof_rewrite_in_progress')) === 0, DELIVERY_MS_MAX)
  await until(async () => (await readInfo(client, 'memory', 'lazyfree_pending_objects')) === 0, DELIVERY_MS_MAX)
  return { dataset: await readInfo(client, 'memory', 'used_memory_dataset'), families: await measureFamilies(client) }
}

async function waitForDelivery(operatorPort: number, messages: number): Promise<void> {
  const name = 'sendwright_attempts_total\\{result="delivered",class=""\\}'
  await until(async () => (await readFigure(operatorPort, name)) === messages, DELIVERY_MS_MAX)
}

async function unlinkFamily(client: Redis, family: string): Promise<void> {
  const keys = await keysOf(client, `{s*}:${family}:*`)
  for (let start = 0; start < keys.length; start += UNLINK_COUNT)
    await client.unlink(...keys.slice(start, start + UNLINK_COUNT))
}

function formatBreakdown(
  { settled, withContent, after }: { settled: Reading; withContent: Reading; after: Reading },
  messages: number,
): string {
  const perMessage = (reading: Reading, name: string): number =>
    ((reading.families.get(name)?.bytes ?? 0) - (settled.families.get(name)?.bytes ?? 0)) / messages
  const names = [...new Set([...withContent.families.keys(), ...after.families.keys()])]
  names.sort((one, other) => perMessage(withContent, other) - perMessage(withContent, one))
  const rows = [['family', 'keys', 'bytes per message', 'with content']]
  for (const name of names)
    rows.push([
      name,
      formatNumber(after.families.get(name)?.keys ?? 0),
      formatNumber(perMessage(after, name), 1),
      formatNumber(perMessage(withContent, name), 1),
    ])
  const sum = (reading: Reading): number => names.reduce((total, name) => total + perMessage(reading, name), 0)
  rows.push(['all families', '', formatNumber(sum(after), 1), formatNumber(sum(withContent), 1)])
  const dataset = (reading: Reading): string => formatNumber((reading.dataset - settled.dataset) / messages, 1)
  rows.push(['dataset', '', dataset(after), dataset(withContent)])
  return formatTable(rows)
}
