/**
 * inbox - the arrivals of a shard from other processes: commands, outcomes, and the claims of dead workers.
 *
 * Guarantees that the claims of a dead worker are freed only after every outcome that was there when its death was
 * detected has been processed, so that finished work is not performed again; a free looks at the claim's row once more.
 */

import type { CommandType } from '../behaviour.ts'
import { sortableEntryId } from '../id.ts'
import type { FreedItem } from '../items/dead-claims.ts'
import { deadClaims } from '../items/dead-claims.ts'
import { claimsKey } from '../keyspace.ts'
import { outcomeWork, parcelWorks } from '../mailbox/arrivals.ts'
import { MailboxReader, type ReadEntry } from '../mailbox/reader.ts'
import type { Bell, Cursors, Meta } from '../store.ts'
import type { Work } from '../work.ts'
import type { ShardWorld } from './world.ts'

interface InboxDeps {
  readonly shard: number
  /** Whether the shard takes anything now. */
  readonly isOpen: () => boolean
  /** Whether a batch, or the queue before it, is full; more is read when that has been sent. */
  readonly hasEnough: () => boolean
  /** Whether the queue accepts work that needs no read. */
  readonly hasRoom: () => boolean
  readonly take: (works: readonly Work[]) => void
  readonly outcomeType: (lane: string) => CommandType | undefined
  readonly free: (items: readonly FreedItem[]) => Work | null
}

export class ShardInbox {
  private readonly world: ShardWorld
  private readonly deps: InboxDeps
  private readonly mailbox: MailboxReader
  private readonly outcomes: MailboxReader
  private claimsDue = false
  /** The last outcome present at the start; null while not all are read. */
  private lastThere: string | null = null
  /** The last outcome that a confirmed commit has taken up. */
  private taken = ''
  private isCaughtUp = false

  constructor(world: ShardWorld, deps: InboxDeps) {
    this.world = world
    this.deps = deps
    this.mailbox = new MailboxReader(deps.shard, 'mailbox', world.store)
    this.outcomes = new MailboxReader(deps.shard, 'outcomes', world.store)
  }

  /** Continues after the last commit. */
  start({ cursor, outcomesCursor }: Meta): void {
    this.mailbox.start(cursor)
    this.outcomes.start(outcomesCursor)
    this.taken = this.outcomes.cursor
    this.claimsDue = true
  }

  /** Whether every outcome present at the start is processed: only then is anything claimed. */
  get caughtUp(): boolean {
    return this.isCaughtUp
  }

  /** A commit is confirmed, with this cursor of outcomes ('' for the one before). */
  confirmed(outcomesCursor: string): void {
    if (outcomesCursor === '') return
    this.taken = outcomesCursor
    this.compare()
  }

  get cursors(): Cursors {
    return { shard: this.deps.shard, mailbox: this.mailbox.cursor, outcomes: this.outcomes.cursor }
  }

  /** Something came: taken at once if it is the next entry of the mailbox and came along, read in its turn if not. */
  bell({ entry, before }: Bell): void {
    const isNext = entry !== null && this.deps.isOpen() && this.deps.hasRoom() && this.mailbox.take(entry.id, before)
    if (isNext) this.deps.take(this.worksOf({ entry, done: 0 }))
    else {
      this.mailbox.ring()
      if (entry === null) this.outcomes.ring()
      this.read()
    }
  }

  /** Something may have come. */
  ring(): void {
    this.mailbox.ring()
    this.outcomes.ring()
    this.read()
  }

  /** A worker is dead, and its claims are read, after the outcomes that it left. */
  workerDied(): void {
    this.claimsDue = true
    this.outcomes.ring()
    this.read()
  }

  /** Reads after a bell. Called a few times a second as well. */
  read(): void {
    if (!this.deps.isOpen()) return
    if (this.outcomes.wants) void this.readOutcomes()
    if (this.mailbox.wants && !this.deps.hasEnough()) void this.readMailbox()
    if (this.claimsDue && this.outcomes.isDry) void this.freeClaims()
  }

  private async readMailbox(): Promise<void> {
    const entries = await this.mailbox.read()
    if (!this.deps.isOpen() || entries === null) return
    if (entries.length > 0) this.deps.take(entries.flatMap((read) => this.worksOf(read)))
    if (entries.length > 0 || this.mailbox.wants) this.read()
  }

  private worksOf({ entry, done }: ReadEntry): Work[] {
    const { commands, clock } = this.world
    return parcelWorks(entry, done, { commands, cameAtMs: clock.monotonicMs() })
  }

  private async readOutcomes(): Promise<void> {
    const entries = await this.outcomes.read()
    // An unreachable store fails at once, so a retry here would block the event loop.
    if (!this.deps.isOpen() || entries === null) return
    if (this.outcomes.isDry) this.lastThere ??= this.outcomes.cursor
    this.compare()
    const { outcomeType: typeOf } = this.deps
    const cameAtMs = this.world.clock.monotonicMs()
    if (entries.length > 0) this.deps.take(entries.map(({ entry }) => outcomeWork(entry, { typeOf, cameAtMs })))
    if (entries.length > 0 || this.claimsDue) this.read()
  }

  private compare(): void {
    const { lastThere, taken } = this
    this.isCaughtUp ||= lastThere !== null && sortableEntryId(taken) >= sortableEntryId(lastThere)
  }

  private async freeClaims(): Promise<void> {
    this.claimsDue = false
    const values = await this.world.store.read(this.deps.shard, [{ read: 'hash', key: claimsKey(this.deps.shard) }])
    if (values === null) this.claimsDue = true
    if (values === null || !this.deps.isOpen()) return
    const works: Work[] = []
    for (const items of deadClaims(values[0] as ReadonlyMap<string, string>, this.world)) {
      const work = this.deps.free(items)
      if (work !== null) works.push(work)
    }
    if (works.length > 0) this.deps.take(works)
  }
}
