/** fence - the fence of this process (`cluster/fence.ts`), with a clock shared by all its threads. */

import { Fence, type FenceCells, makeFenceCells } from '../../cluster/fence.ts'

/** A clock that is the same in every thread of a process and never goes back, in milliseconds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}

/** A fence that holds everything until the first heartbeat is answered; a thread looks at the cells of its process. */
export function openFence(cells: FenceCells = makeFenceCells()): Fence {
  return new Fence(cells, monotonicMs)
}
