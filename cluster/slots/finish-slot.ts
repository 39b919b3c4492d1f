/**
 * finish-slot - a resharding in the manner of Redis that was cut off is ended, so that one node has the slot and all of
 * its keys (Redis Cluster specification, "resharding")
 *
 * `redis-cli --cluster reshard`, and earlier builds of `cluster move`, let a key go at its source as soon as the
 * target has it; a slot that they left half way has the mark MIGRATING at its source. A key that the source still has
 * is the newer one. The marks protect keys that are at neither side, so no fence is needed.
 *
 * Moves by Redis itself have a risk: a source that is frozen in the middle of a key, and comes back when another node
 * has its place, can put that key back.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type MoveEnd, readKeys } from './copy-keys.ts'
import type { SlotMove } from './move-slot.ts'

const TRIES_MAX = 5
const TRY_AGAIN_MS = 500

/** A resharding, and how nodes let each other in. */
export interface Resharding extends Pick<SlotMove, 'slot' | 'source' | 'primaries' | 'mustHold'> {
  /** As the nodes want it; '' for none. */
  readonly user: string
  readonly password: string
  /**
   * A target that is silent holds the source up for this long at most, ms: less than `cluster-node-timeout`, or the
   * source is taken for dead in the middle of its move.
   */
  readonly giveMsMax: number
}

/**
 * Completes it if the source has the mark; does nothing else. Returns whether there was one. Throws Error, a sentence.
 */
export async function finishSlot(move: Resharding): Promise<boolean> {
  const { slot, source, primaries } = move
  const [, id] = new RegExp(`\\[${slot}->-(\\w+)\\]`).exec(String(await source.client.call('CLUSTER', 'NODES'))) ?? []
  if (id === undefined) return false
  const target = primaries.find((end) => end.id === id)
  if (target === undefined) throw new Error(`The target of slot ${slot} does not answer: start it first`)
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id)
  for (const name of await readKeys(source.client, slot)) {
    move.mustHold()
    await migrate(move, target, name)
  }
  for (const { client } of [target, ...primaries.filter((end) => end !== target)])
    await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id)
  return true
}

/** Makes the source send a key to the target, in one step of both. */
async function migrate(
  { source, user, password, giveMsMax }: Resharding,
  target: MoveEnd,
  name: Buffer,
): Promise<void> {
  const colon = target.name.lastIndexOf(':')
  const [host, port] = [target.name.slice(0, colon), target.name.slice(colon + 1)]
  const auth = password === '' ? [] : user === '' ? ['AUTH', password] : ['AUTH2', user, password]
  for (let tries = 1; ; tries += 1) {
    const failure = await source.client
      .call('MIGRATE', host, port, '', 0, giveMsMax, 'REPLACE', ...auth, 'KEYS', name)
      .then(
        () => null,
        (error: Error) => error.message,
      )
    if (failure === null) return
    if (!failure.startsWith('IOERR') || tries === TRIES_MAX)
      throw new Error(`${source.name} could not send a key to ${target.name}: ${failure}`)
    await pause(TRY_AGAIN_MS)
  }
}
