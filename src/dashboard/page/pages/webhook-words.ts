/** webhook-words - the health of a webhook in words */
import type { WebhookHealth } from '../../../../schemas/counts/webhook-health.ts'
import type { Delivery, Webhook } from '../../../../schemas/webhook.ts'
import { count, formatStatus } from '../api/words.ts'

/** The service counts dead deliveries up to here. */
export const DEAD_MAX = 1000

/** The health of one of several webhooks. */
export function healthOf(all: readonly WebhookHealth[], { webhookId }: Webhook): WebhookHealth | undefined {
  return all.find((one) => one.webhookId === webhookId)
}

/** Whether the newest attempted delivery did not arrive. */
export function isFailing({ last }: WebhookHealth): boolean {
  return last !== null && last.status !== 'delivered'
}

/** The result of a delivery: `HTTP 500`, `Timeout`. */
export function resultOf({ lastStatusCode, lastError }: Pick<Delivery, 'lastStatusCode' | 'lastError'>): string {
  if (lastStatusCode !== null) return `HTTP ${lastStatusCode}`
  return lastError === null ? 'no answer yet' : formatStatus(lastError)
}

/** How many are dead: `1,000+ dead deliveries`. */
export function deadOf(dead: number): string {
  return dead >= DEAD_MAX ? '1,000+ dead deliveries' : count(dead, 'dead delivery', 'dead deliveries')
}

/** The share of the newest attempted deliveries that arrived; null if none was attempted. */
export function rateOf(health: WebhookHealth | undefined): number | null {
  return health === undefined || health.attempted === 0 ? null : health.delivered / health.attempted
}
