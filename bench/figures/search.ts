/**
 * search - how long a search of the message log takes among very many messages of one server
 *
 * The log is filled through `POST /v1/email/batch`, so that it is packed as by the product; nothing is delivered. Then
 * real requests, one after the other and from several clients at once. Recipients are found again as often as they
 * were sent to, page by page, or the run fails. The dashboard's first page is asked for as a browser does, with a
 * session.
 */

import { Agent } from 'node:http'
import { startHost } from '../contestants/host.ts'
import { type Client, makeClient, sendBatches } from '../load/batches.ts'
import { openSessionClient } from '../load/session-client.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'
import { shareOfCore } from '../usage.ts'

/** Messages of one recipient, on average. */
const MESSAGES_EACH = 10
/** Recipients that are looked up whole. */
const CHECKED = 20
const TAGS = 50
/** A kind of search ends after its requests, or after this time. */
const KIND_MS_MAX = 8_000
const TARGET_MS = 20
const TARGET_AT = 0.99
/** Rows of a page of the dashboard, and the target time of its first page. */
const PAGE_ROWS = 50
const PAGE_TARGET_MS = 300

const FIRST_PAGE = 'first page of the dashboard'

/** Sends a request with a body. */
type Asking = (body: object) => Promise<unknown>

interface Seen {
  readonly messages: readonly { readonly recipients: readonly { readonly recipient: string }[] }[]
  readonly next: string | null
}

/** Fills the log, searches up to `requests` times for each kind, and prints milliseconds. */
export async function benchSearch({ messages, requests }: { messages: number; requests: number }): Promise<void> {
  const store = await startStore()
  try {
    const host = await startHost('product', store, { accounts: 1, isHeld: true, mode: 'live' })
    const agent = new Agent({ keepAlive: true })
    const client = makeClient(host.ready, agent)
    const people = Math.ceil(messages / MESSAGES_EACH)
    const startedAtMs = performance.now()
    await seed(client, host.ready.domain, { messages, people })
    const seconds = (performance.now() - startedAtMs) / 1000
    console.log(
      `${formatNumber(messages)} messages to ${formatNumber(people)} addresses in ${formatNumber(seconds)} s\n`,
    )
    await verify(client, { messages, people })
    const any = () => Math.floor(Math.random() * people)
    const page = await openSessionClient(store.socketPath, host.ready, agent)
    const asKey = (body: object) => client('/v1/messages/search', body)
    const asPage = (body: object) => page.client(`/servers/${page.serverId}/messages/search`, body)
    const kinds: [string, number, () => object, Asking?][] = [
      ['recipient', 1, () => ({ recipient: addressOf(any()) })],
      ['recipient, 4 clients', 4, () => ({ recipient: addressOf(any()) })],
      ['tag', 1, () => ({ tag: `tag ${any() % TAGS}` })],
      ['newest', 1, () => ({})],
      ['unknown recipient', 1, () => ({ recipient: addressOf(people) })],
      ['sender and metadata', 1, () => ({ from: `shop@${host.ready.domain}`, metadata: { number: String(any()) } })],
      [FIRST_PAGE, 1, () => ({ limit: PAGE_ROWS }), asPage],
    ]
    const rows = [['search by', 'p50 ms', 'p99 ms', 'most ms', 'host CPU ms', 'redis CPU ms']]
    const p99: number[] = []
    for (const [name, clients, bodyOf, asking = asKey] of kinds) {
      const work = () => measure(asking, { clients, requests, bodyOf })
      const startedAtMs = performance.now()
      const { value: times, percents } = await shareOfCore([host.pid, store.pid], work)
      const seconds = (performance.now() - startedAtMs) / 1000
      const costs = percents.map((percent) => (percent === null ? null : (percent * 10 * seconds) / times.length))
      p99.push(quantile(times, TARGET_AT))
      const shown = [...[0.5, TARGET_AT, 1].map((share) => quantile(times, share)), ...costs]
      rows.push([name, ...shown.map((ms) => formatNumber(ms, 1))])
    }
    console.log(formatTable(rows))
    const verdict = (p99[0] ?? Number.POSITIVE_INFINITY) <= TARGET_MS ? 'reached' : 'missed'
    console.log(`\nby recipient: p99 ${formatNumber(p99[0] ?? null, 1)} ms; target <= ${TARGET_MS}: ${verdict}`)
    const pageMs = p99.at(-1) ?? Number.POSITIVE_INFINITY
    const pageVerdict = pageMs <= PAGE_TARGET_MS ? 'reached' : 'missed'
    console.log(`${FIRST_PAGE}: p99 ${formatNumber(pageMs, 1)} ms; target <= ${PAGE_TARGET_MS}: ${pageVerdict}`)
    agent.destroy()
    await host.stop()
  } finally {
    await store.stop()
  }
}

function addressOf(person: number): string {
  return `person${person}@mail.example.com`
}

/** Message n goes to person n modulo their number, so the messages of one person are far apart. */
function seed(client: Client, domain: string, { messages, people }: { messages: number; people: number }) {
  return sendBatches(client, messages, (n) => ({
    from: `shop@${domain}`,
    to: [addressOf(n % people)],
    subject: 'Your receipt',
    tag: `tag ${n % TAGS}`,
    metadata: { number: String(n) },
    text: 'Thank you.',
  }))
}

/** Throws when a recipient is not found as often as it was sent to. */
async function verify(client: Client, { messages, people }: { messages: number; people: number }): Promise<void> {
  for (let check = 0; check < CHECKED; check += 1) {
    const person = Math.floor((check * people) / CHECKED)
    const recipient = addressOf(person)
    const expected = Math.floor(messages / people) + (person < messages % people ? 1 : 0)
    let found = 0
    for (let after: string | undefined; ; ) {
      const page = (await client('/v1/messages/search', { recipient, ...(after && { after }) })) as Seen
      if (!page.messages.every(({ recipients }) => recipients[0]?.recipient === recipient))
        throw new Error('A search found what was not sought')
      found += page.messages.length
      if (page.next === null) break
      after = page.next
    }
    if (found !== expected) throw new Error(`${found} of ${expected} messages of a recipient were found`)
  }
}

async function measure(
  asking: Asking,
  { clients, requests, bodyOf }: { clients: number; requests: number; bodyOf: () => object },
): Promise<number[]> {
  const times: number[] = []
  let left = requests
  const endMs = performance.now() + KIND_MS_MAX
  const one = async () => {
    while (left > 0 && performance.now() < endMs) {
      left -= 1
      const body = bodyOf()
      const startedAtMs = performance.now()
      await asking(body)
      times.push(performance.now() - startedAtMs)
    }
  }
  await Promise.all(Array.from({ length: clients }, one))
  return times
}

function quantile(times: readonly number[], share: number): number {
  const sorted = [...times].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
