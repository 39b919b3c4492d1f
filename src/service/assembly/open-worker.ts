/** open-worker - the worker of a process: all behaviours, and the lanes with their performers */

import { SHARDS } from '../../../cluster/id.ts'
import type { WorkerOptions } from '../../../cluster/worker/options.ts'
import { startWorker, type Worker } from '../../../cluster/worker/worker.ts'
import type { Role } from '../../../schemas/config.ts'
import { BEHAVIOURS } from '../../actors/behaviours.ts'
import type { Config } from '../../process/config.ts'
import { isProcessGone, processIdentity } from '../../process/identity.ts'
import { makeOnCommitNote } from '../commit-notes.ts'
import type { Parts } from '../parts.ts'
import { servedUrlsOf } from '../served-urls.ts'
import { type LaneChanges, openLanes } from './open-lanes.ts'

/** The effective roles of a process, which receives no mail without its port. */
function rolesRun({ roles, mxPort }: Config): readonly Role[] {
  return roles.filter((role) => role !== 'mx' || mxPort !== 0)
}

/** Changes of a worker for tests. */
export interface WorkerChanges extends LaneChanges {
  /** Makes the shards; crash tests stop them at a named step. */
  readonly makeShard?: WorkerOptions['makeShard']
}

/** Starts the worker: behaviours, and lanes with their performers. */
export async function openWorker(parts: Parts, changes: WorkerChanges): Promise<Worker> {
  const { config, store, fence, outbound, metrics, log } = parts
  const { makeShard } = changes
  const self = processIdentity()
  const clock = { nowMs: (): number => Date.now() }
  const lanes = openLanes(parts, { clock, worker: () => worker, ...changes })
  const urls = servedUrlsOf(config)
  const worker = await startWorker({
    store,
    fence,
    behaviours: { ...BEHAVIOURS, lanes },
    log,
    shards: SHARDS,
    random: Math.random,
    takesShards: config.roles.includes('actors'),
    identity: () => ({
      ...self,
      ...store.identity,
      roles: rolesRun(config),
      keys: parts.door.record(),
      ...(urls && { urls }),
    }),
    processGone: (record) => isProcessGone(record, self),
    lags: () => store.lags,
    ...(parts.primaries !== null && { primaries: parts.primaries }),
    committed: (ms) => metrics.committed(ms),
    lostCommits: (commits) => metrics.lostCommits(commits),
    noted: makeOnCommitNote({ records: parts.records, metrics, outbound }),
    hopeless: () => parts.end(1),
    ...(makeShard !== undefined && { makeShard }),
  })
  if (!config.roles.includes('actors')) store.prepareToAsk(worker.id)
  parts.whenStoreUp(() => worker.connected())
  clock.nowMs = () => worker.nowMs()
  parts.self.worker = worker.id
  parts.self.nowMs = () => worker.nowMs()
  parts.delivering.count = () => worker.sharers
  return worker
}
