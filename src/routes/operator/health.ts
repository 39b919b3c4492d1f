/**
 * health - GET /healthz, /readyz, /metrics and /v1/operator/health: what a supervisor, a load balancer, a monitor and the
 * operator ask
 *
 * Healthy: this process turns its loop. Ready: the store answers, every shard has a living owner, and the disk has room for
 * new mail.
 */

import type { Health } from '../../../schemas/health.ts'
import type { Handler } from '../../http/request.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { QueueFigure } from '../../views/operator/queue-figures.ts'
import type { WebhookFigures } from '../../webhooks/figures.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** What is asked of the runtime. */
export interface HealthDeps {
  readonly isReady: () => boolean
  /** Whether the disk has room for new mail. */
  readonly hasDiskRoom: () => boolean
  /** Figures of this moment, by name. */
  readonly figures: () => Readonly<Record<string, number>>
  readonly metrics: Metrics
  /** What waits to be delivered. */
  readonly queueFigures: () => Promise<readonly QueueFigure[]>
  /** What waits for webhooks. */
  readonly webhookFigures: WebhookFigures
}

/** What an operator's look at the installation needs. */
export interface OperatorHealthDeps extends Pick<OperatorDeps, 'read'> {
  readonly examine: () => Promise<Health>
}

/** GET /healthz */
export function makeReadHealth(): Handler {
  return () => ({ status: 200, text: 'ok\n' })
}

/** GET /readyz */
export function makeReadReadiness({ isReady, hasDiskRoom }: HealthDeps): Handler {
  return () => {
    if (!isReady()) return { status: 503, text: 'not ready\n' }
    return hasDiskRoom()
      ? { status: 200, text: 'ready\n' }
      : { status: 503, text: 'not ready: the disk is nearly full\n' }
  }
}

/** GET /v1/operator/health. Spec operator.health */
export function makeExamineHealth({ read, examine }: OperatorHealthDeps): Handler {
  return asOperator(read, async () => ({ status: 200, json: await examine() }))
}

/** GET /metrics, in the text format of Prometheus. */
export function makeReadMetrics({ figures, metrics, queueFigures, webhookFigures }: HealthDeps): Handler {
  return async () => {
    const [queue, webhooks] = await Promise.all([queueFigures(), webhookFigures()])
    const text = await metrics.format({ ...figures(), ...webhooks }, queue)
    return { status: 200, text, contentType: metrics.contentType }
  }
}
