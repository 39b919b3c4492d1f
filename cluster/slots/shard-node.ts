/** shard-node - the part of one primary in the store over a Redis Cluster */
import type { Redis } from 'ioredis'
import type { FactValue, ViewFact } from '../behaviour.ts'
import type { Primary } from '../primaries.ts'
import type { Heard } from '../redis/subscriber.ts'
import type { Lag, Listening, Receivers, Store } from '../store.ts'

/** A stream of replies that commits publish for a worker. */
export interface ToldStream {
  /** Receives replies from now on, earlier ones too; a second call does nothing. */
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
  /** Opens the connections for asks to other workers. */
  prepareToAsk(worker: string): void
  /** Receives the replies for a worker, once begun; `key` names the stream. */
  tell(worker: string, key: () => string, heard: (text: string) => void): ToldStream
  /** Subscribes to a topic; resolves with a function that ends it. */
  hear(topic: string, heard: Heard): Promise<() => void>
}

/** One primary. */
export interface ShardNode extends Primary {
  /** As an address of a store. */
  readonly address: string
  readonly store: NodeStore
  /** Whether its clock is known and commits can be sent. */
  readonly isUp: boolean
  /** It has been silent for so long that other nodes are asked whether it still is a primary. */
  readonly isSilent: boolean
  /** Whether answers wait for replicas. */
  readonly isGated: boolean
  /** Resolves when the required number of replicas have everything written here so far. False if unknown. */
  kept(): Promise<boolean>
  /** Receives these channels of its shards, and no others. */
  hear(channels: ReadonlySet<string>): void
  /** Receives the starts and ends of workers, and released shards, from here. */
  listen(worker: string, ears: Receivers): Listening
  /** The text of `CLUSTER NODES` here; null means no answer. */
  nodes(): Promise<string | null>
  /** It no longer holds anything: commands in flight there end with an unknown outcome. */
  depose(): void
  close(): void
}

/** State that a node reports about itself. */
export interface NodeEvents {
  /** It can be asked, at first and after each reconnect. */
  onUp(): void
  onDown(): void
  onRefused(error: Error): void
  /** A message published in a subscribed slot. */
  heard(channel: string, message: Buffer): void
  /** A channel is subscribed from now on: earlier messages were lost. */
  held(channel: string): void
  /** A command got a redirection. */
  moved(): void
}
