/**
 * mailbox-reader - reads what other processes put into a shard's mailbox, or into its outcomes.
 *
 * Plain reads after a cursor: the cursor moves in the commit that executes the entries, so each is executed once and
 * a new owner goes on where the last confirmed commit stopped.
 */
import type { Inbox, InboxEntry, Store } from './store.ts'

const READ_MAX = 64

export class MailboxReader {
  private readonly shard: number
  private readonly of: Inbox
  private readonly store: Store
  private at = ''
  private reading = false
  private rung = false

  constructor(shard: number, of: Inbox, store: Store) {
    this.shard = shard
    this.of = of
    this.store = store
  }

  /** Begins after `cursor`. */
  start(cursor: string): void {
    this.at = cursor
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

  /** The next entries in stream order; null when the store did not answer: then it wants to be read again, later. */
  async read(): Promise<readonly InboxEntry[] | null> {
    this.rung = false
    this.reading = true
    const entries = await this.store.entries({ shard: this.shard, of: this.of, after: this.at, count: READ_MAX })
    this.reading = false
    if (entries === null || entries.length === READ_MAX) this.rung = true
    const last = entries?.[entries.length - 1]
    if (last !== undefined) this.at = last.id
    return entries
  }
}

/** The entry id after one. */
export function after(entryId: string): string {
  const dash = entryId.indexOf('-')
  return `${entryId.slice(0, dash)}-${BigInt(entryId.slice(dash + 1)) + 1n}`
}
