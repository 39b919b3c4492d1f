/**
 * webhook-figures - what waits for webhooks and since when, as far as this process has seen it at its attempts
 *
 * Two classes: `healthy`, whose last attempt was answered with a 2xx, and `failing`. A webhook is known from its first
 * attempt here until nothing of it waits any more, or no attempt came when one was due: it was switched off or removed, or
 * its shard is elsewhere.
 *
 * Spec webhook.backlog
 */

/** Webhooks that are known at once. */
const KNOWN_MAX = 50_000

/** An attempt may be that late: there was no room for it. */
const LATE_MS_MAX = 60_000

/** What an attempt has shown of its webhook. */
export interface SeenWebhook {
  readonly isFailing: boolean
  /** Deliveries that wait once this attempt is over. */
  readonly waiting: number
  /** Creation of the delivery that was attempted: attempts are made in order. */
  readonly oldestAtMs: number
  /** The next attempt is due at this instant at the latest. */
  readonly nextAtMs: number
}

export interface WebhookFigures {
  saw(lane: string, seen: SeenWebhook): void
  /** Backlog and age of the oldest waiting delivery by class, by name of the figure. */
  take(nowMs: number): Record<string, number>
}

/** Makes the figures of a process that has seen no webhook yet. */
export function makeWebhookFigures(): WebhookFigures {
  const known = new Map<string, SeenWebhook>()
  return {
    saw(lane, seen) {
      known.delete(lane)
      if (seen.waiting <= 0) return
      // A Map is in order of insertion: the oldest goes.
      if (known.size >= KNOWN_MAX) known.delete(known.keys().next().value as string)
      known.set(lane, seen)
    },
    take(nowMs) {
      const backlog = { healthy: 0, failing: 0 }
      const oldestMs = { healthy: 0, failing: 0 }
      for (const [lane, { isFailing, waiting, oldestAtMs, nextAtMs }] of known) {
        if (nextAtMs + LATE_MS_MAX < nowMs) {
          known.delete(lane)
          continue
        }
        const name = isFailing ? 'failing' : 'healthy'
        backlog[name] += waiting
        oldestMs[name] = Math.max(oldestMs[name], nowMs - oldestAtMs)
      }
      return {
        webhookBacklogHealthy: backlog.healthy,
        webhookBacklogFailing: backlog.failing,
        webhookOldestSecondsHealthy: oldestMs.healthy / 1000,
        webhookOldestSecondsFailing: oldestMs.failing / 1000,
      }
    },
  }
}
