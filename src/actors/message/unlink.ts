/**
 * unlink - removes from the content store attachments that are no longer needed, objects of received mail whose
 * content has ended, objects of erased messages, and packs that no head names.
 *
 * States of an item: placed by the commit that ended the last recipient -> removed; if the store was unavailable,
 * again after a minute, two, four, up to an hour. Removing twice is removing once. An object that was not removed by
 * its day is removed with the day.
 *
 * Lane: `unlink`, item = the message's contentId; of received mail `in/<day>/<leaf>`, of a body, of a pack, and of
 * attachments on a test server, `out/<day>/<leaf>`, of a segment `cold/<day>/<leaf>`
 *
 * Spec retention.attachments, retention.inbound
 */

import type { CommandType, Context, Due, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import { packName } from '../../state/message/packed.ts'
import { coldName, REPLACED_MS } from '../../state/message/sealed.ts'
import { lastPastDay, outgoingName, parseObjectName, shardPrefix } from '../../state/object-name.ts'
import { receivedObjectName } from '../../state/received/object.ts'

export const UNLINK_LANE = 'unlink'
/** Occurs in items that are names without their shard, but never in a contentId. */
const SLASH = '/'

export interface UnlinkJob {
  readonly name: string
}

/** Whether the object is gone. */
export interface UnlinkOutcome {
  readonly removed: boolean
}

/** A message whose content leaves the store. */
interface ContentPlace {
  readonly contentId: string
  readonly test: boolean
}

/** The item that removes a message's attachments. */
export function unlinkFilesDue(context: Pick<Context, 'shard' | 'nowMs'>, { contentId, test }: ContentPlace): Due {
  // On a test server they have another day, which the item has to name.
  if (test) return unlinkPartDue(context, outgoingName(context.shard, { contentId, part: 'files', test }))
  const job: UnlinkJob = { name: filesName(context.shard, contentId) }
  return { lane: UNLINK_LANE, item: contentId, atMs: context.nowMs, job }
}

/** The item that removes a message's body before its time. */
export function unlinkBodyDue(context: Pick<Context, 'shard' | 'nowMs'>, { contentId, test }: ContentPlace): Due {
  return unlinkPartDue(context, outgoingName(context.shard, { contentId, part: 'body', test }))
}

function unlinkPartDue({ nowMs }: Pick<Context, 'nowMs'>, name: string): Due {
  const job: UnlinkJob = { name }
  return { lane: UNLINK_LANE, item: name.slice(name.indexOf(SLASH) + 1), atMs: nowMs, job }
}

/** The item that removes an object of a server's received mail. */
export function unlinkReceivedDue(
  { shard, nowMs }: Pick<Context, 'shard' | 'nowMs'>,
  serverId: string,
  objectId: string,
): Due {
  const name = receivedObjectName(shard, serverId, objectId)
  const job: UnlinkJob = { name }
  return { lane: UNLINK_LANE, item: name.slice(name.indexOf(SLASH) + 1), atMs: nowMs, job }
}

/** The item that removes an object of a segment, either at once, or when no backup can name it any more. */
export function unlinkColdDue(
  { shard, nowMs }: Pick<Context, 'shard' | 'nowMs'>,
  object: { readonly day: string; readonly leaf: string },
  { isReplaced = false }: { readonly isReplaced?: boolean } = {},
): Due {
  const name = coldName(shard, object)
  const job: UnlinkJob = { name }
  const atMs = isReplaced ? nowMs + REPLACED_MS : nowMs
  return { lane: UNLINK_LANE, item: name.slice(name.indexOf(SLASH) + 1), atMs, ...(!isReplaced && { job }) }
}

/** The item that removes a pack that no head names: a performer that was stopped may still be writing it now. */
export function unlinkPackDue({ shard, nowMs }: Pick<Context, 'shard' | 'nowMs'>, object: string): Due {
  const name = packName(shard, object)
  return { lane: UNLINK_LANE, item: name.slice(name.indexOf(SLASH) + 1), atMs: nowMs + HOUR_MS }
}

export const prepareUnlink: CommandType<PrepareBody, UnlinkJob> = {
  name: 'prepare unlink',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide: ({ item }, _states, _facts, { shard }) => ({ kind: 'done', reply: { name: objectName(shard, item) } }),
}

export const unlinkOutcome: CommandType<OutcomeBody<UnlinkOutcome>, null> = {
  name: 'unlink outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ lane, item, attempt, current, outcome }, _states, _facts, { shard, nowMs }) {
    const atMs = nowMs + Math.min(HOUR_MS, MINUTE_MS * 2 ** (attempt - 1))
    const isEnded = outcome === null || outcome.removed || isSwept(objectName(shard, item), atMs)
    if (isEnded) return { kind: 'done', reply: null, done: [{ lane, item }] }
    return { kind: 'done', reply: null, ...(current && { due: [{ lane, item, atMs }] }) }
  },
}

function isSwept(name: string, atMs: number): boolean {
  const named = parseObjectName(name)
  return named === null || named.day <= lastPastDay(named.tree, atMs)
}

function objectName(shard: number, item: string): string {
  return item.includes(SLASH) ? shardPrefix(shard) + item : filesName(shard, item)
}

/** The attachments of a message on a live server. */
function filesName(shard: number, contentId: string): string {
  return outgoingName(shard, { contentId, part: 'files', test: false })
}
