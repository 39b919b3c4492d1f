/**
 * doors - the cost of a message through the API of another provider, against our own route, by turns on one service
 *
 * The same message in the fields of each. The cost is processor time of the service, because the rate depends on other
 * load of the machine.
 */

import { type Host, startHost } from '../contestants/host.ts'
import type { Ask } from '../load/generator.ts'
import type { Measured } from '../load/measured.ts'
import { bodyTemplate, PLACE } from '../load/message.ts'
import { pace } from '../load/pace.ts'
import { startStore } from '../store.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const ACCOUNTS = 100
const TARGET_RATIO = 1.15

interface DoorsRun {
  readonly rounds: number
  /** Messages of each run. */
  readonly messages: number
  /** Names of the ways to measure, in lower case; absent: all. */
  readonly only?: readonly string[]
}

interface Way {
  readonly name: string
  /** Absent: our own route. */
  readonly other?: { readonly asks: readonly Ask[]; readonly template: string }
}

interface Run {
  readonly measured: Measured
  /** Microseconds of processor time of the service for each message; null if it cannot be read. */
  readonly microseconds: number | null
}

/** Measures and prints. Throws Error if a message is not accepted. */
export async function benchDoors({ rounds, messages, only }: DoorsRun): Promise<void> {
  const store = await startStore()
  const host = await startHost('product', store, { accounts: ACCOUNTS })
  try {
    const ways = waysOf(host).filter(({ name }) => only?.includes(name.toLowerCase()) ?? true)
    for (const way of ways) await run(host, way, messages)
    const runs = new Map<string, Run[]>(ways.map(({ name }) => [name, []]))
    for (let round = 0; round < rounds; round += 1)
      for (let turn = 0; turn < ways.length; turn += 1) {
        const way = ways[(turn + round) % ways.length] as Way
        runs.get(way.name)?.push(await run(host, way, messages))
      }
    print(runs)
  } finally {
    await host.stop()
    await store.stop()
  }
}

function waysOf({ ready: { keys, domain } }: Host): readonly Way[] {
  const own = JSON.parse(bodyTemplate(domain)) as {
    from: { email: string; name: string }
    to: { email: string; name: string }[]
    subject: string
    tag: string
    metadata: Record<string, string>
    text: string
    html: string
  }
  const { from, subject, tag, metadata, text, html } = own
  const [sender, recipient] = [`${from.name} <${from.email}>`, `A. Customer <person${PLACE}@mail.example.com>`]
  const resend = { from: sender, to: [recipient], subject, text, html, tags: tagsOf(metadata) }
  const postmark = {
    From: sender,
    To: recipient,
    Subject: subject,
    Tag: tag,
    Metadata: metadata,
    TextBody: text,
    HtmlBody: html,
    MessageStream: 'outbound',
  }
  const variables = Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`v:${name}`, value]))
  const form = new URLSearchParams({ from: sender, to: recipient, subject, 'o:tag': tag, text, html, ...variables })
  const json = 'Content-Type: application/json'
  const asks = (path: string, headersOf: (key: string) => string[]) =>
    keys.map((key): Ask => ({ path, headers: headersOf(key) }))
  const basic = (key: string) => `Authorization: Basic ${Buffer.from(`api:${key}`).toString('base64')}`
  return [
    { name: '/v1/email' },
    {
      name: 'Resend',
      other: {
        asks: asks('/emails', (key) => [`Authorization: Bearer ${key}`, json]),
        template: JSON.stringify(resend),
      },
    },
    {
      name: 'Postmark',
      other: {
        asks: asks('/email', (key) => [`X-Postmark-Server-Token: ${key}`, json]),
        template: JSON.stringify(postmark),
      },
    },
    {
      name: 'Mailgun',
      other: {
        asks: asks(`/v3/${domain}/messages`, (key) => [basic(key), 'Content-Type: application/x-www-form-urlencoded']),
        // The placeholder is kept unescaped; a form would escape it.
        template: form.toString().replace(encodeURIComponent(PLACE), PLACE),
      },
    },
  ]
}

function tagsOf(metadata: Readonly<Record<string, string>>): object[] {
  return Object.entries(metadata).map(([name, value]) => ({ name, value }))
}

async function run(host: Host, { name, other }: Way, count: number): Promise<Run> {
  const startedAtMs = performance.now()
  const { value: measured, percents } = await shareOfCore([host.pid], () =>
    pace(host.ready, { rate: null, count, ...(other && { other }) }),
  )
  const seconds = (performance.now() - startedAtMs) / 1_000
  if (measured.accepted !== count) throw new Error(`${name} accepted ${measured.accepted} of ${count} messages`)
  const [percent = null] = percents
  return { measured, microseconds: percent === null ? null : (percent * seconds * 10_000) / count }
}

function print(runs: ReadonlyMap<string, readonly Run[]>): void {
  const costOf = (all: readonly Run[]) => median(all.flatMap(({ microseconds }) => microseconds ?? []))
  const own = costOf(runs.get('/v1/email') ?? [])
  const rows = [...runs].map(([name, all]) => {
    const cost = costOf(all)
    const rate = median(all.map(({ measured }) => measured.perSecond))
    return [name, formatNumber(rate), formatNumber(cost, 1), formatNumber(cost / own, 2)]
  })
  console.log(formatTable([['', 'accepted/s', 'µs of the service', 'ratio'], ...rows]))
  const worst = Math.max(...[...runs.values()].map((all) => costOf(all) / own))
  console.log(
    `\nworst ratio ${formatNumber(worst, 2)}; target <= ${TARGET_RATIO}: ${worst <= TARGET_RATIO ? 'reached' : 'missed'}`,
  )
}
