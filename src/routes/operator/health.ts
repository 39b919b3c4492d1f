/**
 * health - GET /healthz, /readyz, /metrics and /v1/operator/health: for a supervisor, a load balancer, a monitor and
 * the operator
 *
 * Healthy means that the event loop of this process runs. Ready means that the store answers and is durable, every
 * shard has a live owner, and, if the process accepts sends, there is room for new mail. A process that is not ready
 * gives the reason.
 */

import type { Health } from '../../../schemas/operator/health.ts'
import type { HandlerOf } from '../../http/request.ts'
import type { Gauges } from '../../process/gauges.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { RedisFigure } from '../../store/store-watch.ts'
import type { ErasureFigures } from '../../views/operator/erasure-figures.ts'
import type { QueueFigure } from '../../views/operator/queue-figures.ts'
import type { RotationFigures } from '../../views/operator/rotation.ts'
import type { DomainFigures } from '../../views/operator/undecided-domains.ts'
import type { WebhookStats } from '../../webhooks/webhook-stats.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** The runtime's state. */
export interface HealthDeps {
  /** Why this process should be sent no requests, for people; null: it is ready. */
  readonly whyNotReady: () => string | null
  /** Current figures, by name. */
  readonly figures: () => Gauges
  /** Each primary of a cluster. */
  readonly redisFigures: () => readonly RedisFigure[]
  readonly metrics: Metrics
  /** Recipients waiting for delivery. */
  readonly queueFigures: () => Promise<readonly QueueFigure[]>
  /** Deliveries waiting for webhooks. */
  readonly webhookFigures: WebhookStats
  /** Counts of erasures and of erased messages. */
  readonly erasureFigures: ErasureFigures
  /** How many domains cannot be decided. */
  readonly domainFigures: DomainFigures
  /** Progress of a rotation of the secret. */
  readonly rotationFigures: RotationFigures
}

/** Dependencies of an operator's examination of the installation. */
export interface OperatorHealthDeps extends Pick<OperatorDeps, 'read'> {
  readonly examine: () => Promise<Health>
}

/** GET /healthz */
export function makeReadHealth(): HandlerOf<'readHealth'> {
  return () => ({ status: 200, text: 'ok\n' })
}

/** GET /readyz */
export function makeReadReadiness({ whyNotReady }: HealthDeps): HandlerOf<'readReadiness'> {
  return () => {
    const reason = whyNotReady()
    return reason === null ? { status: 200, text: 'ready\n' } : { status: 503, text: `not ready: ${reason}\n` }
  }
}

/** GET /v1/operator/health. Spec operator.health */
export function makeExamineHealth({ read, examine }: OperatorHealthDeps): HandlerOf<'examineHealth'> {
  return asOperator(read, async () => ({ status: 200, json: await examine() }))
}

/** GET /metrics, in the text format of Prometheus. */
export function makeReadMetrics({
  figures,
  redisFigures,
  metrics,
  queueFigures,
  webhookFigures,
  erasureFigures,
  domainFigures,
  rotationFigures,
}: HealthDeps): HandlerOf<'readMetrics'> {
  return async () => {
    const [queue, webhooks, erasures, domains, rotation] = await Promise.all([
      queueFigures(),
      webhookFigures(),
      erasureFigures(),
      domainFigures(),
      rotationFigures(),
    ])
    const now = { ...figures(), ...webhooks, ...erasures, ...domains, ...rotation }
    const text = await metrics.format(now, { queue, redis: redisFigures() })
    return { status: 200, text, contentType: metrics.contentType }
  }
}
