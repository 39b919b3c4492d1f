/**
 * forget - removes text and HTML of messages of a sealed segment, because they are kept for fewer days than by
 * default.
 *
 * States of an item: placed by the walk over the log; each step reads some messages from the object and orders the
 * next; done with the last. The content is stored elsewhere. If it is in packs, another item removes the keys from the
 * object (`strip.ts`). No message of a sealed segment has an attempt left.
 *
 * Spec retention.settings
 */

import type { CommandType, Context, Decision, Due, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { idOfEntry, msOf } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { accountOfColdLane, type ColdItem, coldDue, readColdItem, type SealedRow } from '../../state/message/sealed.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import {
  daysOfStream,
  type EndedMessage,
  endContents,
  missingBroadcasts,
  missingStreams,
  ownersIn,
} from '../retention/ended-content.ts'
import type { TouchedMessage } from './erase.ts'
import { retryLater } from './swap.ts'

/** Messages to read: from an entry id to a millisecond. */
export interface ForgetJob {
  readonly act: 'forget'
  readonly serverId: string
  readonly segment: string
  readonly row: SealedRow
  readonly from: string
  readonly toMs: number
}

/** Some messages, and the entry id with which the next step begins; null: none. */
export type ForgetOutcome =
  | { readonly act: 'forget'; readonly result: 'away' }
  | {
      readonly act: 'forget'
      readonly result: 'found'
      readonly messages: readonly TouchedMessage[]
      readonly next: string | null
    }

/** After the other steps of a segment, which take a moment each. */
const STRIP_MS = 30_000

type ForgetItem = Extract<ColdItem, { act: 'forget' }>

export const prepareForget: CommandType<PrepareBody, ForgetJob | null> = {
  name: 'prepare forget',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, parseItem(item)).sealedFact()],
  decide({ item }, _states, facts, { shard }): Decision<ForgetJob | null> {
    const { serverId, segment, from, toMs } = parseItem(item)
    const row = new MessageRows(shard, { serverId, segment }).sealed(facts)
    if (row === null || row.generation === 0) return { kind: 'done', reply: null }
    return { kind: 'done', reply: { act: 'forget', serverId, segment, row, from, toMs } }
  },
}

export const forgetOutcome: CommandType<OutcomeBody<ForgetOutcome>, null> = {
  name: 'forget outcome',
  frees: true,
  entities: ({ item }) => [serverRef(parseItem(item).serverId)],
  counters: () => [],
  facts: () => [],
  decide({ lane, item, attempt, current, outcome }, states, _facts, context): Decision<null> {
    const done = [{ lane, item }]
    const order = parseItem(item)
    const server = states.get<ServerState | null>(serverRef(order.serverId))
    if (outcome === null || server === null) return { kind: 'done', reply: null, done }
    if (outcome.result === 'away') return retryLater({ lane, item, attempt, current }, context.nowMs)
    const owners = ownersIn(states, server)
    const messages = outcome.messages.flatMap((one) => unlessDamaged(() => findEnded(one, server, context.shard)) ?? [])
    const entities = [
      ...('missing' in owners ? [owners.missing] : []),
      ...missingStreams(
        states,
        messages.map(({ streamId }) => streamId),
      ),
      ...missingBroadcasts(states, messages),
    ]
    if (entities.length > 0 || 'missing' in owners) return { kind: 'need', entities }
    const mine = messages.filter(({ streamId }) => daysOfStream(states, owners, streamId) === order.days)
    const { ops, due } = endContents(context, states, { messages: mine, days: order.days })
    const { next } = outcome
    const more = next === null ? [] : [coldDue(accountOfColdLane(lane), { ...order, from: next }, context.nowMs)]
    return { kind: 'done', reply: null, done, ops, due: [...due, ...more, ...stripDue(lane, order, mine, context)] }
  },
}

/** Packs leave by their day, so the keys of these bodies leave the object. Each step finds the same item. */
function stripDue(
  lane: string,
  { serverId, segment, toMs }: ForgetItem,
  messages: readonly EndedMessage[],
  { nowMs }: Pick<Context, 'nowMs'>,
): Due[] {
  if (messages.every(({ head }) => head.stored?.packed === undefined)) return []
  return [coldDue(accountOfColdLane(lane), { act: 'strip', serverId, segment, toMs }, nowMs + STRIP_MS)]
}

function parseItem(item: string): ForgetItem {
  return readColdItem(item) as ForgetItem
}

/** A message of the object; none if it was erased. */
function findEnded(
  { entryId, log, head, sizeBytes }: TouchedMessage,
  server: ServerState,
  shard: number,
): EndedMessage[] {
  const { contentId, recipients, streamId } = unpackLogEntry(log)
  const unpacked = unpackHead(head, recipients.length)
  if (isErasedHead(unpacked)) return []
  const submittedAtMs = msOf(idOfEntry(entryId, shard))
  const of = { contentId, head: unpacked, sizeBytes, submittedAtMs }
  return [{ ...of, test: server.mode === 'test', streamId: streamId ?? server.defaultStreamId }]
}
