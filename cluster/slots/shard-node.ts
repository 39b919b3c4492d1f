/** shard-node - what the store over a Redis Cluster asks of one of its primaries */
import type { Redis } from 'ioredis'
import type { FactValue, ViewFact } from '../behaviour.ts'
import type { Primary } from '../primaries.ts'
import type { Heard } from '../redis/hear.ts'
import type { Ears, Lag, Listening, Store } from '../store.ts'

/** A stream of what commits notify a worker. */
export interface ToldStream {
  /** Receives from now on what was reported, also what was told before; a second call does nothing. */
  begin(): void
  close(): void
}

/** The store that one primary is. */
export interface NodeStore extends Store {
  read(shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[] | null>
  /** For how long each connection that is in use has owed an answer. */
  readonly lags: readonly Lag[]
  readonly identity: { readonly clientId: number; readonly runId: string }
  /** A client for commands that are not the runtime's. */
  readonly views: Redis
  /** Opens the connections over which others are asked. */
  prepareToAsk(worker: string): void
  /** Receives what a worker is reported, once it has begun; `key` names the stream. */
  tell(worker: string, key: () => string, heard: (text: string) => void): ToldStream
  /** Receives what is stated about a topic; resolves with a function that ends it. */
  hear(topic: string, heard: Heard): Promise<() => void>
}

/** One primary. */
export interface ShardNode extends Primary {
  /** As an address of a store. */
  readonly address: string
  readonly store: NodeStore
  /** Whether its clock is known and commits can be sent. */
  readonly isUp: boolean
  /** It has owed an answer for so long that others are to say whether it still is what it was. */
  readonly isSilent: boolean
  /** Whether answers wait for replicas. */
  readonly isGated: boolean
  /** Resolves when as many replicas as are wanted have what is written here now. False means in doubt. */
  kept(): Promise<boolean>
  /** Receives these channels of its shards, and no others. */
  hear(channels: ReadonlySet<string>): void
  /** Receives who comes, goes, or gives a shard back, from here. */
  listen(worker: string, ears: Ears): Listening
  /** What `CLUSTER NODES` says here; null means no answer. */
  nodes(): Promise<string | null>
  /** It holds nothing any more: work in progress there has ended, for whoever waits, in doubt. */
  depose(): void
  close(): void
}

/** What a node reports itself. */
export interface NodeEvents {
  /** It can be asked, at first and after each reconnect. */
  onUp(): void
  onDown(): void
  onRefused(error: Error): void
  /** The published data in a slot that is listened to. */
  heard(channel: string, message: Buffer): void
  /** A channel responds now on: what was published before was not. */
  held(channel: string): void
  /** A command was told that its slot is elsewhere. */
  moved(): void
}
