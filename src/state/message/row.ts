/**
 * row - where the rows of a message are: its log entry, its head, and the status of each recipient.
 *
 * Behaviours and views read and write these rows through this module alone (`test/tidy.ts` checks it), so one place
 * decides which key holds a row and what a missing row means. A recipient of a logged message without a status row is
 * fresh (`status.ts`).
 *
 * Keys: `log head status:<server>:<segment>`
 *
 * Spec message.log
 */

import type { Fact, FactOf, Facts, HashFields, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, shortId } from '../../../cluster/id.ts'
import { headKey, logKey, statusKey } from '../keys.ts'
import type { AttemptItem } from './item.ts'
import { LOG_FIELD, type LogEntry, logEntryOf } from './log-entry.ts'
import { statusField } from './status.ts'

/** A recipient of a message, as its item names it. */
type Recipient = Pick<AttemptItem, 'short' | 'recipient'>
type FieldsFact = Fact & { readonly read: 'fields' }
type RangeFact = Fact & { readonly read: 'range' }

/** Arguments of one HSET: an even number. */
const ARGS_MAX = 2_000
/** Fields of one HDEL. */
const FIELDS_MAX = 1_000

/** The rows of the messages of a segment. */
export class MessageRows {
  readonly #log: string
  readonly #head: string
  readonly #status: string

  constructor(shard: number, { serverId, segment }: Pick<AttemptItem, 'serverId' | 'segment'>) {
    this.#log = logKey(shard, serverId, segment)
    this.#head = headKey(shard, serverId, segment)
    this.#status = statusKey(shard, serverId, segment)
  }

  /** The read of some heads. In: short ids. */
  headsFact(shorts: readonly string[]): FieldsFact {
    return { read: 'fields', key: this.#head, fields: shorts }
  }

  /** The read of some statuses. In: fields, as `statusField` names them. */
  statusesFact(fields: readonly string[]): FieldsFact {
    return { read: 'fields', key: this.#status, fields }
  }

  /** The read of one recipient's status. */
  statusFact({ short, recipient }: Recipient): FieldsFact {
    return this.statusesFact([statusField(short, recipient)])
  }

  /** The read of one message's log entry. */
  entryFact(messageId: string): RangeFact {
    const entryId = entryIdOf(messageId)
    return this.entriesFact({ from: entryId, to: entryId, count: 1 })
  }

  /** The read of log entries from `from` to `to`, oldest first. */
  entriesFact(range: { readonly from: string; readonly to: string; readonly count: number }): RangeFact {
    return { read: 'range', key: this.#log, ...range }
  }

  /** The read of log entries from `to` down to `from`, for views. */
  newestFact(range: { readonly from: string; readonly to: string; readonly count: number }): FactOf<'newest'> {
    return { read: 'newest', key: this.#log, ...range }
  }

  /** A head that was fetched; null: the message has left the log. */
  head(facts: Facts, short: string): string | null {
    return facts.field(this.#head, short)
  }

  /** A recipient's status that was fetched; null: it is fresh, or its message has left the log. */
  status(facts: Facts, { short, recipient }: Recipient): string | null {
    return facts.field(this.#status, statusField(short, recipient))
  }

  /** A log entry that was fetched with `entryFact`; null: the message has left the log. */
  entry(facts: Facts, messageId: string): LogEntry | null {
    const [logged] = facts.range(this.entryFact(messageId))
    return logged === undefined ? null : logEntryOf(logged)
  }

  /** The write of a message's log entry. In: the packed entry. */
  entryOp(messageId: string, packed: string): Op {
    return { key: this.#log, write: 'XADD', args: [entryIdOf(messageId), LOG_FIELD, packed] }
  }

  /** The write of a message's head. */
  headOp(short: string, packed: string): Op {
    return { key: this.#head, write: 'HSET', args: [short, packed] }
  }

  /** The write of a recipient's status. */
  statusOp({ short, recipient }: Recipient, packed: string): Op {
    return { key: this.#status, write: 'HSET', args: [statusField(short, recipient), packed] }
  }

  /** The writes of many heads and statuses. In: fields and values by turns. */
  changeOps(of: { readonly heads: readonly string[]; readonly statuses: readonly string[] }): Op[] {
    return [...hsetOps(this.#head, of.heads), ...hsetOps(this.#status, of.statuses)]
  }

  /** The writes that remove heads and statuses, given their fields, and log entries below an entry id. */
  removeOps(of: { readonly heads: readonly string[]; readonly statuses: readonly string[]; below: string }): Op[] {
    const trim: Op = { key: this.#log, write: 'XTRIM', args: ['MINID', of.below] }
    return [trim, ...deleteOps(this.#head, of.heads), ...deleteOps(this.#status, of.statuses)]
  }

  /** Statuses by their hash, for what an owner remembers of them. */
  statuses(fields: readonly string[]): HashFields {
    return { key: this.#status, fields }
  }

  /** A head by its hash, for who fetches heads of several segments together. */
  headPlace(messageId: string): { readonly key: string; readonly field: string } {
    return { key: this.#head, field: shortId(messageId) }
  }
}

/** HDEL of many fields, in writes of a bounded size. */
export function deleteOps(key: string, fields: readonly string[]): Op[] {
  const ops: Op[] = []
  for (let from = 0; from < fields.length; from += FIELDS_MAX)
    ops.push({ key, write: 'HDEL', args: fields.slice(from, from + FIELDS_MAX) })
  return ops
}

function hsetOps(key: string, values: readonly string[]): Op[] {
  const ops: Op[] = []
  for (let from = 0; from < values.length; from += ARGS_MAX)
    ops.push({ key, write: 'HSET', args: values.slice(from, from + ARGS_MAX) })
  return ops
}
