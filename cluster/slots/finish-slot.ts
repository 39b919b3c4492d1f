/**
 * finish-slot - a resharding in the manner of Redis that was cut off is ended, so that one node has the slot and all of
 * its keys (Redis Cluster specification, "resharding")
 *
 * `redis-cli --cluster reshard`, and earlier builds of `cluster move`, let a key go at its source as soon as the target
 * has it; a slot that they left half way has the mark MIGRATING at its source. A key that is still there is the newer
 * one. The marks keep everybody from what is at neither side, so nothing need be fenced.
 */
import { keysOf, migrate } from './copy-keys.ts'
import type { SlotMove } from './move-slot.ts'

/** Ends it where the source has the mark; does nothing else. Out: whether there was one. Throws Error, a sentence. */
export async function finishSlot(move: Omit<SlotMove, 'target'>): Promise<boolean> {
  const { slot, source, primaries } = move
  const [, id] = new RegExp(`\\[${slot}->-(\\w+)\\]`).exec(String(await source.client.call('CLUSTER', 'NODES'))) ?? []
  if (id === undefined) return false
  const target = primaries.find((end) => end.id === id)
  if (target === undefined) throw new Error(`A node that slot ${slot} is on its way to does not answer: start it first`)
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id)
  for (const name of await keysOf(source.client, slot)) {
    move.mustHold()
    await migrate({ ...move, target }, ['REPLACE'], [name])
  }
  for (const { client } of [target, ...primaries.filter((end) => end !== target)])
    await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id)
  return true
}
