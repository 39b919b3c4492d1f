/**
 * schedule - POST /v1/messages/{id}/cancel and PATCH /v1/messages/{id}
 *
 * The message is read for the names of its items; the order itself is decided on its shard. Both answer the message as
 * it is afterwards.
 *
 * Spec message.cancel, message.reschedule
 */

import { homeShard } from '../../cluster/id.ts'
import type { OrderScheduledBody, OrderScheduledReply, ScheduledMessage } from '../actors/message/schedule.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { Metrics } from '../process/metrics.ts'
import { type LanePrefix, laneOf } from '../state/message/item.ts'
import { type StreamState, streamRef } from '../state/stream.ts'
import { entityFact, parseState } from '../views/entity.ts'
import type { ServerKey } from '../views/key.ts'
import { type MessageDeps, readStoredMessage, readWhole } from '../views/message/message.ts'
import type { StoredMessage } from '../views/message/summary.ts'
import { readPersons } from '../views/person.ts'
import { giveOrder, type OrderDeps } from './answer.ts'

/** Dependencies of the routes of scheduled messages. */
export type ScheduleDeps = MessageDeps & OrderDeps & { readonly metrics: Pick<Metrics, 'scheduled'> }

/** How often a message is read again whose time was changed by another request at the same moment. */
const TRIES_MAX = 3
const LIVE_LANES: readonly LanePrefix[] = ['deliver', 'relay']
const TEST_LANES: readonly LanePrefix[] = ['simulate']

/** The handlers of scheduled messages. */
export function scheduleHandlers(deps: ScheduleDeps) {
  return { patchMessage: makePatchMessage(deps), cancelMessage: makeCancelMessage(deps) }
}

/** POST /v1/messages/{id}/cancel */
function makeCancelMessage(deps: ScheduleDeps): HandlerOf<'cancelMessage'> {
  return ({ key, params }) => order(deps, key, { messageId: params.id ?? '', sendAtMs: null })
}

/** PATCH /v1/messages/{id} */
function makePatchMessage(deps: ScheduleDeps): HandlerOf<'patchMessage'> {
  return ({ key, params, body }) => order(deps, key, { messageId: params.id ?? '', sendAtMs: Date.parse(body.sendAt) })
}

async function order(
  deps: ScheduleDeps,
  key: ServerKey,
  { messageId, sendAtMs }: { readonly messageId: string; readonly sendAtMs: number | null },
): Promise<Answer> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const stored = await readStoredMessage(deps, key, messageId)
    const message = typeof stored === 'string' ? stored : await readScheduled(deps, key, stored)
    if (message === 'unauthorized' || message === 'unavailable') return refusalReply(message)
    const found = typeof message === 'string' ? nothingScheduled(key) : message
    const { reply, answer, refused } = await give(deps, key, { message: found, sendAtMs })
    // Without such a message the account is still checked, because its state is refused first. Spec refusal.order
    if (typeof message === 'string' && (answer === undefined || refused?.code === 'not_found'))
      return refusalReply(message)
    if (answer !== undefined) return answer
    if (reply.kind === 'ordered') {
      deps.metrics.scheduled(sendAtMs === null ? 'cancelled' : 'moved', 1)
      return answerMessage(deps, key, messageId)
    }
  }
  return refusalReply('unavailable')
}

function give(
  deps: ScheduleDeps,
  { accountId, serverId, mode, hash }: ServerKey,
  { message, sendAtMs }: Pick<OrderScheduledBody, 'message' | 'sendAtMs'>,
) {
  const order = { accountId, serverId, orderedBy: 'server', keyHash: hash, test: mode === 'test' } as const
  const body: OrderScheduledBody = { ...order, message, sendAtMs }
  return giveOrder<OrderScheduledReply>(deps, homeShard(accountId), { name: 'order-scheduled', body })
}

/** Placeholder for a missing message; its id belongs to no message. */
function nothingScheduled({ serverId }: ServerKey): ScheduledMessage {
  const none = { segment: '-', contentId: '', hasAttachments: false, broadcastStreamId: null, sendAtMs: 0 }
  return { messageId: serverId, ...none, lanes: [[]] }
}

async function answerMessage(deps: ScheduleDeps, key: ServerKey, messageId: string): Promise<Answer> {
  const stored = await readStoredMessage(deps, key, messageId)
  if (typeof stored === 'string') return refusalReply(stored)
  const message = await readWhole(deps, key, stored)
  return typeof message === 'string' ? { close: true } : { status: 200, json: message }
}

/** The message's data for the order, or the refusal if it is not scheduled. */
async function readScheduled(
  deps: ScheduleDeps,
  { accountId, mode }: ServerKey,
  { head, entry, messageId, segment, streamId }: StoredMessage,
): Promise<ScheduledMessage | 'message_not_scheduled' | 'unavailable'> {
  if (head.sendAtMs === undefined) return 'message_not_scheduled'
  const shard = homeShard(accountId)
  const [addresses, seen] = await Promise.all([
    readPersons(deps.read, { shard, accountId, numbers: entry.recipients }),
    deps.read(shard, [entityFact(shard, streamRef(streamId))]),
  ])
  if (addresses === null || seen === null) return 'unavailable'
  const isBroadcast = parseState<StreamState>(seen[0])?.kind === 'broadcast'
  const prefixes = mode === 'test' ? TEST_LANES : LIVE_LANES
  const lanes = addresses.map((address) => {
    return prefixes.map((prefix) => laneOf(prefix, address.slice(address.lastIndexOf('@') + 1)))
  })
  return {
    messageId,
    segment,
    contentId: entry.contentId,
    hasAttachments: head.attachments.length > 0 || head.raw !== null,
    broadcastStreamId: isBroadcast ? streamId : null,
    sendAtMs: head.sendAtMs,
    lanes,
  }
}
