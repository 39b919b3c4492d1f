/**
 * health - GET /healthz, /readyz, /metrics and /v1/operator/health: for a supervisor, a load balancer, a monitor and
 * the operator
 *
 * Healthy: the event loop of this process runs. Ready: the store answers and is durable, every shard has a live owner,
 * and, if the process accepts sends, there is room for new mail. A process that is not ready gives the reason.
 */

import type { Health } from '../../../schemas/operator/health.ts'
import type { HandlerOf } from '../../http/request.ts'
import type { Figures } from '../../process/figures.ts'
import type { Metrics } from '../../process/metrics.ts'
import type { RedisFigure } from '../../store/store-watch.ts'
import type { ErasureFigures } from '../../views/operator/erasure-figures.ts'
import type { QueueFigure } from '../../views/operator/queue-figures.ts'
import type { DomainFigures } from '../../views/operator/undecided-domains.ts'
import type { WebhookFigures } from '../../webhooks/figures.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** What is asked of the runtime. */
export interface HealthDeps {
  /** Why this process should be sent no requests, for people; null: it is ready. */
  readonly whyNotReady: () => string | null
  /** Figures of this moment, by name. */
  readonly figures: () => Figures
  /** Each primary of a cluster. */
  readonly redisFigures: () => readonly RedisFigure[]
  readonly metrics: Metrics
  /** What waits to be delivered. */
  readonly queueFigures: () => Promise<readonly QueueFigure[]>
  /** What waits for webhooks. */
  readonly webhookFigures: WebhookFigures
  /** How many erasures there were, and what they took. */
  readonly erasureFigures: ErasureFigures
  /** How many domains cannot be decided. */
  readonly domainFigures: DomainFigures
}

/** What an operator's look at the installation needs. */
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
}: HealthDeps): HandlerOf<'readMetrics'> {
  return async () => {
    const [queue, webhooks, erasures, domains] = await Promise.all([
      queueFigures(),
      webhookFigures(),
      erasureFigures(),
      domainFigures(),
    ])
    const now = { ...figures(), ...webhooks, ...erasures, ...domains }
    const text = await metrics.format(now, { queue, redis: redisFigures() })
    return { status: 200, text, contentType: metrics.contentType }
  }
}
