/**
 * chores - periodic jobs of a process: a log line of figures, the rewrite of the embedded Redis's file (at night and
 * after erasures), the sweep of the content store and the walk over users for its shards, the check that a process
 * receives bounces, the questions to blocklists
 *
 * Chores never change data in Redis: that is done by a timer or a lane of a shard, to which the walk sends orders.
 */

import type { Gauges } from '../process/gauges.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import type { Rewrites } from '../store/rewrite.ts'
import type { ErasureFigures } from '../views/operator/erasure-figures.ts'
import type { WebhookStats } from '../webhooks/webhook-stats.ts'
import { type BlocklistWatchDeps, watchBlocklists } from './blocklist-watch.ts'
import { type ErasureRewriteDeps, watchErasures } from './erasure-rewrite.ts'
import { watchMx } from './mx-watch.ts'

/** Every five minutes. */
const FIGURES_AT = '*/5 * * * *'
/** Each night (UTC), so that deleted data leaves the append-only file too. */
const REWRITE_AT = '17 3 * * *'

/** Each hour. */
const SWEEP_AT = '42 * * * *'
/** Each night (UTC). */
const WALK_AT = '23 4 * * *'

export interface ChoreDeps {
  readonly metrics: Metrics
  readonly figures: () => Gauges
  readonly webhookFigures: WebhookStats
  readonly erasureFigures: ErasureFigures
  readonly log: Log
  /** Sweeps the content store; null if there is none. */
  readonly sweep: (() => Promise<number>) | null
  /**
   * Asks the embedded Redis for a new append-only file; returns why it refused, or null. Null for an external Redis,
   * whose files belong to its operator.
   */
  readonly rewriteFile: Rewrites['ask'] | null
  /** The same after erasures. */
  readonly erasures: Omit<ErasureRewriteDeps, 'log'> | null
  /** Orders checks of users whose accounts do not list them; null if this process has no shards. */
  readonly walkUsers: (() => Promise<number>) | null
  /** Reads the roles of live processes; null if this one sends no mail. */
  readonly livingRoles: (() => Promise<ReadonlySet<string>>) | null
  /** What the blocklists are asked; null if this process sends no mail. */
  readonly blocklists: Omit<BlocklistWatchDeps, 'log' | 'random'> | null
}

/** Starts the chores; returns a function that ends them. */
export async function startChores(deps: ChoreDeps): Promise<() => Promise<void>> {
  const { metrics, figures, webhookFigures, erasureFigures, log, sweep, walkUsers, rewriteFile, livingRoles } = deps
  const { schedule } = await import('node-cron')
  const options = { timezone: 'UTC', noOverlap: true }
  const tell = async () => {
    const [webhooks, erasures] = await Promise.all([webhookFigures(), erasureFigures()])
    log.info({ ...metrics.take(), ...figures(), ...webhooks, ...erasures }, 'Figures')
  }
  const tasks = [schedule(FIGURES_AT, tell, options)]
  if (sweep !== null) {
    void sweepNow(sweep, log)
    tasks.push(schedule(SWEEP_AT, () => sweepNow(sweep, log), options))
  }
  if (walkUsers !== null) {
    void walkNow(walkUsers, log).catch(() => undefined)
    tasks.push(schedule(WALK_AT, () => walkNow(walkUsers, log), options))
  }
  if (rewriteFile !== null) tasks.push(schedule(REWRITE_AT, () => rewriteNow(rewriteFile, log), options))
  const endErasures = deps.erasures === null ? null : watchErasures({ ...deps.erasures, log })
  const endMxWatch = livingRoles === null ? null : watchMx({ roles: livingRoles, log, nowMs: () => performance.now() })
  const endBlocklists = deps.blocklists && watchBlocklists({ ...deps.blocklists, log, random: Math.random })
  return async () => {
    endBlocklists?.()
    endMxWatch?.()
    endErasures?.()
    await Promise.all(tasks.map((task) => task.destroy()))
  }
}

/** Leftovers of a crash are swept at the start, the rest hourly. */
async function sweepNow(sweep: () => Promise<number>, log: Log): Promise<void> {
  const objects = await sweep()
  if (objects > 0) log.info({ objects }, 'Unreferenced content was removed')
}

/** Users left behind by earlier versions are found at the start. */
async function walkNow(walkUsers: () => Promise<number>, log: Log): Promise<void> {
  const users = await walkUsers()
  if (users > 0) log.info({ users }, 'Checking dashboard users that an account no longer lists')
}

/** Asks for a rewrite; Redis refuses while one runs, and the next night asks again. */
async function rewriteNow(rewriteFile: Rewrites['ask'], log: Log): Promise<void> {
  const refusal = await rewriteFile()
  if (refusal !== null) log.warn({ refusal }, 'The append-only file was not rewritten')
}
