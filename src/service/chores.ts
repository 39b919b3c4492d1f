/**
 * chores - what one process does by the clock for itself: a line of figures, and the rewrite of its own Redis's file
 *
 * Anything about data is a timer of a shard, never a chore.
 */

import type { Redis } from 'ioredis'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import type { WebhookFigures } from '../webhooks/figures.ts'

/** Every five minutes. */
const FIGURES_AT = '*/5 * * * *'
/** Each night (UTC): what was deleted leaves the append-only file too. */
const REWRITE_AT = '17 3 * * *'

export interface ChoreDeps {
  readonly metrics: Metrics
  readonly figures: () => Readonly<Record<string, number>>
  readonly webhookFigures: WebhookFigures
  readonly log: Log
  /** Our own Redis; null where another's is used, whose files are its operator's. */
  readonly ownRedis: Redis | null
}

/** Starts the chores; out: what ends them. */
export async function startChores(deps: ChoreDeps): Promise<() => Promise<void>> {
  const { metrics, figures, webhookFigures, log, ownRedis } = deps
  const { schedule } = await import('node-cron')
  const options = { timezone: 'UTC', noOverlap: true }
  const tell = async () => {
    const webhooks = await webhookFigures()
    log.info({ ...metrics.take(), ...figures(), ...webhooks }, 'Figures')
  }
  const tasks = [schedule(FIGURES_AT, tell, options)]
  if (ownRedis !== null) tasks.push(schedule(REWRITE_AT, () => requestRewrite(ownRedis, log), options))
  return async () => {
    await Promise.all(tasks.map((task) => task.destroy()))
  }
}

/** Asks for a rewrite; Redis refuses while one runs, and the next night asks again. */
async function requestRewrite(redis: Redis, log: Log): Promise<void> {
  const refusal = await redis.bgrewriteaof().then(
    () => null,
    (error: Error) => error.message,
  )
  if (refusal !== null) log.warn({ refusal }, 'The append-only file was not rewritten')
}
