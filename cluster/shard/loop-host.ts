/** loop-host - the interface between the loop of a shard and its holder */
import type { Meta } from '../store.ts'
import type { Work } from '../work.ts'

/** Calls of the loop to its shard. */
export interface LoopHost {
  /** Whether anything is decided. */
  readonly isRunning: () => boolean
  /** Whether the shard is being released, after which nothing more is read or claimed. */
  readonly isStopping: () => boolean
  /** Nothing waits and nothing is under way. */
  readonly idle: () => void
  /** The store is torn. */
  readonly halted: (reason: string) => void
  /** Another owner has the shard, or its cached state is wrong; `first` must be decided again, before the rest. */
  readonly lost: (first: readonly Work[]) => void
}

/** The initial state of a shard: its row, the lower bounds of its lanes, and its valid claims. */
export interface LoopStart {
  readonly meta: Meta
  readonly lanes: readonly (readonly [lane: string, atMs: number])[]
  readonly claims: ReadonlyMap<string, string>
}

/** Works that are let go. */
export interface Drained {
  /** Work of a commit that was sent and has no verdict. */
  readonly inDoubt: readonly Work[]
  readonly rest: readonly Work[]
}
