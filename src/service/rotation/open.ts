/** open - the lane of rotations, over the parts of a process */

import type { LaneType } from '../../../cluster/behaviour.ts'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import type { Worker } from '../../../cluster/worker/worker.ts'
import type { Log } from '../../process/log.ts'
import { readLivingRecords } from '../../store/condition.ts'
import type { Nodes } from '../../store/nodes.ts'
import type { OpenStore } from '../../store/open-store.ts'
import { makeRotationLane } from './lane.ts'
import { SETTLING_MS } from './steps.ts'

/** Parts of a process that a rotation needs. */
export interface RotationParts {
  readonly nodes: Nodes
  readonly door: OpenStore['door']
  readonly rewrites: OpenStore['rewrites']
  readonly log: Log
}

/** The lane. Takes the worker, once there is one; and in place of the time that commands may take, that of a test. */
export function openRotation(
  { nodes, door, rewrites, log }: RotationParts,
  worker: () => Worker,
  settlingMs: number = SETTLING_MS,
): LaneType {
  return makeRotationLane({
    nodes,
    door,
    ring: door.ring,
    file: rewrites,
    ask: (shard, command) => worker().ask(shard, command),
    newCmdId: () => newCmdId(worker().nowMs(), Math.random),
    nowMs: () => worker().nowMs(),
    records: () => readLivingRecords(nodes, worker().livingWorkers),
    settlingMs,
    log,
  })
}
