/**
 * sender-rate - how many connections one sender may open to the MX listener: at once, and in a minute.
 *
 * A sender is an IPv4 address or the /64 network of an IPv6 one. A /56 has bounds of its own, because many providers
 * give one customer a whole /56. Minutes are those of the clock, counted in each process and not in the store, so that
 * a connection is accepted or refused before any query, and also while the store is unavailable. With n processes a
 * sender may have n times as much.
 *
 * Spec mx.rate
 */

import {
  MX_CONNECTIONS_MAX,
  MX_CONNECTIONS_PER_MINUTE_MAX,
  MX_SITE_CONNECTIONS_MAX,
  MX_SITE_CONNECTIONS_PER_MINUTE_MAX,
} from '../../schemas/limits.ts'
import { clientNetwork } from '../mail/ip-address.ts'

/** Senders counted in one minute; all further ones share one counter. */
const SENDERS_MAX = 50_000
const MINUTE_MS = 60_000
const REST = '*'

export interface SenderRate {
  /** Counts a connection that opens; false: it is one too many. Each call is followed by one of `close`. */
  open(address: string): boolean
  close(address: string): void
}

/** `nowMs` is a monotonic clock in milliseconds. */
export function makeSenderRate(nowMs: () => number): SenderRate {
  const own = countBy((address) => clientNetwork(address), {
    atOnceMax: MX_CONNECTIONS_MAX,
    perMinuteMax: MX_CONNECTIONS_PER_MINUTE_MAX,
    nowMs,
  })
  const site = countBy((address) => clientNetwork(address, 56), {
    atOnceMax: MX_SITE_CONNECTIONS_MAX,
    perMinuteMax: MX_SITE_CONNECTIONS_PER_MINUTE_MAX,
    nowMs,
  })
  return {
    open(address) {
      // Both are counted, even if the first refuses.
      const isOwnAllowed = own.open(address)
      return site.open(address) && isOwnAllowed
    },
    close(address) {
      own.close(address)
      site.close(address)
    },
  }
}

interface RateBounds {
  readonly atOnceMax: number
  readonly perMinuteMax: number
  readonly nowMs: () => number
}

function countBy(networkOf: (address: string) => string, { atOnceMax, perMinuteMax, nowMs }: RateBounds): SenderRate {
  const atOnce = new Map<string, number>()
  let perMinute = new Map<string, number>()
  let minute = 0
  return {
    open(address) {
      const now = Math.floor(nowMs() / MINUTE_MS)
      if (now !== minute) perMinute = new Map()
      minute = now
      const sender = networkOf(address)
      const counted = perMinute.has(sender) || perMinute.size < SENDERS_MAX ? sender : REST
      const opened = (perMinute.get(counted) ?? 0) + 1
      perMinute.set(counted, opened)
      const open = (atOnce.get(sender) ?? 0) + 1
      atOnce.set(sender, open)
      return open <= atOnceMax && opened <= perMinuteMax
    },
    close(address) {
      const sender = networkOf(address)
      const left = (atOnce.get(sender) ?? 1) - 1
      if (left <= 0) atOnce.delete(sender)
      else atOnce.set(sender, left)
    },
  }
}
