/**
 * webhook - a webhook of a server, and the list of a server's webhooks that every event is held against.
 *
 * States (webhook.states): enabled, disabled, removed. Deliveries queued before it was last disabled are dead,
 * whatever their record contains, so disabling is one small commit however many are queued.
 *
 * Two entities: `webhook:<id>` has everything of one; `webhooks:<server>` has the data of each that an announcement
 * needs, so that an event is matched without a read. The server's state has a flag whether it has any.
 *
 * Spec webhook.states, webhook.filter
 */

import type { EntityType, Ref } from '../../../cluster/behaviour.ts'
import type { EventName, WebhookFormat } from '../../../schemas/webhook.ts'
import type { Slice } from './slice.ts'

/** A signing secret, whose value is sealed under the installation's key. */
export interface WebhookSecret {
  readonly secretId: string
  readonly createdAtMs: number
  readonly sealed: string
}

/** A moment among the ids of the shard, and in time. */
export interface SwitchOff {
  readonly id: string
  readonly atMs: number
}

export interface WebhookState {
  readonly webhookId: string
  readonly accountId: string
  readonly serverId: string
  readonly url: string
  /** Hash by which the URLs of a server are compared. */
  readonly urlHash: string
  readonly events: readonly EventName[]
  /** Messages of this stream only; null = of every stream. */
  readonly streamId: string | null
  readonly enabled: boolean
  readonly inboundContent: 'full' | 'reference' | 'raw'
  /** Messages with this tag or metadata entry only; absent: any. The hash is the tag's within the server. */
  readonly tag?: string
  readonly tagHash?: string
  readonly metadata?: MetadataEntry
  /** Whose shape its bodies have; absent: ours. */
  readonly format?: Exclude<WebhookFormat, 'sendwright'>
  /** User and password of its URL, sealed; absent: none. */
  readonly sealedUser?: string
  /** Whether its server is a test server. */
  readonly test: boolean
  readonly createdAtMs: number
  /** Oldest first. */
  readonly secrets: readonly WebhookSecret[]
  /** The last switch-off: deliveries queued before are dead. */
  readonly off: SwitchOff | null
  readonly removedAtMs: number | null
}

export type WebhookEvent =
  | { readonly type: 'created'; readonly webhook: WebhookState }
  | {
      readonly type: 'changed'
      readonly changes: Partial<Pick<WebhookState, 'enabled' | 'secrets' | 'off' | 'removedAtMs' | 'sealedUser'>>
    }

/** One entry of metadata. */
export interface MetadataEntry {
  readonly name: string
  readonly value: string
}

/** The data of a webhook that an announcement needs. */
export interface Subscriber {
  readonly webhookId: string
  readonly events: readonly EventName[]
  readonly streamId: string | null
  readonly enabled: boolean
  /** Hash of its tag within the server; absent: any tag. */
  readonly tagHash?: string
  readonly metadata?: MetadataEntry
}

/** The data of a webhook that an announcement needs. */
export function makeSubscriber(webhook: WebhookState): Subscriber {
  const { webhookId, events, streamId, enabled, tagHash, metadata } = webhook
  return {
    webhookId,
    events,
    streamId,
    enabled,
    ...(tagHash !== undefined && { tagHash }),
    ...(metadata && { metadata }),
  }
}

export type ListenersEvent =
  | { readonly type: 'set'; readonly listener: Subscriber }
  | { readonly type: 'removed'; readonly webhookId: string }

/** Counters of a webhook: pending deliveries, and the open slice. */
export interface WebhookCounters {
  readonly pending: number
  readonly slice: Slice | null
  /** Pending deliveries are looked for from this one on, itself included, when there are too many. */
  readonly trimmed?: readonly [slice: string, deliveryId: string]
  /** The last slice whose queue was moved to blocks. */
  readonly packed?: string
  /** The last slice of which only the dead are left. */
  readonly thinned?: string
}

export const webhookEntity: EntityType<WebhookState | null, WebhookEvent> = {
  kind: 'webhook',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.webhook
    if (state === null) return null
    const { sealedUser, ...rest } = { ...state, ...event.changes }
    // A removed webhook posts nothing more, so its credentials are removed with its secrets.
    return rest.removedAtMs !== null || sealedUser === undefined ? rest : { ...rest, sealedUser }
  },
}

/** In the order of creation. */
export const listenersEntity: EntityType<readonly Subscriber[] | null, ListenersEvent> = {
  kind: 'webhooks',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'removed')
      return state === null ? null : state.filter(({ webhookId }) => webhookId !== event.webhookId)
    const { listener } = event
    if (!state?.some(({ webhookId }) => webhookId === listener.webhookId)) return [...(state ?? []), listener]
    return state.map((one) => (one.webhookId === listener.webhookId ? listener : one))
  },
}

export function webhookRef(webhookId: string): Ref {
  return { kind: 'webhook', id: webhookId }
}

/** The webhooks of a server. */
export function listenersRef(serverId: string): Ref {
  return { kind: 'webhooks', id: serverId }
}

/** Owner of a webhook's counters. */
export function webhookOwner(webhookId: string): string {
  return `webhook:${webhookId}`
}
