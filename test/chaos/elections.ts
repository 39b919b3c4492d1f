/**
 * elections - the course of a Redis Cluster from the end of a primary to that of the election, from the logs of its
 * nodes
 */
import type { TestCluster } from '../support/store/redis-cluster.ts'

/** Milliseconds since the primary ended; null if no node logged it. */
export interface Election {
  /** The others have agreed that it has failed. */
  readonly failedMs: number | null
  /** A replica has its place. */
  readonly wonMs: number | null
  /** Elections that were begun. A lost one is repeated after four times `cluster-node-timeout`. */
  readonly tries: number
  /** The nodes' log lines meanwhile about elections and replication. */
  readonly lines: readonly string[]
}

/** In: since when, ms since the epoch. */
export function electionSince({ nodes }: TestCluster, sinceMs: number): Election {
  const lines = nodes
    .flatMap(({ log, port }) =>
      log()
        .split('\n')
        .flatMap((line) => lineOf(line, port)),
    )
    .filter(({ atMs }) => atMs >= sinceMs)
    .sort((a, b) => a.atMs - b.atMs)
  const first = (said: RegExp): number | null => {
    const line = lines.find(({ text }) => said.test(text))
    return line === undefined ? null : Math.round(line.atMs - sinceMs)
  }
  return {
    failedMs: first(/as failing|FAIL message received/),
    wonMs: first(/election won|Failover election won/),
    tries: lines.filter(({ text }) => /Starting a failover election/.test(text)).length,
    lines: lines.flatMap(({ atMs, port, text }) => (OF_INTEREST.test(text) ? `${atMs - sinceMs} ${port} ${text}` : [])),
  }
}

/** `<pid>:<role> <day> <month> <year> <time> <level> <text>`. */
function lineOf(line: string, port: number): { atMs: number; port: number; text: string } | [] {
  const [, time, text = ''] = /^\d+:\w (\d+ \w+ \d+ [\d:.]+) . (.*)$/.exec(line) ?? []
  return time === undefined ? [] : { atMs: Date.parse(time), port, text }
}

const OF_INTEREST = /election|[Ff]ailover|failing|Reconfiguring|resync|votes|epoch|AOF|fsync/
