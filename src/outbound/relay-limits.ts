/** relay-limits - the limits of a relay, which is the operator's own: attempts at once, and no rate */

import type { SiteLimits } from '../mail/site.ts'

/** Attempts that are with a relay or wait there for one of its connections. */
export const RELAY_ATTEMPTS_MAX = 256
const MANY = 1_000_000

export const RELAY_LIMITS: SiteLimits = {
  connectionsStart: RELAY_ATTEMPTS_MAX,
  connections: RELAY_ATTEMPTS_MAX,
  messagesPerSecond: MANY,
  messagesPerConnection: MANY,
  connectionsPerMinute: MANY,
  throttledPerSecond: MANY,
}
