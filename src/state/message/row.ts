/**
 * row - the keys of the rows of a message: its log entry, its head, and the status of each recipient.
 *
 * Behaviours and views read and write these rows only through this module (`test/tidy.ts` checks it), so the key of a
 * row and the meaning of a missing row are decided in one place. A recipient of a logged message without a status row
 * is fresh (`status.ts`).
 *
 * Keys: `log head status:<server>:<segment>`
 *
 * Spec message.log
 */

import type { Fact, FactOf, Facts, HashFields, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, shortId } from '../../../cluster/id.ts'
import { headKey, logKey, recalledKey, sealedKey, sealedPersonsKey, statusKey } from '../keys.ts'
import type { AttemptItem } from './item.ts'
import { LOG_FIELD, type LogEntry, parseLogEntry, unpackLogEntry } from './log-entry.ts'
import { packSealed, type SealedRow, unpackSealed } from './sealed.ts'
import { statusField } from './status.ts'

/** A recipient of a message, as its item names it. */
type Recipient = Pick<AttemptItem, 'short' | 'recipient'>
type FieldsFact = Fact & { readonly read: 'fields' }
type RangeFact = Fact & { readonly read: 'range' }

/** Arguments of one HSET, an even number. */
const ARGS_MAX = 2_000
/** Fields of one HDEL. */
const FIELDS_MAX = 1_000

/** The rows of the messages of a segment. */
export class MessageRows {
  readonly #log: string
  readonly #head: string
  readonly #status: string
  readonly #recalled: string
  readonly #sealed: string
  readonly #filter: string
  readonly #segment: string

  constructor(shard: number, { serverId, segment }: Pick<AttemptItem, 'serverId' | 'segment'>) {
    this.#recalled = recalledKey(shard, serverId, segment)
    this.#sealed = sealedKey(shard, serverId)
    this.#filter = sealedPersonsKey(shard, serverId, segment)
    this.#segment = segment
    this.#log = logKey(shard, serverId, segment)
    this.#head = headKey(shard, serverId, segment)
    this.#status = statusKey(shard, serverId, segment)
  }

  /** The keys of the log, of heads and of statuses, as an operator finds them in Redis. */
  get keys(): { readonly log: string; readonly head: string; readonly status: string } {
    return { log: this.#log, head: this.#head, status: this.#status }
  }

  /** The read of heads by short ids. */
  headsFact(shorts: readonly string[]): FieldsFact {
    return { read: 'fields', key: this.#head, fields: shorts }
  }

  /** The read of statuses by the names that `statusField` returns. */
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
  newestFact(range: Omit<FactOf<'newest'>, 'read' | 'key'>): FactOf<'newest'> {
    return { read: 'newest', key: this.#log, ...range }
  }

  /** A head that was read; null if the message has left the log. */
  head(facts: Facts, short: string): string | null {
    return facts.field(this.#head, short)
  }

  /** A recipient's status that was fetched; null: it is fresh, or its message has left the log. */
  status(facts: Facts, { short, recipient }: Recipient): string | null {
    return facts.field(this.#status, statusField(short, recipient))
  }

  /** The reads that `entry` still needs: the log, and if that has no entry, the recalled ones. */
  missingEntry(facts: Facts, messageId: string): readonly Fact[] {
    const inLog = this.entryFact(messageId)
    if (!facts.has(inLog)) return [inLog]
    const recalled = this.recalledFact([shortId(messageId)])
    return facts.range(inLog).length > 0 || facts.has(recalled) ? [] : [recalled]
  }

  /** A log entry that was read; null if the message has left the log, or is sealed and was not recalled. */
  entry(facts: Facts, messageId: string): LogEntry | null {
    const [logged] = facts.range(this.entryFact(messageId))
    if (logged !== undefined) return parseLogEntry(logged)
    const short = shortId(messageId)
    const packed = facts.has(this.recalledFact([short])) ? facts.field(this.#recalled, short) : null
    return packed === null ? null : unpackLogEntry(packed)
  }

  /** The read of recalled log entries by short ids. */
  recalledFact(shorts: readonly string[]): FieldsFact {
    return { read: 'fields', key: this.#recalled, fields: shorts }
  }

  /** Whether a message was recalled. `recalledFact` must have been fetched. */
  isRecalled(facts: Facts, short: string): boolean {
    return facts.field(this.#recalled, short) !== null
  }

  /** The read of all recalled log entries, for views. */
  allRecalledFact(): FactOf<'hash'> {
    return { read: 'hash', key: this.#recalled }
  }

  /** The read of the segment's row in `sealed`. */
  sealedFact(): FieldsFact {
    return { read: 'fields', key: this.#sealed, fields: [this.#segment] }
  }

  /** The read of the segment's filter of persons. */
  filterFact(): FactOf<'value'> {
    return { read: 'value', key: this.#filter }
  }

  /** The segment's row in `sealed`, if it was read; null if the segment is in Redis. */
  sealed(facts: Facts): SealedRow | null {
    return facts.has(this.sealedFact()) ? unpackSealed(facts.field(this.#sealed, this.#segment)) : null
  }

  /** Whether the segment has left Redis. `sealedFact` must have been fetched if it may have. */
  isSealed(facts: Facts): boolean {
    return (this.sealed(facts)?.generation ?? 0) > 0
  }

  /** The write of the segment's row in `sealed`. */
  sealOp(row: SealedRow): Op {
    return { key: this.#sealed, write: 'HSET', args: [this.#segment, packSealed(row)] }
  }

  /** The write that removes the segment's row in `sealed`. */
  unsealOp(): Op {
    return { key: this.#sealed, write: 'HDEL', args: [this.#segment] }
  }

  /**
   * The writes that bring a message of a sealed segment back. Takes its texts, with statuses in the order of
   * recipients.
   */
  recallOps(
    short: string,
    of: { readonly log: string; readonly head: string; readonly statuses: readonly string[] },
  ): Op[] {
    const statuses = of.statuses.flatMap((status, recipient) => [statusField(short, recipient), status])
    return [
      { key: this.#recalled, write: 'HSET', args: [short, of.log] },
      ...this.changeOps({ heads: [short, of.head], statuses }),
    ]
  }

  /** The writes that remove recalled messages. Takes short ids and fields of statuses. */
  removeRecalledOps(shorts: readonly string[], statuses: readonly string[]): Op[] {
    return [this.#recalled, this.#head]
      .flatMap((key) => deleteOps(key, shorts))
      .concat(deleteOps(this.#status, statuses))
  }

  /** The write of a message's log entry. Takes the packed entry. */
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

  /** The writes of many heads and statuses. Takes alternating fields and values. */
  changeOps(of: { readonly heads: readonly string[]; readonly statuses: readonly string[] }): Op[] {
    return [...hsetOps(this.#head, of.heads), ...hsetOps(this.#status, of.statuses)]
  }

  /** The writes that remove heads and statuses, given their fields, and log entries below an entry id. */
  removeOps(of: { readonly heads: readonly string[]; readonly statuses: readonly string[]; below: string }): Op[] {
    const trim: Op = { key: this.#log, write: 'XTRIM', args: ['MINID', of.below] }
    return [trim, ...deleteOps(this.#head, of.heads), ...deleteOps(this.#status, of.statuses)]
  }

  /** Statuses by their hash, for the owner's cache. */
  statuses(fields: readonly string[]): HashFields {
    return { key: this.#status, fields }
  }

  /** A head by its hash, for reading heads of several segments together. */
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
