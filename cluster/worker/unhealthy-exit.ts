/**
 * unhealthy-exit - checks whether a worker can serve; if not, it shows that, gives its shards away, and ends its
 * process the third time.
 */
import type { ClusterLog } from '../cluster-log.ts'
import type { Lag } from '../store.ts'
import type { AskResult } from '../work.ts'
import { RecentAsks } from './recent-asks.ts'
import { LAG_MS_MAX, SelfCheck } from './self-check.ts'
import { StuckCount } from './stuck-count.ts'

/** The third illness within this long ends the process. */
const ILL_WITHIN_MS = 600_000

export interface UnhealthyExitDeps {
  readonly log: ClusterLog
  /** For how long each connection has owed an answer. */
  lags(): readonly Lag[]
  /** Publishes the state of this worker to others. */
  tell(): void
  /** Gives its shards to others that can serve them. */
  giveAway(): void
  /** The process had better end. */
  hopeless(): void
}

export class UnhealthyExit {
  private readonly deps: UnhealthyExitDeps
  private readonly selfCheck = new SelfCheck()
  private readonly recent = new RecentAsks()
  private readonly illnesses = new StuckCount({ withinMs: ILL_WITHIN_MS })

  constructor(deps: UnhealthyExitDeps) {
    this.deps = deps
  }

  /** Cut off from a part of the store. */
  get ails(): boolean {
    return this.selfCheck.ails
  }

  /** Whether new asks would be answered: every connection answers, and some of the last asks were answered. */
  isOfUse(atMs: number): boolean {
    return !this.recent.areRefused(atMs) && this.deps.lags().every(({ ms }) => ms <= LAG_MS_MAX)
  }

  /** An ask of this process has ended; `isMine` if its shard is held here. */
  asked({ kind }: AskResult, { isMine, atMs, askedAtMs }: { isMine: boolean; atMs: number; askedAtMs: number }): void {
    const isAnswered = kind === 'answer' || kind === 'fault'
    this.recent.note(kind === 'unavailable', atMs)
    if (isMine) this.selfCheck.asked(isAnswered, { atMs, tookMs: atMs - askedAtMs })
  }

  /**
   * Checks again. Takes the time of the last answered heartbeat. A change between healthy and unhealthy is published.
   */
  look(atMs: number, beatAtMs: number): void {
    const { log, lags, tell, giveAway, hopeless } = this.deps
    if (!this.selfCheck.look(lags(), { atMs, beatAtMs })) return
    tell()
    if (!this.ails) {
      log.info({}, 'This process can serve its shards again')
      return
    }
    const connections = lags().flatMap(({ connection, ms }) => (ms > LAG_MS_MAX ? [connection] : []))
    log.warn({ connections }, 'This process cannot reach a part of the store: other processes take its shards')
    giveAway()
    if (connections.length === 0 || !this.illnesses.add(atMs)) return
    log.error({ connections }, 'This process could not reach a part of the store three times')
    hopeless()
  }
}
