/**
 * ended-content - which messages have no attempt left and content past its time, and the writes that remove it.
 *
 * The shared content of a broadcast's messages is removed at the earliest three days after the last one was released,
 * when no attempt is left. A message that still has one, because its mail is held, keeps it for two more days each
 * time.
 *
 * Spec retention.settings
 */

import type { Context, Due, Op, Ref, States } from '../../../cluster/behaviour.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { contentExpiresAtMs } from '../../state/age.ts'
import { type BroadcastState, broadcastRef } from '../../state/broadcast/broadcast.ts'
import { expiryOps, isAttachment } from '../../state/broadcast/content.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { BODY_PART } from '../../state/message/content-part.ts'
import type { Head } from '../../state/message/head.ts'
import { type ContentOwners, sentContentDays } from '../../state/message/retention.ts'
import type { ServerState } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { type BodyOwner, endBodies, endFiles } from '../message/end-content.ts'

/** Attempts end within 48 hours. */
const ATTEMPTS_DAYS = 3
const HELD_DAYS = 2

/** A message whose content may have ended. */
export interface EndedMessage extends BodyOwner {
  readonly head: Head
  readonly submittedAtMs: number
  readonly streamId: string
}

/** The entities that determine how long messages of a server keep their content. */
export function ownersIn(states: States, server: ServerState): ContentOwners | { readonly missing: Ref } {
  const ref = accountRef(server.accountId)
  return states.has(ref) ? { server, account: states.get<AccountState | null>(ref) } : { missing: ref }
}

/** The references to streams that are not read yet. */
export function missingStreams(states: States, streamIds: readonly string[]): Ref[] {
  return [...new Set(streamIds)].map(streamRef).filter((ref) => !states.has(ref))
}

/** Days of a stream whose state was read. */
export function daysOfStream(states: States, owners: ContentOwners, streamId: string): number {
  return sentContentDays(owners, states.get<StreamState | null>(streamRef(streamId)))
}

/** The references to the broadcasts of messages that are not read yet. */
export function missingBroadcasts(states: States, messages: readonly Pick<EndedMessage, 'head'>[]): Ref[] {
  return broadcastsOf(messages)
    .map(broadcastRef)
    .filter((ref) => !states.has(ref))
}

/** The writes that remove the content of messages. Their broadcasts have been read. */
export function endContents(
  context: Pick<Context, 'shard' | 'nowMs'>,
  states: States,
  { messages, days }: { readonly messages: readonly EndedMessage[]; readonly days: number },
): { readonly ops: Op[]; readonly due: Due[] } {
  const { ops, due } = endBodies(context, messages)
  // On a live server attachments have ended with the last recipient.
  const files = messages.filter(({ test }) => test).map((message) => endFiles(context, message))
  const shared = sharedOps(context, states, { messages, days, leastDays: 1 })
  return {
    ops: [...ops, ...files.flatMap((end) => end.ops), ...shared],
    due: [...due, ...files.flatMap((end) => end.due)],
  }
}

/** The writes that keep content shared with other messages, because a message still has an attempt. */
export function keepShared(
  context: Pick<Context, 'shard' | 'nowMs'>,
  states: States,
  { message, days }: { readonly message: EndedMessage; readonly days: number },
): Op[] {
  return sharedOps(context, states, { messages: [message], days, leastDays: HELD_DAYS })
}

function sharedOps(
  { shard, nowMs }: Pick<Context, 'shard' | 'nowMs'>,
  states: States,
  { messages, days, leastDays }: { messages: readonly EndedMessage[]; days: number; leastDays: number },
): Op[] {
  return broadcastsOf(messages).flatMap((broadcastId) => {
    const broadcast = states.get<BroadcastState | null>(broadcastRef(broadcastId))
    if (broadcast === null || broadcast.endedAtMs === null) return []
    const ofIt = messages.filter(({ head }) => head.broadcast?.broadcastId === broadcastId)
    // By then it has expired without this.
    const expiresAtMs = Math.max(...ofIt.map(({ submittedAtMs, test }) => contentExpiresAtMs(submittedAtMs, test)))
    const atMs = Math.max(broadcast.endedAtMs + Math.max(days, ATTEMPTS_DAYS) * DAY_MS, nowMs + leastDays * DAY_MS)
    if (atMs >= expiresAtMs) return []
    const { contentId, parts, test } = broadcast
    const ended = parts.filter(({ part }) => part === BODY_PART || (test && isAttachment(part)))
    return ended.flatMap((part) => expiryOps({ shard, contentId }, part, atMs))
  })
}

function broadcastsOf(messages: readonly Pick<EndedMessage, 'head'>[]): string[] {
  return [...new Set(messages.flatMap(({ head }) => head.broadcast?.broadcastId ?? []))]
}
