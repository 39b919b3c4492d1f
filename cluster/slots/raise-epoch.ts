/**
 * raise-epoch - makes the claim of a node to its slots newer than any undetected one (Redis Cluster specification,
 * "configuration epoch")
 *
 * A target that was lost right after it had been given a slot has claimed it with the epoch after the newest that it
 * knew, and may come back with that. The holder of the slot must then have an epoch that is newer by two.
 */
import { pauseBy, type Waits } from '../clock.ts'
import type { MoveEnd } from './copy-keys.ts'
import { parseNodes } from './slot-map.ts'

/** Above the newest known epoch by one for that of a lost node, and one more. */
const NEWER_BY = 2
/** Each round makes the node's own newer by one at least. */
const ROUNDS_MAX = 4
/** Nodes exchange an epoch within a second. */
const HEARD_MS_MAX = 10_000
const HEARD_STEP_MS = 20

/**
 * Raises the epoch of a node, and waits until all answering nodes and its replicas know it, because a replica that
 * does not know the epoch of its primary is not elected. Takes the primaries that answer, including the node; and the
 * time in which every node learns of every other (`heardMs`). Throws Error, a sentence.
 */
export async function raiseEpoch(
  node: MoveEnd,
  primaries: readonly MoveEnd[],
  { heardMs, clock }: { readonly heardMs: number; readonly clock: Waits },
): Promise<void> {
  const wanted = Math.max(...(await Promise.all(primaries.map(newestAt)))) + NEWER_BY
  const other = primaries.find((end) => end !== node)
  for (let round = 0; round < ROUNDS_MAX && (await readEpoch(node, node)) < wanted; round += 1)
    // One that has the newest keeps it: then another one gets one that is newer still.
    for (const end of other === undefined ? [node] : [other, node]) {
      await end.client.call('CLUSTER', 'BUMPEPOCH')
      const newest = Math.max(...(await Promise.all(primaries.map(newestAt))))
      await heard(primaries, clock, async (one) => (await newestAt(one)) >= newest)
    }
  await heard(primaries, clock, async (end) => (await readEpoch(node, end)) >= wanted)
  await pauseBy(clock, heardMs + HEARD_STEP_MS)
}

/** Waits until something is so at every node. */
async function heard(
  primaries: readonly MoveEnd[],
  clock: Waits,
  isSoAt: (end: MoveEnd) => Promise<boolean>,
): Promise<void> {
  const endMs = clock.monotonicMs() + HEARD_MS_MAX
  for (;;) {
    const answers = await Promise.all(primaries.map(isSoAt))
    const deaf = primaries[answers.indexOf(false)]
    if (deaf === undefined) return
    if (clock.monotonicMs() > endMs) throw new Error(`${deaf.name} cannot reach the other nodes: run the command again`)
    await pauseBy(clock, HEARD_STEP_MS)
  }
}

/** The newest epoch that a node knows. */
async function newestAt({ client }: MoveEnd): Promise<number> {
  return Number(/cluster_current_epoch:(\d+)/.exec(String(await client.call('CLUSTER', 'INFO')))?.[1] ?? 0)
}

/** The epoch of a node as another one knows it. */
async function readEpoch({ id }: MoveEnd, { client, name }: MoveEnd): Promise<number> {
  const lines = parseNodes(String(await client.call('CLUSTER', 'NODES')), name)
  return lines.find((line) => line.id === id)?.epoch ?? 0
}
