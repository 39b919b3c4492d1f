/** world - the parts shared by all shards of a worker, and the events that they report. */
import type { CommandType, LaneType, Note, TimerBody } from '../behaviour.ts'
import type { Clock } from '../clock.ts'
import type { ShardLog } from '../cluster-log.ts'
import type { FieldBudget } from '../facts/field-cache.ts'
import type { EntityTable } from '../facts/memory.ts'
import type { Fence } from '../fence.ts'
import type { ClaimRules } from '../items/claim.ts'
import type { Claim, LaneRunner } from '../items/lane-runner.ts'
import type { Store } from '../store.ts'
import type { Work } from '../work.ts'

/** State shared by all shards of a worker. */
export interface ShardWorld {
  readonly store: Store
  readonly clock: Clock
  readonly entities: EntityTable
  readonly timers: Readonly<Record<string, CommandType<TimerBody>>>
  readonly commands: ReadonlyMap<string, CommandType>
  readonly lanes: readonly LaneType[]
  readonly runner: LaneRunner
  readonly fence: Fence
  readonly worker: string
  readonly random: () => number
  /** Fields of hashes that the shards may cache together. */
  readonly fieldBudget: FieldBudget
  readonly rules?: ClaimRules
  /** Whether a claim's worker is certainly dead, or has been silent for so long that its claims may be freed. */
  isGone(worker: string): boolean
  /** The store answered something. */
  answered(): void
  /** Another owner has the shard: unfinished asks go to it. */
  forward(shard: number, works: readonly Work[]): void
  /** An attempt ended, and its outcome goes to the current owner of the shard. */
  reported(shard: number, claim: Claim, outcome: unknown): void
  gone(shard: number): void
  /** A verdict reported the store's time `nowMs`; its commit was sent first at `sentAtMs` (monotonic). */
  resync(nowMs: number, sentAtMs: number): void
  readonly log: ShardLog
  /** Receives the notifications of turns to the operator, once their commit is confirmed. */
  noted?(note: Note): void
}
