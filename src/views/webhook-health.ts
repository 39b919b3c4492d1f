/**
 * webhook-health - the state of a server's webhooks: pending and dead deliveries, the share that arrived, the last
 * result
 *
 * Keys: those of `webhook.ts`, `counters`
 *
 * Spec webhook.health
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { homeShard } from '../../cluster/id.ts'
import type { WebhookHealth } from '../../schemas/counts/webhook-health.ts'
import { WEBHOOK_DEAD_COUNTED_MAX, WEBHOOK_RECENT } from '../../schemas/limits.ts'
import { deadKey, slicesKey } from '../state/keys.ts'
import { type WebhookCounters, type WebhookState, webhookOwner } from '../state/webhook/webhook.ts'
import { countersFact, parseCounters, type Unseen } from './entity.ts'
import type { Reader, ServerKey } from './key.ts'
import type { Page } from './newest.ts'
import { listDeliveries, listWebhooks } from './webhook.ts'

/** Slices whose dead deliveries are counted: those of more than a month, one a day. */
const SLICES_MAX = 40
/** Slices that one step reads. */
const SLICES_AT_ONCE = 8

export interface WebhookHealthDeps {
  readonly read: Reader
  readonly nowMs: () => number
}

/** The health of a page of webhooks, newest first. */
export async function readWebhookHealth(
  { read, nowMs }: WebhookHealthDeps,
  owner: ServerKey,
  page: Page,
): Promise<{ webhooks: WebhookHealth[]; next: string | null } | Unseen | 'not_found'> {
  const found = await listWebhooks(read, owner, page)
  if (typeof found === 'string') return found
  const shard = homeShard(owner.serverId)
  const owners = found.webhooks.map(({ webhookId }) => webhookOwner(webhookId))
  const seen = await read(shard, [countersFact(shard, owners)])
  if (seen === null) return 'unavailable'
  const counters = parseCounters<WebhookCounters>(seen[0])
  const webhooks: WebhookHealth[] = []
  for (const [place, webhook] of found.webhooks.entries()) {
    const pending = webhook.enabled ? (counters[place]?.pending ?? 0) : 0
    const health = await healthOf(read, webhook, { shard, nowMs: nowMs(), pending })
    if (health === null) return 'unavailable'
    webhooks.push(health)
  }
  return { webhooks, next: found.next }
}

interface Of {
  readonly shard: number
  readonly nowMs: number
  readonly pending: number
}

async function healthOf(
  read: Reader,
  webhook: WebhookState,
  { shard, nowMs, pending }: Of,
): Promise<WebhookHealth | null> {
  const { webhookId } = webhook
  const [recent, dead] = await Promise.all([
    listDeliveries(read, { webhook, nowMs }, { limit: WEBHOOK_RECENT, after: null, status: null, event: null }),
    countDead(read, shard, webhookId),
  ])
  if (recent === null || dead === null) return null
  const attempted = recent.deliveries.filter(({ attempts }) => attempts > 0)
  const delivered = attempted.filter(({ status }) => status === 'delivered')
  const last = attempted[0] ?? null
  return { webhookId, pending, dead, attempted: attempted.length, delivered: delivered.length, last }
}

/** Counts the dead deliveries from the newest slice down; null if the store did not answer. */
async function countDead(read: Reader, shard: number, webhookId: string): Promise<number | null> {
  const all = { min: 0, max: Number.MAX_SAFE_INTEGER } as const
  const key = slicesKey(shard, webhookId)
  const slices = await read(shard, [{ read: 'sorted', key, ...all, count: SLICES_MAX, newest: true }])
  if (slices === null) return null
  const names = slices[0].map(([name]) => name)
  let dead = 0
  for (let from = 0; from < names.length && dead < WEBHOOK_DEAD_COUNTED_MAX; from += SLICES_AT_ONCE) {
    const count = WEBHOOK_DEAD_COUNTED_MAX - dead
    const seen = await read(
      shard,
      names.slice(from, from + SLICES_AT_ONCE).map((slice): FactOf<'sorted'> => {
        return { read: 'sorted', key: deadKey(shard, webhookId, slice), ...all, count }
      }),
    )
    if (seen === null) return null
    dead += seen.reduce((sum, rows) => sum + rows.length, 0)
  }
  return Math.min(dead, WEBHOOK_DEAD_COUNTED_MAX)
}
