/** cluster-log - what an operator reads of the runtime. Facts are ids, names and numbers, never what a command says. */

export interface ClusterLog {
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

/** What shards tell. */
export interface ShardLog {
  halted(facts: { shard: number; reason: string }): void
  threw(facts: { shard: number; name: string }, error: unknown): void
  doubt(facts: { shard: number; seq: number }): void
  badop(facts: { shard: number; reason: string }): void
  committed(facts: { shard: number; works: number; ms: number }): void
}

/** What shards tell, as sentences; `committed` hears of each confirmed commit: ms and works. */
export function makeShardLog(log: ClusterLog, committed: (ms: number, works: number) => void): ShardLog {
  return {
    halted: (facts) => log.error(facts, 'A shard is torn and stays stopped: see `sendwright inspect`'),
    threw: (facts, error) => log.error({ ...facts, error: nameOfError(error) }, 'A behaviour threw'),
    doubt: (facts) => log.warn(facts, 'A commit got no answer and is sent again'),
    badop: (facts) => log.error(facts, 'The store refused a commit as against the rules'),
    committed: ({ ms, works }) => committed(ms, works),
  }
}

/** An error by its name and sentence. */
export function nameOfError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : 'unknown'
}
