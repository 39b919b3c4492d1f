/**
 * move-slot - the slot of a shard goes from one primary of a Redis Cluster to another, a few keys at a time (Redis
 * Cluster specification, "resharding")
 *
 * States of a slot: at its source, marked on both sides (what of it is not there yet is asked of the target, what needs
 * keys of both sides waits), at its target. From the first mark to the last the shard decides nothing.
 *
 * Guarantees while both nodes live: a key is on the target's disk before the source lets it go. A move that was cut off
 * at any point is gone on with by moving again: a key that is still at the source is the newer one. Where a node is
 * lost meanwhile, or the network between the two, a key may be on both sides, also one that the source removes then.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'

const KEYS_AT_ONCE = 100
/** A shard that has not gone after this stays marked, for who moves it again. */
const MOVE_MS_MAX = 15 * 60_000
const TRIES_MAX = 5
const TRY_AGAIN_MS = 500
/**
 * Keys of one command. Each command costs both disks a write, and holds both primaries up for as long as what it
 * carries is packed: a large key goes alone.
 */
const BATCH_KEYS_MAX = 32
const BATCH_BYTES_MAX = 262_144
/** Keys that held both primaries up for longer are followed by as long a pause: the other shards get their turn. */
const LONG_MS = 20

/** A primary with a connection to it. */
export interface MoveEnd {
  readonly id: string
  /** `host:port`. */
  readonly name: string
  readonly client: Redis
}

export interface SlotMove {
  readonly slot: number
  readonly source: MoveEnd
  readonly target: MoveEnd
  /** All primaries that answer, these two among them. */
  readonly primaries: readonly MoveEnd[]
  /** As the nodes want it; '' for none. */
  readonly user: string
  readonly password: string
  /**
   * A target that is silent holds the source up for this long at most, ms: less than `cluster-node-timeout`, or the
   * source is taken for dead in the middle of its move.
   */
  readonly giveMsMax: number
}

/** How many keys there are, and how many have gone. */
export type MoveProgress = (moved: number, keys: number) => void

/**
 * Moves it. Out: keys that went. Throws Error, a sentence: the slot stays marked, and the same move goes on with it.
 */
export async function moveSlot(move: SlotMove, progress: MoveProgress): Promise<number> {
  const { slot, source, target } = move
  const endMs = performance.now() + MOVE_MS_MAX
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id)
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id)
  const keys = Number(await source.client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
  let moved = 0
  progress(moved, keys)
  for (;;) {
    const names = (await source.client.callBuffer('CLUSTER', 'GETKEYSINSLOT', slot, KEYS_AT_ONCE)) as Buffer[]
    if (names.length === 0) break
    for (const batch of await batchesOf(source.client, names)) {
      if (performance.now() > endMs) throw new Error(`Slot ${slot} takes too long: move it again, it goes on`)
      await moveKeys(move, batch)
      moved += batch.length
    }
    progress(moved, Math.max(keys, moved))
  }
  await settleSlot(move)
  return moved
}

/** Tells all primaries whose the slot is: the target first, which then claims it with an epoch above the source's. */
export async function settleSlot({
  slot,
  target,
  primaries,
}: Pick<SlotMove, 'slot' | 'target' | 'primaries'>): Promise<void> {
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id)
  for (const { client, id } of primaries)
    if (id !== target.id) await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id)
}

/** Divides keys into what goes with one command, in their order. */
async function batchesOf(client: Redis, names: readonly Buffer[]): Promise<Buffer[][]> {
  const sizes = await Promise.all(names.map((name) => sizeOf(client, name)))
  const batches: Buffer[][] = []
  let bytes = 0
  for (const [place, name] of names.entries()) {
    const size = sizes[place] ?? 0
    const last = batches.at(-1)
    bytes += size
    if (last === undefined || last.length >= BATCH_KEYS_MAX || bytes > BATCH_BYTES_MAX) {
      batches.push([name])
      bytes = size
    } else last.push(name)
  }
  return batches
}

/** Bytes. A key that has ended meanwhile has none: of a slot that is leaving Redis says that the target may have it. */
async function sizeOf(client: Redis, name: Buffer): Promise<number> {
  try {
    return Number((await client.call('MEMORY', 'USAGE', name)) ?? 0)
  } catch (error) {
    if ((error as Error).message.startsWith('ASK ')) return 0
    throw error
  }
}

/** After an error of the network keys may be on both sides; the source's are those that were written to. */
async function moveKeys(
  { source, target, user, password, giveMsMax }: SlotMove,
  names: readonly Buffer[],
): Promise<void> {
  const colon = target.name.lastIndexOf(':')
  const [host, port] = [target.name.slice(0, colon), target.name.slice(colon + 1)]
  const auth = password === '' ? [] : user === '' ? ['AUTH', password] : ['AUTH2', user, password]
  const args = [host, port, '', 0, giveMsMax, 'REPLACE', ...auth, 'KEYS', ...names]
  for (let tries = 1; ; tries += 1) {
    const startedAtMs = performance.now()
    const failure = await source.client.call('MIGRATE', ...args).then(
      () => null,
      (error: Error) => error.message,
    )
    const tookMs = performance.now() - startedAtMs
    if (failure === null) return tookMs > LONG_MS ? pause(tookMs) : undefined
    if (!failure.startsWith('IOERR') || tries === TRIES_MAX)
      throw new Error(`${source.name} could not give a key to ${target.name}: ${failure}`)
    await pause(TRY_AGAIN_MS)
  }
}
