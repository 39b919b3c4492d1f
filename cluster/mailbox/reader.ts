/**
 * reader - reads the entries that other processes put into a shard's mailbox, or into its outcomes.
 *
 * These are plain reads after a cursor. The cursor moves in the commit that executes the entries, so each is executed
 * once and a new owner continues after the last confirmed commit. An entry that the bell brought along is taken
 * without a read if it follows the last one.
 */

import type { Inbox, InboxEntry, Store } from '../store.ts'
import { parseCursor } from './cursor.ts'
import { ENTRIES_BYTES_MAX } from './parcel.ts'

const READ_MAX = 64

/** An entry, and how many of its commands are done. */
export interface ReadEntry {
  readonly entry: InboxEntry
  readonly done: number
}

export class MailboxReader {
  private readonly shard: number
  private readonly of: Inbox
  private readonly store: Store
  private at = '0-0'
  /** Commands of the entry at `at` that are done, if others are still to be read. */
  private done = 0
  private reading = false
  private rung = false

  constructor(shard: number, of: Inbox, store: Store) {
    this.shard = shard
    this.of = of
    this.store = store
  }

  /** Begins after `cursor`. */
  start(cursor: string): void {
    const { entryId, done } = parseCursor(cursor)
    this.at = entryId
    this.done = done
    this.rung = true
  }

  /** Something may have come. */
  ring(): void {
    this.rung = true
  }

  get wants(): boolean {
    return this.rung && !this.reading
  }

  /** Everything that had come before the last ring is read. */
  get isDry(): boolean {
    return !this.rung && !this.reading
  }

  /** The last entry that was read. */
  get cursor(): string {
    return this.at
  }

  /** Takes an entry that is known otherwise: true if it is the one after the last. */
  take(id: string, before: string): boolean {
    if (this.reading || this.done > 0 || before !== this.at) return false
    this.at = id
    return true
  }

  /** The next entries in stream order; null when the store did not answer: then it wants to be read again, later. */
  async read(): Promise<readonly ReadEntry[] | null> {
    this.rung = false
    this.reading = true
    const { at, done, shard, of } = this
    const from = done > 0 ? at : `(${at}`
    const entries = await this.store.entries({ shard, of, from, count: READ_MAX })
    this.reading = false
    if (entries === null) {
      this.rung = true
      return null
    }
    this.done = 0
    const last = entries[entries.length - 1]
    if (last === undefined) return []
    this.at = last.id
    if (isCut(entries)) this.rung = true
    return entries.map((entry) => ({ entry, done: entry.id === at ? done : 0 }))
  }
}

/** Whether the store may have had more than it gave. */
function isCut(entries: readonly InboxEntry[]): boolean {
  return (
    entries.length === READ_MAX || entries.reduce((sum, { body }) => sum + (body?.length ?? 0), 0) >= ENTRIES_BYTES_MAX
  )
}
