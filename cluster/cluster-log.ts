/** cluster-log - the runtime's log for operators. Facts are ids, names and numbers, never the content of a command. */

import { DamagedValue } from './sum.ts'

export interface ClusterLog {
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

/** Events reported by shards. */
export interface ShardLog {
  halted(facts: { shard: number; reason: string }): void
  threw(facts: { shard: number; name: string }, error: unknown): void
  doubt(facts: { shard: number; seq: number }): void
  badop(facts: { shard: number; reason: string }): void
  /**
   * The store has lost `commits` confirmed commits; `sinceMs` is the time of the first one, as far as known.
   */
  lost(facts: { shard: number; commits: number; sinceMs: number | null }): void
  committed(facts: { shard: number; works: number; ms: number }): void
}

/** Counts the events reported by shards. */
interface Counting {
  /** A commit was confirmed after `ms`; it held `works`. */
  committed(ms: number, works: number): void
  /** The store has lost this number of confirmed commits. */
  lost(commits: number): void
  /** Milliseconds since the epoch as people read them. */
  instant(ms: number): string
}

/** Log sentences of the events reported by shards. */
export function makeShardLog(log: ClusterLog, counting: Counting): ShardLog {
  return {
    halted: (facts) => log.error(facts, 'A shard is torn and stays stopped: see `sendwright inspect`'),
    threw: (facts, error) => {
      const isDamaged = error instanceof DamagedValue
      const sentence = isDamaged ? 'A command met a damaged value: see `sendwright doctor --deep`' : 'A behaviour threw'
      log.error({ ...facts, error: nameOfError(error) }, sentence)
    },
    doubt: (facts) => log.warn(facts, 'A commit got no answer and is retried until it gets one'),
    badop: (facts) => log.error(facts, 'The store refused an invalid commit'),
    lost: ({ shard, commits, sinceMs }) => {
      const since = sinceMs === null ? 'unknown' : counting.instant(sinceMs)
      log.error({ shard, commits, since }, 'The store has lost confirmed commits: data accepted since then is lost')
      counting.lost(commits)
    },
    committed: ({ ms, works }) => counting.committed(ms, works),
  }
}

/** An error by its name and sentence. */
export function nameOfError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : 'unknown'
}
