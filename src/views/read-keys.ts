/**
 * read-keys - one command over keys of many shards, for what is counted over all of them: what is asked, what is
 * answered
 *
 * For all that concerns one shard there is `Reader`: its facts are one atomic step. Here each key is read by itself.
 */

/** Commands, and what each answers. `hgetall` answers an empty record where there is no hash. */
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

/** One read: a key of a shard, and what the command wants beside it. */
export interface KeyRead {
  readonly shard: number
  readonly key: string
  readonly args?: readonly (string | number)[]
}

/** What the command answers for each read, in their order; null when a store did not answer, or refused one of them. */
export type ReadKeys = <Command extends keyof KeyAnswers>(
  command: Command,
  reads: readonly KeyRead[],
) => Promise<readonly KeyAnswers[Command][] | null>
