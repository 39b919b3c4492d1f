/**
 * sign-event - the headers of one attempt to deliver an event, with a signature for each live secret.
 *
 * Two schemes beside each other. Ours: HMAC-SHA256 over `<t>.<body>`, keyed by the whole secret with its prefix, in
 * hex. Standard Webhooks: HMAC-SHA256 over `<id>.<t>.<body>`, keyed by the decoded base64 of the secret, in base64.
 *
 * Spec webhook.signature
 */

import { createHmac } from 'node:crypto'

export interface SignInput {
  readonly deliveryId: string
  readonly event: string
  readonly body: string
  /** Whole secrets, newest first. */
  readonly secrets: readonly string[]
  readonly unixSeconds: number
  /** Whether the client of a Standard Webhooks receiver looks for the names of its first days. */
  readonly svix?: boolean
  /** User and password, with a colon between them; absent: none. */
  readonly user?: string
}

export const SECRET_PREFIX = 'whsec_'
const USER_AGENT = 'Service-Webhooks/1'

/** Headers of a request. */
export function eventHeaders({
  deliveryId,
  event,
  body,
  secrets,
  unixSeconds,
  svix,
  user,
}: SignInput): Record<string, string> {
  const seconds = String(unixSeconds)
  const standard = secrets.map((secret) => `v1,${signStandard(secret, `${deliveryId}.${seconds}.${body}`)}`)
  return {
    'content-type': 'application/json',
    'user-agent': USER_AGENT,
    'service-signature': formatSignature(secrets, { seconds, body }),
    'service-event': event,
    'service-delivery-id': deliveryId,
    'webhook-id': deliveryId,
    'webhook-timestamp': seconds,
    'webhook-signature': standard.join(' '),
    ...(svix && { 'svix-id': deliveryId, 'svix-timestamp': seconds, 'svix-signature': standard.join(' ') }),
    ...(user !== undefined && { authorization: `Basic ${Buffer.from(user).toString('base64')}` }),
  }
}

/** `t=<unix seconds>,v1=<hex>[,v1=<hex>]`, in the order of the secrets. */
function formatSignature(secrets: readonly string[], { seconds, body }: { seconds: string; body: string }): string {
  const signatures = secrets.map((secret) => createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex'))
  return [`t=${seconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(',')
}

function signStandard(secret: string, text: string): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return createHmac('sha256', key).update(text).digest('base64')
}
