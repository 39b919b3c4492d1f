/**
 * blocklist-watch - asks the blocklists about the sending addresses each hour, for the metrics and the log
 *
 * Spec blocklist.check
 */

import { setTimeout as delay } from 'node:timers/promises'
import { askBlocklists, type BlocklistResult, type Listing } from '../dns/blocklist.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'

const HOUR_MS = 3_600_000

export interface BlocklistWatchDeps {
  readonly lists: readonly string[]
  readonly resolver: Pick<Resolver, 'look'>
  readonly sendingAddresses: () => Promise<readonly string[]>
  readonly metrics: Pick<Metrics, 'blocklists'>
  readonly log: Pick<Log, 'warn' | 'info'>
  /** From 0 up to 1: processes of a cluster ask at different times. */
  readonly random: () => number
  readonly everyMs?: number
}

type Listed = Listing & { readonly list: string }

/** Starts it. Returns a function that ends it. */
export function watchBlocklists(deps: BlocklistWatchDeps): () => void {
  const ended = new AbortController()
  if (deps.lists.length > 0) void run(deps, ended.signal).catch(() => undefined)
  return () => ended.abort()
}

async function run(deps: BlocklistWatchDeps, signal: AbortSignal): Promise<void> {
  const everyMs = deps.everyMs ?? HOUR_MS
  let before: readonly Listed[] = []
  for (let waitMs = (everyMs / 60) * deps.random(); ; waitMs = everyMs) {
    await delay(waitMs, undefined, { signal, ref: false })
    const addresses = await deps.sendingAddresses()
    if (addresses.length === 0) continue
    const results = await askBlocklists(deps.resolver, { lists: deps.lists, addresses })
    deps.metrics.blocklists(
      results.map(({ list, unusable, listings }) => ({ list, listed: unusable === null ? listings.length : null })),
    )
    before = tell(deps.log, results, before)
  }
}

/** Logs a change of what is listed. Returns what is; at a list that is unusable, that is what was. */
function tell(
  log: BlocklistWatchDeps['log'],
  results: readonly BlocklistResult[],
  before: readonly Listed[],
): readonly Listed[] {
  const listed = results.flatMap(({ list, unusable, listings }): readonly Listed[] =>
    unusable === null ? listings.map((one) => ({ list, ...one })) : before.filter((one) => one.list === list),
  )
  const isChanged = JSON.stringify(listed) !== JSON.stringify(before)
  if (isChanged && listed.length > 0) log.warn({ listed }, 'Sending addresses are on a blocklist')
  if (isChanged && listed.length === 0) log.info({}, 'Sending addresses are on no blocklist any more')
  return listed
}
