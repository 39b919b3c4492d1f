/**
 * open - the parts of webhooks in a process: secrets, events, connections to receivers; opened with the first attempt
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import type { Resolver } from '../dns/resolve.ts'
import type { Config } from '../process/config.ts'
import type { Metrics } from '../process/metrics.ts'
import type { SealingRing } from '../state/ring/sealing.ts'
import type { Reader } from '../views/key.ts'
import { type EventReader, makeEventReader, type ReceivedParts } from '../views/message/event.ts'
import { makePostLane, type PostDeps, Standings } from './perform.ts'
import type { Poster } from './post.ts'
import { type OpenRaw, RawEmails } from './raw-email.ts'
import { makeWebhookSecrets, type WebhookSecrets } from './secrets.ts'
import { makeWebhookStats, type WebhookStats, type WebhookStatsDeps } from './webhook-stats.ts'

export interface WebhookRoom {
  readonly secrets: WebhookSecrets
  readonly readEvent: EventReader
  /** Makes the reader of the figures of waiting deliveries. */
  figures(deps: Omit<WebhookStatsDeps, 'standingOf'>): WebhookStats
  /** The family of the lanes of webhooks. `nowMs` is the store's time. */
  lane(deps: LaneDeps): LaneType
  /** Ends the connections. */
  close(): Promise<void>
}

interface LaneDeps {
  readonly nowMs: () => number
  readonly mayPost: PostDeps['mayPost']
  readonly room?: (lane: string) => number
}

export interface WebhookRoomInput {
  readonly config: Config
  readonly metrics: Metrics
  readonly read: Reader
  readonly ring: SealingRing
  readonly resolver: Resolver
  /** Certificates to trust instead of the default ones; null for the default. */
  readonly ca: string | null
  readonly received: ReceivedParts
  readonly openRaw: OpenRaw
}

/** Makes the room; no connection is open yet. */
export function makeWebhookRoom(input: WebhookRoomInput): WebhookRoom {
  const { config, metrics, read, ring, resolver, ca, received, openRaw } = input
  const secrets = makeWebhookSecrets(ring)
  const readEvent = makeEventReader(read, () => performance.now(), received)
  const standings = new Standings()
  const rawEmails = new RawEmails({ read, openRaw, nowMs: received.nowMs, done: (result) => metrics.rawEmail(result) })
  let poster: Promise<Poster> | null = null
  const open = async (): Promise<Poster> => {
    // An idle process does without the memory of an HTTP client.
    const { makePoster } = await import('./post.ts')
    const { privateNetworksAllowed, webhookPorts } = config
    return makePoster({ resolver, privateNetworksAllowed, webhookPorts, ca })
  }
  const openPoster = (): Promise<Poster> => {
    poster ??= open()
    return poster
  }
  return {
    secrets,
    readEvent,
    figures: (deps) => makeWebhookStats({ ...deps, standingOf: (lane) => standings.of(lane) }),
    lane: (deps) => makePostLane({ read, readEvent, openPoster, secrets, rawEmails, metrics, standings, ...deps }),
    async close() {
      await (await poster)?.close()
    },
  }
}
