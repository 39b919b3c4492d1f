/**
 * lifecycle - from acceptance to a receiving server: a live server, the operator's relay, and smtp-sink that takes all
 *
 * First a burst, as fast as it is accepted: how long until the last message is delivered. Then a steady load at nine
 * tenths of that rate shows whether the queue grows, and the latency of acceptance next to delivery.
 */

import type { Redis } from 'ioredis'
import { until } from '../../test/support/machine/until.ts'
import { SMTP_SINK_SKIP, startSmtpSink } from '../../test/support/peers/smtp-sink.ts'
import { countLog } from '../contestants/contestant.ts'
import { type Host, startHost } from '../contestants/host.ts'
import { readFigure } from '../contestants/product-figures.ts'
import { openField } from '../load/mail-field.ts'
import type { Measured } from '../load/measured.ts'
import { type Pace, pace } from '../load/pace.ts'
import { type BenchStore, keysOf, startStore, sumOf } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'
import { shareOfCore } from '../usage.ts'

const ACCOUNTS = 20
const STEADY_SHARE = 0.9
const DELIVERY_MS_MAX = 900_000

/** Runs both loads and prints them. Throws Error when smtp-sink is not installed or a message is missing. */
export async function benchLifecycle({ seconds, messages, rate, isMx }: LifecycleOrder): Promise<void> {
  if (SMTP_SINK_SKIP !== false) throw new Error(SMTP_SINK_SKIP)
  const store = await startStore()
  const sink = await startSmtpSink(isMx ? '0.0.0.0' : undefined)
  const field = isMx ? await openField(sink.port) : null
  try {
    const way = field === null ? { relayUrl: `smtp://127.0.0.1:${sink.port}` } : { mx: field.mx }
    const host = await startHost('product', store, { accounts: ACCOUNTS, isHeld: false, mode: 'live', ...way })
    const recipients = field === null ? {} : { recipients: field.recipients }
    await pace(host.ready, { rate: null, count: Math.ceil(messages / 10), ...recipients })
    await waitForEmptyQueue(store.client)
    const { value: burst, percents } = await shareOfCore([host.pid, store.pid], () =>
      runBurst(host, store, { messages, ...recipients }),
    )
    const steady = await runSteady(host, store, {
      rate: rate ?? burst.deliveredPerSecond * STEADY_SHARE,
      seconds,
      ...recipients,
    })
    await verify(host, store)
    await host.stop()
    print({ burst, steady, messages, percents })
  } finally {
    await sink.close()
    await field?.close()
    await store.stop()
  }
}

export interface LifecycleOrder {
  readonly seconds: number
  readonly messages: number
  /** Messages a second of the steady load; null for nine tenths of the burst's rate. */
  readonly rate: number | null
  /** To mail servers of 20 sites instead of the relay. */
  readonly isMx: boolean
}

interface Burst {
  readonly measured: Measured
  readonly deepest: number
  readonly deliveredPerSecond: number
}

interface Steady {
  readonly measured: Measured
  readonly rate: number
  /** Messages accepted and not delivered when the load ended. */
  readonly left: number
  readonly seconds: number
}

async function runBurst(
  { ready }: Host,
  store: BenchStore,
  { messages, ...recipients }: { messages: number } & Pick<Pace, 'recipients'>,
): Promise<Burst> {
  const startedAtMs = performance.now()
  const measured = await pace(ready, { rate: null, count: messages, ...recipients })
  const deepest = await queueDepth(store.client)
  await waitForEmptyQueue(store.client)
  return { measured, deepest, deliveredPerSecond: messages / ((performance.now() - startedAtMs) / 1000) }
}

async function runSteady(
  { ready }: Host,
  store: BenchStore,
  { rate, seconds, ...recipients }: { rate: number; seconds: number } & Pick<Pace, 'recipients'>,
): Promise<Steady> {
  const measured = await pace(ready, { rate, count: rate * seconds, ...recipients })
  const left = await queueDepth(store.client)
  await waitForEmptyQueue(store.client)
  return { measured, rate, left, seconds }
}

/** Recipients that wait or are under way, in every lane but the timers. */
async function queueDepth(client: Redis): Promise<number> {
  const keys = await keysOf(client, '{s*}:due:*')
  const lanes = keys.filter((key) => !key.endsWith(':due:timers'))
  return sumOf(client, lanes, (pipeline, key) => pipeline.zcard(key))
}

async function waitForEmptyQueue(client: Redis): Promise<void> {
  await until(async () => (await queueDepth(client)) === 0, DELIVERY_MS_MAX)
}

async function verify({ ready }: Host, { client }: BenchStore): Promise<void> {
  const name = 'sendwright_attempts_total\\{result="delivered",class=""\\}'
  const delivered = await readFigure(ready.operatorPort as number, name)
  const kept = await countLog(client)
  if (delivered !== kept) throw new Error(`${kept} messages were accepted and ${delivered} attempts delivered`)
}

function print(all: { burst: Burst; steady: Steady; messages: number; percents: (number | null)[] }): void {
  const { burst, steady, messages, percents } = all
  console.log(
    formatTable([
      ['lifecycle', 'accepted/s', 'delivered/s', 'p50 ms', 'p99 ms', 'queue', 'CPU host', 'CPU redis'],
      [
        `burst of ${formatNumber(messages)}`,
        formatNumber(burst.measured.perSecond),
        formatNumber(burst.deliveredPerSecond),
        formatNumber(burst.measured.p50Ms, 1),
        formatNumber(burst.measured.p99Ms, 1),
        formatNumber(burst.deepest),
        `${formatNumber(percents[0] ?? null)} %`,
        `${formatNumber(percents[1] ?? null)} %`,
      ],
      [
        `steady, ${formatNumber(steady.rate)}/s for ${steady.seconds} s`,
        formatNumber(steady.measured.perSecond),
        formatNumber(steady.measured.perSecond - steady.left / steady.seconds),
        formatNumber(steady.measured.p50Ms, 1),
        formatNumber(steady.measured.p99Ms, 1),
        formatNumber(steady.left),
        '',
        '',
      ],
    ]),
  )
  console.log('\nqueue: accepted and not yet delivered at the end of the load; p50, p99: of acceptance')
}
