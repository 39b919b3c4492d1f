/**
 * lane-runner - the effects of a process that are under way.
 *
 * Guarantees: nothing is performed before its claim is confirmed (`start` is called by the shard when its commit is);
 * no item is performed twice at once in this process; the room of a lane counts staged items as well; an attempt whose
 * pass is shut is cut, unless it only waits for its final answer.
 */
import type { LaneType } from '../behaviour.ts'
import { assert } from '../fault.ts'
import { Fence, makeFenceCells, type Pass } from '../fence.ts'

/** A claim that a commit makes. */
export interface Claim {
  readonly lane: string
  readonly item: string
  readonly attempt: number
  readonly job: unknown
  /** The probable next items of a serial lane. */
  readonly following?: string | null
}

interface UnderWay {
  readonly pass: Pass
  readonly abort: AbortController
  /** Its remaining time when its process stops, from the beginning of the stop. */
  readonly stopMs: number
}

/** The worker's claim, and the receiver of its outcome. */
export interface Started {
  readonly shard: number
  report(claim: Claim, outcome: unknown): void
}

export interface LaneRunnerDeps {
  /** Called if `perform` threw, after which the claim lapses by itself. */
  failed(claim: Claim, error: unknown): void
  /** By default one that nothing shuts. */
  readonly fence?: Fence
}

/** Reason of a signal that cuts attempts without a claim, except those that only wait for the final answer. */
export const LOST_CLAIM = 'the claim was lost'

/**
 * Thrown by a `perform` that could not begin, because the store is silent or the claim was lost. It is not a fault.
 */
export class NotPerformed extends Error {
  override readonly name = 'NotPerformed'
}

export class LaneRunner {
  private readonly types: ReadonlyMap<string, LaneType>
  private readonly underWay = new Map<string, UnderWay>()
  private readonly staged = new Map<string, number>()
  private readonly failed: LaneRunnerDeps['failed']
  private readonly fence: Fence
  private stopping = false

  constructor(lanes: readonly LaneType[], { failed, fence = new Fence(makeFenceCells(), () => 1) }: LaneRunnerDeps) {
    this.types = new Map(lanes.map((lane) => [lane.prefix, lane]))
    this.failed = failed
    this.fence = fence
  }

  /** The family of a lane; undefined for `timers` and unknown ones. */
  typeOf(lane: string): LaneType | undefined {
    return this.types.get(laneFamily(lane))
  }

  /** Free performers of a lane. There are none while heartbeats have lapsed: a claim made then is lost to others. */
  room(lane: string): number {
    if (this.stopping || this.fence.hasLapsed()) return 0
    return (this.typeOf(lane)?.room(lane) ?? 0) - (this.staged.get(lane) ?? 0)
  }

  reserve(lane: string): void {
    this.staged.set(lane, (this.staged.get(lane) ?? 0) + 1)
  }

  release(lane: string): void {
    const left = (this.staged.get(lane) ?? 0) - 1
    assert(left >= 0, 'Release of a lane that was not reserved', { lane })
    if (left === 0) this.staged.delete(lane)
    else this.staged.set(lane, left)
  }

  performing(item: string): boolean {
    return this.underWay.has(item)
  }

  get size(): number {
    return this.underWay.size
  }

  /** Performs a confirmed claim and reports its outcome, before it returns if the effect does not wait. */
  start(claim: Claim, { shard, report }: Started): void {
    const type = this.typeOf(claim.lane)
    assert(type !== undefined, 'Claim in an unknown lane')
    if (this.underWay.has(claim.item)) return
    if (type.performAtOnce !== undefined && this.endsAtOnce(type.performAtOnce, claim, report)) return
    const abort = new AbortController()
    const pass = this.fence.passOf(shard)
    this.underWay.set(claim.item, { pass, abort, stopMs: type.stopMs ?? Number.POSITIVE_INFINITY })
    const perform = async (): Promise<unknown> => type.perform(claim.job, { ...claim, pass, signal: abort.signal })
    perform().then(
      (outcome) => {
        this.underWay.delete(claim.item)
        report(claim, outcome)
      },
      (error: unknown) => {
        this.underWay.delete(claim.item)
        this.failed(claim, error)
      },
    )
  }

  /** Whether a claim is performed without waiting; its outcome is then reported. */
  private endsAtOnce(
    perform: NonNullable<LaneType['performAtOnce']>,
    claim: Claim,
    report: Started['report'],
  ): boolean {
    let outcome: unknown
    try {
      outcome = perform(claim.job, claim)
    } catch (error) {
      this.failed(claim, error)
      return true
    }
    if (outcome === undefined) return false
    report(claim, outcome)
    return true
  }

  /** Accepts no further work. */
  close(): void {
    this.stopping = true
  }

  /** Cuts attempts that have lost their claim. */
  abortLost(): void {
    for (const { pass, abort } of this.underWay.values()) if (this.fence.look(pass) === 'shut') abort.abort(LOST_CLAIM)
  }

  /**
   * Accepts no further work and cuts all attempts except those that only wait for the final answer, because all claims
   * are lost.
   */
  giveUp(): void {
    this.close()
    this.fence.lostAll()
    this.abortLost()
  }

  /** Cuts attempts that have no time left in a stop that has taken `stoppingMs`. */
  abortLate(stoppingMs: number): void {
    for (const { stopMs, abort } of this.underWay.values()) if (stopMs <= stoppingMs) abort.abort()
  }

  /** Cuts attempts that are still in flight. */
  abortAll(): void {
    for (const { abort } of this.underWay.values()) abort.abort()
  }
}

/** The family of a lane: the part before its slash. */
export function laneFamily(lane: string): string {
  const slash = lane.indexOf('/')
  return slash < 0 ? lane : lane.slice(0, slash)
}
