/**
 * erased-messages - the writes for erasing some messages of a segment: heads, statuses, content, and events
 *
 * Spec erasure.messages, message.states
 */

import type { Context, Due, Facts, Op, Staged } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { type ErasureWalk, type ToldSpan, toldOf } from '../../state/erasure.ts'
import { endNotes, type RecipientEnd } from '../../state/message/end.ts'
import { erasedHead, type Head, isErasedHead, unpackHead } from '../../state/message/head.ts'
import type { LogEntry } from '../../state/message/log-entry.ts'
import { deleteOps, MessageRows } from '../../state/message/row.ts'
import {
  isOpen,
  packStatus,
  type RecipientState,
  type StatusEvent,
  statusField,
  unpackStatus,
  withoutResponse,
} from '../../state/message/status.ts'
import type { ServerState } from '../../state/server.ts'
import type { MessageReference } from '../../state/webhook/item.ts'
import { failedEvent } from '../message/delivery-outcome.ts'
import { endContent } from './erased-content.ts'

/** A message of the person. */
export interface PersonsMessage {
  readonly messageId: string
  readonly short: string
  readonly entry: LogEntry
}

/** Where the messages are. */
interface ErasedIn {
  readonly server: ServerState
  readonly segment: string
  readonly walk: ErasureWalk
  readonly facts: Facts
  readonly context: Context
}

export class ErasedMessages {
  /** Messages to the person whose content went. */
  messages = 0
  /** Times at which events of these messages were announced. */
  readonly told: ToldSpan[] = []
  /** Events of recipients that fail. */
  readonly news: MessageReference[] = []
  readonly streamIds: string[] = []
  readonly #of: ErasedIn
  readonly #heads: string[] = []
  readonly #statuses: string[] = []
  readonly #bodies = new Map<string, string[]>()
  readonly #ops: Op[] = []
  readonly #due: Due[] = []
  readonly #notes: RecipientEnd[] = []

  constructor(of: ErasedIn) {
    this.#of = of
  }

  /** Writes beside those of heads, statuses and small bodies, which go together. */
  get writes(): number {
    return this.#ops.length + this.#due.length
  }

  /** Erases a message; its head and statuses must have been fetched. */
  add(message: PersonsMessage): void {
    const { server, segment, walk, facts, context } = this.#of
    const { short, entry, messageId } = message
    const { recipients } = entry
    const rows = new MessageRows(context.shard, { serverId: server.serverId, segment })
    const packed = rows.head(facts, short)
    // It has left the log.
    if (packed === null) return
    const submittedAtMs = msOf(messageId)
    const states = recipients.map((_, n) => unpackStatus(rows.status(facts, { short, recipient: n }), submittedAtMs))
    const head = unpackHead(packed, recipients.length)
    if (!isErasedHead(head)) {
      this.#empty(message, { head, sizeBytes: states[0]?.sizeBytes ?? null })
      if (recipients.includes(walk.number)) this.messages += 1
    }
    for (const [recipient, state] of states.entries()) {
      this.told.push(...state.events.map(({ occurredAtMs }) => toldOf(occurredAtMs)))
      this.#end(message, { recipient, state })
    }
  }

  /** All writes. */
  staged(): Staged {
    const { server, segment, context } = this.#of
    const rows = new MessageRows(context.shard, { serverId: server.serverId, segment })
    return {
      ops: [
        ...rows.changeOps({ heads: this.#heads, statuses: this.#statuses }),
        ...[...this.#bodies].flatMap(([key, fields]) => deleteOps(key, fields)),
        ...this.#ops,
      ],
      due: this.#due,
      notes: this.#notes,
    }
  }

  #empty({ short, entry, messageId }: PersonsMessage, of: { head: Head; sizeBytes: number | null }): void {
    const { server, context } = this.#of
    const { head, sizeBytes } = of
    this.#heads.push(short, erasedHead(head))
    const submittedAtMs = msOf(messageId)
    const test = server.mode === 'test'
    const end = endContent(context, { contentId: entry.contentId, head, submittedAtMs, test, sizeBytes })
    this.#ops.push(...end.ops)
    this.#due.push(...end.due)
    if (end.body === null) return
    const { key, field } = end.body
    this.#bodies.set(key, [...(this.#bodies.get(key) ?? []), field])
  }

  /** A recipient: texts about the person are removed, and pending recipients end. */
  #end(message: PersonsMessage, { recipient, state }: { recipient: number; state: RecipientState }): void {
    const { server, segment, walk, context } = this.#of
    const { entry, messageId, short } = message
    const isOwn = entry.recipients[recipient] === walk.number
    // For mail from the person, any server may have named the sender.
    const said = isOwn || entry.sender === walk.number ? state.events.map(withoutResponse) : state.events
    const end = isOpen(state.status) ? endOf(isOwn, context.nowMs) : null
    if (end === null && said.every((event, n) => event === state.events[n])) return
    const events = end === null ? said : [...said, end]
    const { attempts, sizeBytes } = state
    const packed = packStatus({ attempts, nextAttemptAtMs: null, events, sizeBytes }, msOf(messageId))
    this.#statuses.push(statusField(short, recipient), packed)
    if (end?.event !== 'bounced') return
    this.news.push({ kind: 'message', event: 'bounced', segment, messageId, recipient, index: events.length - 1 })
    this.streamIds.push(entry.streamId ?? server.defaultStreamId)
    this.#notes.push(...endNotes({ messageId, recipient }, end, { lane: null, attempts }))
  }
}

/** The end of a pending recipient; that of the person gets no event. */
function endOf(isOwn: boolean, nowMs: number): StatusEvent {
  return isOwn ? { event: 'cancelled', occurredAtMs: nowMs } : failedEvent(nowMs)
}
