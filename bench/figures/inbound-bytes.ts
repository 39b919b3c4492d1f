/**
 * inbound-bytes - the Redis memory of a received message once its content has gone: for the first 5,000 of a server,
 * whose segment has no postings, and for later ones, whose segment has them
 *
 * Small mails of 2,000 senders, each in the envelope and another address in From, to an address with a mailbox hash of
 * its own, so that every possible posting is written.
 */

import type { Zone } from '../../test/support/peers/zone.ts'
import { type Brought, bring, type Receiving, startReceiving } from '../contestants/receiving.ts'
import { type BenchStore, type Family, keysOf, measureFamilies, readInfo, startStore } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'

const CONNECTIONS = 16
const SENDERS = 2_000
/** Messages that fill a segment without postings. */
const QUIET = 5_000
const TARGETS = { quiet: 300, busy: 350 }

interface Reading {
  readonly dataset: number
  readonly families: ReadonlyMap<string, Family>
}

/** Measures and prints. In: messages of segments with postings. */
export async function measureBytes(zone: Zone, busy: number): Promise<void> {
  const store = await startStore()
  const receiving = await startReceiving(store, zone.server)
  try {
    await fill(receiving, { from: 0, count: CONNECTIONS })
    await receiving.haveParsed(CONNECTIONS)
    const before = await read(store)
    await fill(receiving, { from: CONNECTIONS, count: QUIET - CONNECTIONS })
    await receiving.haveParsed(QUIET)
    const first = await read(store)
    await fill(receiving, { from: QUIET, count: busy })
    await receiving.haveParsed(QUIET + busy)
    const last = await read(store)
    print([
      { name: 'quiet', before, after: first, messages: QUIET - CONNECTIONS },
      { name: 'busy', before: first, after: last, messages: busy },
    ])
  } finally {
    await receiving.service.stop()
    await store.stop()
  }
}

/** Brings mails over several connections. */
async function fill(receiving: Receiving, { from, count }: { from: number; count: number }): Promise<void> {
  const mails = (function* (): Generator<Brought> {
    for (let n = from; n < from + count; n += 1) {
      const sender = `bounce-${n % SENDERS}@mail.example.net`
      const raw = `From: Person ${n} <person${n % SENDERS}@example.org>\r\nSubject: Words\r\n\r\nWords\r\n`
      yield { sender, plus: `order-${n}`, raw }
    }
  })()
  await Promise.all(Array.from({ length: CONNECTIONS }, () => bring(receiving, mails)))
}

/** The dataset, once the rows that go with a mail's content are gone, as after its days. */
async function read({ client }: BenchStore): Promise<Reading> {
  const rows = await keysOf(client, '{s*}:received-head:*')
  if (rows.length > 0) await client.del(...rows)
  return { dataset: await readInfo(client, 'memory', 'used_memory_dataset'), families: await measureFamilies(client) }
}

function print(parts: readonly { name: 'quiet' | 'busy'; before: Reading; after: Reading; messages: number }[]): void {
  const names = [...new Set(parts.flatMap(({ after }) => [...after.families.keys()]))]
  const each = ({ before, after, messages }: (typeof parts)[number], name: string): number =>
    ((after.families.get(name)?.bytes ?? 0) - (before.families.get(name)?.bytes ?? 0)) / messages
  const rows = names
    .map((name) => ({ name, bytes: parts.map((part) => each(part, name)) }))
    .filter(({ bytes }) => bytes.some((one) => Math.abs(one) >= 1))
    .map(({ name, bytes }) => [name, ...bytes.map((one) => formatNumber(one, 1))])
  const whole = parts.map(({ before, after, messages }) => (after.dataset - before.dataset) / messages)
  const head = ['bytes of Redis a message', ...parts.map(({ name, messages }) => `${name}, ${formatNumber(messages)}`)]
  console.log(`\n${formatTable([head, ...rows, ['dataset', ...whole.map((one) => formatNumber(one, 1))]])}`)
  for (const [at, { name }] of parts.entries()) {
    const bytes = whole[at] as number
    const verdict = bytes <= TARGETS[name] ? 'reached' : 'missed'
    console.log(
      `${name}: ${formatNumber(bytes)} bytes a message, its content gone; target <= ${TARGETS[name]}: ${verdict}`,
    )
  }
}
