/**
 * remove-server - removes a server: its keys are revoked at once, its name is free again, and it is no longer listed.
 *
 * Its webhooks are removed with it. A timer archives its streams in small steps; they can no longer be read, and
 * inbound ones refuse mail from then on. Queued mail is still delivered, and stored data expires, so the sweep
 * continues.
 *
 * Spec server.remove, stream.archive
 */

import type { CommandType, Due, Fact, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { accountRef } from '../../state/account.ts'
import { revokedKeyOps, unpackToken } from '../../state/api-key.ts'
import { auditOpsOf } from '../../state/audit.ts'
import { namesKey, removedServersKey, serversKey, streamsKey, tokensKey } from '../../state/keys.ts'
import { type ServerCounters, type ServerState, serverName, serverOwner, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { listenersRef, type Subscriber, type WebhookState, webhookRef } from '../../state/webhook/webhook.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { accountOfOrder, type ServerOrder, serverOfOrder, serverOrderEntities } from '../authorization/server.ts'
import { keysTopic } from '../webhook/announce.ts'
import { webhookRemoval } from '../webhook/remove.ts'

export const removeServer: CommandType<ServerOrder, { readonly kind: 'removed' } | Refused> = {
  name: 'remove-server',
  entities: (body) => [...serverOrderEntities(body), listenersRef(body.serverId)],
  counters: ({ serverId }) => [serverOwner(serverId)],
  facts: (body, states, { shard }) => {
    const server = states.get<ServerState | null>(serverRef(body.serverId))
    return server === null || server.keys.length === 0 ? [] : [tokensFact(shard, server)]
  },
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states, { facts, context })
    if ('kind' in account) return account
    const server = serverOfOrder(body, states)
    if (server === null) return refuse('not_found')
    if ((states.counter<ServerCounters>(serverOwner(server.serverId))?.openBroadcasts ?? 0) > 0)
      return refuse('server_in_use')
    const { accountId, serverId, name, mode } = server
    const listeners = states.get<readonly Subscriber[] | null>(listenersRef(serverId)) ?? []
    const hooks = listeners.map(({ webhookId }) => webhookRef(webhookId))
    if (!hooks.every((ref) => states.has(ref))) return { kind: 'need', entities: hooks }
    const { shard, nowMs } = context
    const ops: Op[] = server.keys.flatMap(({ tokenId }) => {
      const packed = facts.field(tokensKey(shard, serverId), tokenId)
      if (packed === null) return []
      return revokedKeyOps(shard, serverId, { tokenId, token: { ...unpackToken(packed), revokedAtMs: nowMs } })
    })
    ops.push({ key: namesKey(shard, accountId), write: 'HDEL', args: [serverName(name)] })
    ops.push({ key: serversKey(shard, accountId), write: 'ZREM', args: [serverId] })
    // Its stored data may still be personal, and an erasure finds the server here.
    ops.push({ key: removedServersKey(shard, accountId), write: 'ZADD', args: [String(msOf(serverId)), serverId] })
    ops.push(...auditOpsOf(context, body.by, { targets: { accountId, serverId }, before: { name, mode }, after: null }))
    const webhooks = hooks.map((ref) => states.get<WebhookState | null>(ref)).filter((webhook) => webhook !== null)
    const removals = webhooks.map((webhook) => webhookRemoval(webhook, context))
    const webhookServers = (account.webhookServers ?? []).filter((one) => one.serverId !== serverId)
    return {
      kind: 'done',
      reply: { kind: 'removed' },
      events: [
        ...removals.flatMap(({ events }) => events),
        ...(removals.length === 0
          ? []
          : [
              { ref: serverRef(serverId), event: { type: 'webhooks', hasWebhooks: false } },
              { ref: accountRef(accountId), event: { type: 'webhook servers', webhookServers } },
            ]),
        { ref: serverRef(serverId), event: { type: 'removed', removedAtMs: nowMs } },
        { ref: accountRef(accountId), event: { type: 'patched', changes: { servers: account.servers - 1 } } },
      ],
      ops: [...ops, ...removals.flatMap((removal) => removal.ops)],
      due: [retireDue(serverId, nowMs), ...removals.flatMap(({ due }) => due)],
      signals: [{ topic: keysTopic(serverId), text: serverId }],
    }
  },
}

export const RETIRE_TIMER = 'retire'

/** Streams of one step: more than are made within a millisecond. */
const STEP_STREAMS = 200

export const retire: CommandType<TimerBody, null> = {
  name: 'retire',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [streamsFact(shard, body)],
  decide(body, states, facts, { shard, nowMs }) {
    const rows = facts.sorted(streamsFact(shard, body))
    const refs = rows.map(([streamId]) => streamRef(streamId))
    if (!refs.every((ref) => states.has(ref))) return { kind: 'need', entities: refs }
    const open = refs.filter((ref) => states.get<StreamState | null>(ref)?.archivedAtMs === null)
    const last = rows.at(-1)
    const isMore = last !== undefined && rows.length === STEP_STREAMS
    return {
      kind: 'done',
      reply: null,
      events: open.map((ref) => ({ ref, event: { type: 'archived', archivedAtMs: nowMs } })),
      due: isMore ? [retireDue(parse(body).serverId, nowMs, last[1])] : [],
    }
  },
}

function tokensFact(shard: number, { serverId, keys }: ServerState): Fact {
  return { read: 'fields', key: tokensKey(shard, serverId), fields: keys.map(({ tokenId }) => tokenId) }
}

/** The next step: streams made at `fromMs` and later. */
export function retireDue(serverId: string, nowMs: number, fromMs = 0): Due {
  return { lane: TIMERS_LANE, item: `${RETIRE_TIMER}:${serverId}:${fromMs}`, atMs: nowMs }
}

function streamsFact(shard: number, body: TimerBody): Fact & { read: 'sorted' } {
  const { serverId, fromMs } = parse(body)
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: streamsKey(shard, serverId), min: fromMs, max, count: STEP_STREAMS }
}

function parse({ item }: TimerBody): { serverId: string; fromMs: number } {
  const [, serverId = '', fromMs = '0'] = item.split(':')
  return { serverId, fromMs: Number(fromMs) }
}
