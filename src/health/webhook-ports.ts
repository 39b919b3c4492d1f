/**
 * webhook-ports - whether every enabled webhook has a port that deliveries may connect to
 *
 * Registration accepts any port; a delivery to a refused one is dead at once (`port_not_allowed`).
 *
 * Spec operator.health, webhook.delivery
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { Reader } from '../views/key.ts'
import { type ScanBounds, scanWebhookUrls } from '../views/operator/webhook-urls.ts'
import { mayConnectTo } from '../webhooks/post-connect.ts'
import { warning, well } from './finding.ts'

const ACCOUNTS_MAX = 10_000
const WEBHOOKS_MAX = 10_000
/** Below the time of one examination, so that an interrupted scan still reports. */
const SCAN_MS_MAX = 8_000
/** Webhooks that the finding names. */
const NAMED_MAX = 10

/** Takes the ports that WEBHOOK_PORTS allows. Rejects if the store does not answer. */
export async function examineWebhookPorts(
  read: Reader,
  allowed: readonly number[],
  bounds: Partial<ScanBounds> = {},
): Promise<Finding> {
  const nowMs = () => performance.now()
  const scanned = await scanWebhookUrls(read, {
    accountsMax: ACCOUNTS_MAX,
    webhooksMax: WEBHOOKS_MAX,
    endsAtMs: nowMs() + SCAN_MS_MAX,
    nowMs,
    ...bounds,
  })
  if (scanned === null) throw new Error('the store does not answer')
  const { webhooks, isCut } = scanned
  const cut = isCut ? `. The scan ended at its limit, after ${webhooks.length} webhooks` : ''
  const refused = webhooks.flatMap(({ webhookId, url }) => {
    const { port } = new URL(url)
    return port === '' || mayConnectTo(Number(port), allowed) ? [] : [{ webhookId, port: Number(port) }]
  })
  if (refused.length === 0)
    return well('webhook-ports', `No webhook has a port that deliveries may not connect to${cut}`)
  const named = refused.slice(0, NAMED_MAX).map(({ webhookId, port }) => `${webhookId} (port ${port})`)
  const more = refused.length > NAMED_MAX ? `, and ${refused.length - NAMED_MAX} more` : ''
  const ports = [...new Set([...allowed, ...refused.map(({ port }) => port)])].sort((a, b) => a - b)
  return warning(
    'webhook-ports',
    `Every delivery to these webhooks is dead at once (port_not_allowed): ${named.join(', ')}${more}${cut}`,
    `Ask their owners for another port, or allow the ports: WEBHOOK_PORTS=${ports.join(',')}`,
  )
}
