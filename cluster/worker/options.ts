/** options - the parts of a worker, and the state that it reports. */
import type { Behaviours, Note } from '../behaviour.ts'
import type { Clock } from '../clock.ts'
import type { ClusterLog } from '../cluster-log.ts'
import type { Fence } from '../fence.ts'
import type { Primaries } from '../primaries.ts'
import type { Shard } from '../shard/shard.ts'
import type { ShardWorld } from '../shard/world.ts'
import type { Lag, Protocol, Store, WorkerRecord } from '../store.ts'

/** The constant part of a worker's record, and the data of its connection. */
export type Identity = Omit<WorkerRecord, 'beats' | 'isLeaving' | 'isComing' | 'takesShards' | 'ails' | 'protocol'>

export interface WorkerOptions {
  readonly store: Store
  readonly behaviours: Behaviours
  readonly log: ClusterLog
  /** Number of shards of the installation. */
  readonly shards: number
  /** If false, the worker holds no shard and sends its asks to other workers. Default true. */
  readonly takesShards?: boolean
  /** A number in [0, 1). */
  readonly random: () => number
  /** This process, for its record; asked at each heartbeat, because connections come and go. */
  readonly identity: () => Identity
  readonly clock?: Clock
  /** Shared with the threads that perform; by default a private one. */
  readonly fence?: Fence
  /** Set if several stores hold the shards; absent for one. */
  readonly primaries?: Primaries
  /** For how long each connection to the store has owed an answer. */
  lags?(): readonly Lag[]
  /** Fields of hashes that the shards may cache together. */
  readonly fieldsMax?: number
  /** Whether the process that a record names is known to be gone (same machine). */
  processGone?(record: WorkerRecord): boolean
  /** How long claims of a silent worker last; a minute. */
  readonly claimsStandMs?: number
  /** Called for each confirmed commit with its duration in ms and its number of works. */
  committed?(ms: number, works: number): void
  /** Called if the store has lost commits that this worker had confirmed, with their number. */
  lostCommits?(commits: number): void
  /** Receives the notifications of turns to the operator, once their commit is confirmed. */
  noted?(note: Note): void
  /** Shards got stuck repeatedly, so the process should end. */
  hopeless?(): void
  /** Replaces the protocol of this release, so that tests can combine two releases. */
  readonly protocol?: Protocol
  /** Makes a shard; tests plant broken ones. */
  makeShard?(id: number, world: ShardWorld): Shard
  /** Parts of the world that a test replaces. */
  readonly world?: Partial<ShardWorld>
}

export interface WorkerStats {
  readonly shards: number
  readonly running: number
  readonly halted: number
  readonly waiting: number
  readonly underWay: number
  readonly commits: number
  /** Asks to other processes that wait. */
  readonly asking: number
}
