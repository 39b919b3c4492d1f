/**
 * shard-verdict - what becomes of a commit's works by the verdict on it.
 *
 * Guarantees: what was not written is decided again, in its order, before what came later; what a fenced owner sent is
 * told by what the next owner found, and nobody is told anything while that is not known.
 */

import { Fault } from '../fault.ts'
import type { Verdict } from '../store.ts'
import { answerWork, type Source, type Work } from '../work.ts'
import type { Plan } from './batch.ts'
import { type InFlight, RETRY_MS, ShardLoop } from './loop.ts'

const FULL_MS = 1_000
/** What the next owner found is looked for so long. */
const FENCED_MS_MAX = 3_000

/** The store refused the command's writes when they were alone in a commit. */
class Refused extends Fault {}

export abstract class ShardVerdicts extends ShardLoop {
  /** Someone else holds the shard: what is open here goes there, `first` before the rest. */
  abstract drop(first?: readonly Work[]): void
  protected abstract confirmed(flight: InFlight): void
  protected abstract discard(plan: Plan): void
  protected abstract halt(reason: string): void
  protected abstract hasMoved(): void
  protected abstract noteLoss(storeSeq: number): void

  protected settle(flight: InFlight, verdict: Verdict): void {
    switch (verdict.kind) {
      case 'ok':
      case 'dup':
        return void this.confirmed(flight)
      case 'fenced':
        return void this.fenced(flight)
      case 'conflict':
        this.noteLoss(verdict.seq)
        if (verdict.seq < flight.commit.seq) return void this.giveUp(flight)
        return void this.halt(`Sequence number ${verdict.seq} is above mine, ${flight.commit.seq}`)
      case 'torn':
        return void this.halt(verdict.reason)
      case 'clock':
      case 'late':
        this.world.resync(verdict.nowMs, flight.sentAtMs)
        return void this.again(flight, flight.plan.works)
      case 'missing':
        return void this.missing(flight, verdict.key)
      case 'badop':
        return void this.halve(flight, verdict.reason)
      case 'refused':
        return void this.refused(flight)
      case 'unsent':
        this.pause(RETRY_MS)
        return void this.again(flight, flight.plan.works)
      case 'lost':
        throw new Fault('A commit in doubt was settled')
    }
  }

  /** Works of a commit that did not happen are decided again, before anything that came later. */
  private again(flight: InFlight, works: readonly Work[]): void {
    this.requeue(flight, works)
    this.advance()
  }

  private requeue(flight: InFlight, works: readonly Work[]): void {
    this.discard(flight.plan)
    this.inFlight = null
    this.laid = []
    for (const work of works) work.needs = 0
    const later = this.next
    this.next = null
    if (later !== null) this.queue.putBack(later.works)
    this.queue.putBack(works)
  }

  /** Content that an ask brought along has expired: that ask is refused, the rest decided again. */
  private missing(flight: InFlight, key: string): void {
    const { works } = flight.plan
    const owners = works.filter(({ source, command }) => isAsk(source) && key.includes(command.cmdId))
    if (owners.length === 0) return void this.halve(flight, 'A key that a command names does not exist')
    for (const work of owners) {
      work.late = true // A command of the mailbox is told so by the commit that passes its entry.
      answerWork(work, { kind: 'unavailable' })
    }
    this.again(
      flight,
      works.filter((work) => work.source === 'mailbox' || !owners.includes(work)),
    )
  }

  /** A commit against the rules is halved until the command is found that ordered it. */
  private halve(flight: InFlight, reason: string): void {
    this.world.log.badop({ shard: this.id, reason })
    const { works } = flight.plan
    const half = works.slice(0, Math.max(1, works.length >> 1))
    if (works.length === 1) {
      if (half[0]!.broken instanceof Refused) return void this.halt(reason)
      half[0]!.broken = new Refused('The store refused what the command ordered', { reason })
    }
    this.requeue(flight, works.slice(half.length))
    for (const work of half) work.needs = 0
    this.begin(half, true)
  }

  /** The store refused before anything ran: asks are told, what finishes or frees is tried again. */
  private refused(flight: InFlight): void {
    const { works } = flight.plan
    for (const work of works) if (work.source === 'local') answerWork(work, { kind: 'unavailable' })
    this.fullUntilMs = this.world.clock.monotonicMs() + FULL_MS
    this.hasMoved() // The store has answered: a shard that is refused is not stuck.
    this.pause(RETRY_MS)
    this.again(
      flight,
      works.filter(({ source }) => source !== 'local'),
    )
  }

  /** The next owner wrote down whether the commit had happened. Without a word of his nobody knows: the asks stay silent. */
  protected async fenced(flight: InFlight, sinceMs = this.world.clock.monotonicMs()): Promise<void> {
    const found = await this.world.store.fenced({ shard: this.id, token: flight.commit.token })
    if (this.inFlight !== flight) return
    if (found === null && this.world.clock.monotonicMs() - sinceMs >= FENCED_MS_MAX) return this.drop()
    if (found === null) {
      this.world.clock.after(RETRY_MS, () => {
        if (this.inFlight === flight) void this.fenced(flight, sinceMs)
      })
      return
    }
    if (found.seq <= flight.commit.seq && found.last !== flight.commit.commitId) return void this.giveUp(flight)
    this.inFlight = null
    this.discard(flight.plan) // Its claims lapse: who took the shard believed this worker dead and has freed them.
    this.finished(flight.plan)
    this.drop()
  }

  /** The commit did not happen and what is remembered here is wrong: whoever opens the shard next decides again. */
  private giveUp(flight: InFlight): void {
    this.inFlight = null
    this.discard(flight.plan)
    this.drop(flight.plan.works)
  }
}

function isAsk(source: Source): boolean {
  return source === 'local' || source === 'mailbox'
}
