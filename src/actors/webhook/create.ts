/**
 * create - registers a URL for events of a server, once. The first secret was made before and is sealed.
 *
 * Spec webhook.create, webhook.url
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import type { EventName } from '../../../schemas/webhook.ts'
import { accountRef } from '../../state/account.ts'
import { namesKey } from '../../state/keys.ts'
import { serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import {
  listenersRef,
  type MetadataEntry,
  makeSubscriber,
  type WebhookState,
  webhookRef,
} from '../../state/webhook/webhook.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import type { ServerKeyOrder } from '../authorization/stream.ts'
import { holderOfOrder } from '../authorization/webhook.ts'
import { webhookSweepDue } from './sweep.ts'

export interface CreateWebhookBody extends ServerKeyOrder {
  /** As it is shown, and as it is compared. */
  readonly url: string
  readonly urlHash: string
  readonly events: readonly EventName[]
  readonly streamId: string | null
  readonly inboundContent: 'full' | 'reference' | 'raw'
  readonly sealedSecret: string
  readonly tag?: string
  /** Hash of `tag` within the server; present with it. */
  readonly tagHash?: string
  readonly metadata?: MetadataEntry
  readonly format?: NonNullable<WebhookState['format']>
  readonly sealedUser?: string
}

export interface CreateWebhookReply {
  readonly kind: 'created'
  readonly webhook: WebhookState
}

export const createWebhook: CommandType<CreateWebhookBody, CreateWebhookReply | Refused> = {
  name: 'create-webhook',
  entities: ({ accountId, serverId, streamId }) => [
    accountRef(accountId),
    serverRef(serverId),
    listenersRef(serverId),
    ...(streamId === null ? [] : [streamRef(streamId)]),
  ],
  counters: () => [],
  facts: (body, _states, { shard }) => [
    { read: 'fields', key: namesKey(shard, body.accountId), fields: [webhookName(body)] },
  ],
  decide(body, states, facts, context) {
    const holder = holderOfOrder(body, states, { facts, context })
    if ('kind' in holder) return holder
    const { account, server } = holder
    const { accountId, serverId, streamId } = body
    if (streamId !== null && states.get<StreamState | null>(streamRef(streamId))?.serverId !== serverId)
      return refuse('stream_not_found')
    const { shard, nowMs } = context
    const names = namesKey(shard, accountId)
    const known = facts.field(names, webhookName(body))
    if (known !== null) return refuse('webhook_exists', { webhookId: known })
    const webhook = makeWebhook(body, { context, test: server.mode === 'test' })
    const { webhookId } = webhook
    const webhookServers = [...(account.webhookServers ?? []), { serverId, mode: server.mode }]
    return {
      kind: 'done',
      reply: { kind: 'created', webhook },
      events: [
        { ref: webhookRef(webhookId), event: { type: 'created', webhook } },
        { ref: listenersRef(serverId), event: { type: 'set', listener: makeSubscriber(webhook) } },
        ...(server.hasWebhooks === true
          ? []
          : [
              { ref: serverRef(serverId), event: { type: 'webhooks', hasWebhooks: true } },
              { ref: accountRef(accountId), event: { type: 'webhook servers', webhookServers } },
            ]),
      ],
      ops: [{ key: names, write: 'HSET', args: [webhookName(body), webhookId] }],
      due: [webhookSweepDue(webhookId, nowMs)],
    }
  },
}

/** Field of a webhook among an account's names. */
export function webhookName({ serverId, urlHash }: { serverId: string; urlHash: string }): string {
  return `webhook/${serverId}/${urlHash}`
}

function makeWebhook(
  body: CreateWebhookBody,
  { context, test }: { context: { nowMs: number; newId(): string }; test: boolean },
): WebhookState {
  const { accountId, serverId, url, urlHash, events, streamId, inboundContent, sealedSecret } = body
  const { tag, tagHash, metadata, format, sealedUser } = body
  const createdAtMs = context.nowMs
  return {
    webhookId: context.newId(),
    accountId,
    serverId,
    url,
    urlHash,
    events,
    streamId,
    enabled: true,
    inboundContent,
    test,
    createdAtMs,
    secrets: [{ secretId: context.newId(), createdAtMs, sealed: sealedSecret }],
    off: null,
    removedAtMs: null,
    ...(tag !== undefined && { tag }),
    ...(tagHash !== undefined && { tagHash }),
    ...(metadata && { metadata }),
    ...(format && { format }),
    ...(sealedUser !== undefined && { sealedUser }),
  }
}
