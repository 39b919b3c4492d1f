/**
 * secrets - signing secrets of webhooks: made, sealed before they enter a command, opened to sign
 *
 * A sealed secret is bound to its server: copied to another one it does not open.
 *
 * Spec webhook.secrets
 */

import { randomBytes } from 'node:crypto'
import { webhookSecretOwner } from '../state/ring/sealed-values.ts'
import { NONCE_BYTES, openSecret, type SealingRing, sealSecret } from '../state/ring/sealing.ts'
import { SECRET_PREFIX } from './sign-event.ts'

const SECRET_BYTES = 32
/** Maximum number of opened secrets that are cached. */
const OPENED_MAX = 10_000

export interface WebhookSecrets {
  /** A new secret, and the same sealed, base64. */
  make(serverId: string): { readonly secret: string; readonly sealed: string }
  /** Seals any text for a server, base64. */
  seal(serverId: string, text: string): string
  /** The secret again. Throws Error when it was sealed under another key, or for another server. */
  open(serverId: string, sealed: string): string
}

/** Makes and opens secrets under the installation's ring. */
export function makeWebhookSecrets(ring: SealingRing): WebhookSecrets {
  const opened = new Map<string, string>()
  const seal = (serverId: string, text: string): string => {
    const input = { secret: Buffer.from(text), owner: webhookSecretOwner(serverId), nonce: randomBytes(NONCE_BYTES) }
    return sealSecret(ring, input).toString('base64')
  }
  return {
    make(serverId) {
      const secret = SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
      return { secret, sealed: seal(serverId, secret) }
    },
    seal,
    open(serverId, sealed) {
      const known = opened.get(sealed)
      if (known !== undefined) return known
      const bytes = openSecret(ring, { sealed: Buffer.from(sealed, 'base64'), owner: webhookSecretOwner(serverId) })
      if (bytes === null) throw new Error('A webhook secret cannot be decrypted: SECRET_KEY has changed')
      const secret = bytes.toString()
      if (opened.size >= OPENED_MAX) opened.delete(opened.keys().next().value as string)
      opened.set(sealed, secret)
      return secret
    },
  }
}
