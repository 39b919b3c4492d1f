/**
 * mailbox-reader - takes the commands that other processes put into a shard's mailbox.
 *
 * Plain reads after a cursor: the cursor moves in the commit that executes the entries, so each is executed once and
 * a new owner goes on where the last confirmed commit stopped.
 */
import type { Command, Entry, Fact, FactValue } from './behaviour.ts'
import { mailboxKey, stagedKey } from './keyspace.ts'
import type { Store } from './store.ts'

const READ_MAX = 64

/** A command as it lay in the mailbox; `body` undefined: it expired. */
export interface MailboxCommand {
  readonly entryId: string
  readonly command: Command
  readonly deadlineMs: number
  readonly readable: boolean
}

export class MailboxReader {
  private readonly shard: number
  private readonly store: Store
  private readAfter = ''
  private reading = false
  private rung = false

  constructor(shard: number, store: Store) {
    this.shard = shard
    this.store = store
  }

  /** Begins after `cursor`. */
  start(cursor: string): void {
    this.readAfter = cursor
    this.rung = true
  }

  /** Something may have come. */
  ring(): void {
    this.rung = true
  }

  get wants(): boolean {
    return this.rung && !this.reading
  }

  /** The next commands in stream order; none when the store did not answer (it rings again). */
  async read(): Promise<readonly MailboxCommand[]> {
    this.rung = false
    this.reading = true
    const from = this.readAfter === '' ? '-' : after(this.readAfter)
    const fact: Fact = { read: 'range', key: mailboxKey(this.shard), from, to: '+', count: READ_MAX }
    const values = await this.store.read(this.shard, [fact])
    const entries = (values?.[0] ?? []) as readonly Entry[]
    const bodies =
      entries.length === 0
        ? []
        : await this.store.read(
            this.shard,
            entries.map((entry) => this.bodyOf(entry)),
          )
    this.reading = false
    if (values === null || bodies === null || entries.length === READ_MAX) this.rung = true
    if (bodies === null || entries.length === 0) return []
    this.readAfter = entries[entries.length - 1]!.id
    return entries.map((entry, index) => commandOf(entry, bodies[index] ?? null))
  }

  private bodyOf(entry: Entry): Fact {
    return { read: 'value', key: stagedKey(this.shard, fieldOf(entry, 'cmd')) }
  }
}

function commandOf(entry: Entry, body: FactValue): MailboxCommand {
  const command = {
    name: fieldOf(entry, 'name'),
    cmdId: fieldOf(entry, 'cmd'),
    body: typeof body === 'string' ? JSON.parse(body) : null,
  }
  const deadlineMs = Number(fieldOf(entry, 'deadline'))
  return { entryId: entry.id, command, deadlineMs, readable: typeof body === 'string' }
}

function fieldOf({ fields }: Entry, name: string): string {
  for (let i = 0; i < fields.length; i += 2) if (fields[i] === name) return fields[i + 1] ?? ''
  return ''
}

/** The entry id after one. */
export function after(entryId: string): string {
  const dash = entryId.indexOf('-')
  return `${entryId.slice(0, dash)}-${BigInt(entryId.slice(dash + 1)) + 1n}`
}
