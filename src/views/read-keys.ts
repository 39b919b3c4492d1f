/**
 * read-keys - one command over keys of many shards, for totals over all shards
 *
 * `Reader` reads a single shard, and its facts are one atomic step. Here each key is read by itself.
 */

/** Commands and their answers. `hgetall` answers an empty record if the hash does not exist. */
export interface KeyAnswers {
  readonly zcard: number
  readonly zcount: number
  readonly zrange: readonly string[]
  readonly zrangebyscore: readonly string[]
  readonly hget: string | null
  readonly getrange: string
  readonly hkeys: readonly string[]
  /** The next cursor, and fields and values by turns. */
  readonly hscan: readonly [string, readonly string[]]
  readonly hgetall: Readonly<Record<string, string>>
}

/** One read: the shard, the key, and the command's further arguments. */
export interface KeyRead {
  readonly shard: number
  readonly key: string
  readonly args?: readonly (string | number)[]
}

/** The answers for the reads, in their order; null if a store did not answer or refused one. */
export type ReadKeys = <Command extends keyof KeyAnswers>(
  command: Command,
  reads: readonly KeyRead[],
) => Promise<readonly KeyAnswers[Command][] | null>
