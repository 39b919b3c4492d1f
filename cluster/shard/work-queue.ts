/**
 * work-queue - the pending work of a shard, with asks of this process, commands of the mailbox, and the runtime's own
 * work.
 *
 * A batch takes at most half its places for the runtime's own work while asks wait, and local and mailbox commands in
 * turn, each in the order in which they came. Returned work keeps its place.
 */
import type { Work, WorkSource } from '../work.ts'

export interface BatchBounds {
  readonly commandsMax: number
  readonly bytesMax: number
}

export class WorkQueue {
  private own: Work[] = []
  private local: Work[] = []
  private mailbox: Work[] = []

  get asks(): number {
    return this.local.length
  }

  get size(): number {
    return this.own.length + this.local.length + this.mailbox.length
  }

  get mailboxSize(): number {
    return this.mailbox.length
  }

  push(work: Work): void {
    this.listOf(work.source).push(work)
  }

  /** Puts works back at the front, in their order. */
  putBack(works: readonly Work[]): void {
    for (const source of ['claim', 'local', 'mailbox'] as const) {
      const mine = works.filter((work) => sameList(work.source, source))
      if (mine.length > 0) this.listOf(source).unshift(...mine)
    }
  }

  /** Takes the next batch. With `freesOnly`, just work that finishes or frees something. */
  take({ commandsMax, bytesMax }: BatchBounds, freesOnly: boolean): Work[] {
    if (freesOnly) return this.takeFrees(commandsMax)
    const asks = this.local.length + this.mailbox.length
    const batch = this.own.splice(0, asks === 0 ? commandsMax : Math.max(commandsMax >> 1, commandsMax - asks))
    let bytes = 0
    let fromMailbox = false
    let local = 0
    let mailbox = 0
    while (batch.length < commandsMax) {
      const work =
        (fromMailbox ? this.mailbox[mailbox] : this.local[local]) ?? this.local[local] ?? this.mailbox[mailbox]
      if (work === undefined || (bytes > 0 && bytes + work.bytes > bytesMax)) break
      bytes += work.bytes
      batch.push(work)
      if (work.source === 'local') local += 1
      else mailbox += 1
      fromMailbox = !fromMailbox
    }
    this.local.splice(0, local)
    this.mailbox.splice(0, mailbox)
    return batch
  }

  private takeFrees(commandsMax: number): Work[] {
    const taken = this.own.filter(({ type }) => type.frees === true).slice(0, commandsMax)
    if (taken.length > 0) this.own = this.own.filter((work) => !taken.includes(work))
    return taken
  }

  /** Takes out every local ask that `which` holds for. */
  takeAsks(which: (work: Work) => boolean): Work[] {
    if (this.local.length === 0) return []
    const taken = this.local.filter(which)
    if (taken.length > 0) this.local = this.local.filter((work) => !which(work))
    return taken
  }

  /**
   * Drops work that the next owner finds in the store itself, that is all except asks of this process and its own
   * outcomes.
   */
  dropFindable(): void {
    this.mailbox = []
    this.own = this.own.filter(({ source, entryId }) => source === 'outcome' && entryId === '')
  }

  /** Empties the queue and answers its asks. */
  drain(): Work[] {
    const all = [...this.own, ...this.local, ...this.mailbox]
    this.own = []
    this.local = []
    this.mailbox = []
    return all
  }

  private listOf(source: WorkSource): Work[] {
    if (source === 'local') return this.local
    return source === 'mailbox' ? this.mailbox : this.own
  }
}

function sameList(source: WorkSource, list: 'claim' | 'local' | 'mailbox'): boolean {
  if (list === 'claim') return source !== 'local' && source !== 'mailbox'
  return source === list
}
