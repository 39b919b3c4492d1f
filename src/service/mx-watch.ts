/**
 * mx-watch - looks whether any process of the cluster takes bounces and complaints, and says so where none does
 *
 * A process that starts gives the others time to come, and one that is replaced leaves a gap: neither is told.
 */

import type { ClusterLog } from '../../cluster/cluster-log.ts'
import { NO_MX_LISTENER, NO_MX_LISTENER_FIX } from '../health/mx-listener.ts'

const LOOK_MS = 5_000
/** `npm run cluster` has all of its lines up by then, and a process that was killed has a successor. */
const ABSENT_MS = 10_000

export interface MxWatchDeps {
  /** What the living processes run. Rejects where the store does not say. */
  readonly roles: () => Promise<ReadonlySet<string>>
  readonly log: Pick<ClusterLog, 'info' | 'warn'>
  /** Never goes back. */
  readonly nowMs: () => number
}

/** Looks now and by the clock; out: what ends it. */
export function watchMx(deps: MxWatchDeps): () => void {
  const look = makeMxLook(deps)
  const timer = setInterval(() => void look(), LOOK_MS).unref()
  void look()
  return () => clearInterval(timer)
}

/** One look; what it finds is told when it has stood for long enough, and once. */
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
