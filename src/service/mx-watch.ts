/**
 * mx-watch - checks that a process of the cluster receives bounces and complaints, and warns if none does
 *
 * A starting process gives the others time to start, and a replaced one leaves a gap, so neither is reported.
 */

import type { ClusterLog } from '../../cluster/cluster-log.ts'
import { NO_MX_LISTENER, NO_MX_LISTENER_FIX } from '../health/mx-listener.ts'

const LOOK_MS = 5_000
/** All processes of `npm run cluster` are running by then, and a killed process has a successor. */
const ABSENT_MS = 10_000

export interface MxWatchDeps {
  /** Roles of the live processes. Rejects if the store does not answer. */
  readonly roles: () => Promise<ReadonlySet<string>>
  readonly log: Pick<ClusterLog, 'info' | 'warn'>
  /** Never goes back. */
  readonly nowMs: () => number
}

/** Checks now and periodically; returns a function that ends it. */
export function watchMx(deps: MxWatchDeps): () => void {
  const look = makeMxLook(deps)
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  void look()
  return () => clearInterval(timer)
}

/** One check; its finding is reported once, after it has lasted long enough. */
export function makeMxLook({ roles, log, nowMs }: MxWatchDeps): () => Promise<void> {
  let absentSinceMs: number | null = null
  let isTold = false
  return async () => {
    const found = await roles().catch(() => null)
    if (found === null) return
    if (found.has('mx')) {
      if (isTold) log.info({}, 'Bounces and complaints are received again')
      absentSinceMs = null
      isTold = false
      return
    }
    absentSinceMs ??= nowMs()
    if (isTold || nowMs() - absentSinceMs < ABSENT_MS) return
    isTold = true
    log.warn({}, `${NO_MX_LISTENER}. ${NO_MX_LISTENER_FIX}`)
  }
}
