/**
 * health - GET /healthz, /readyz and /metrics: what a supervisor, a load balancer and a monitor ask
 *
 * Healthy: this process turns its loop. Ready: the store answers and every shard has a living owner.
 */

import type { Handler } from '../edge/request.ts'
import type { Metrics } from '../metrics.ts'

/** What is asked of the runtime. */
export interface HealthDeps {
  readonly isReady: () => boolean
  /** Figures of this moment, by name. */
  readonly figures: () => Readonly<Record<string, number>>
  readonly metrics: Metrics
}

/** GET /healthz */
export function makeReadHealth(): Handler {
  return () => ({ status: 200, text: 'ok\n' })
}

/** GET /readyz */
export function makeReadReadiness({ isReady }: HealthDeps): Handler {
  return () => (isReady() ? { status: 200, text: 'ready\n' } : { status: 503, text: 'not ready\n' })
}

/** GET /metrics, in the text format of Prometheus. */
export function makeReadMetrics({ figures, metrics }: HealthDeps): Handler {
  return async () => ({ status: 200, text: await metrics.format(figures()), contentType: metrics.contentType })
}
