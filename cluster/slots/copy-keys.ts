/**
 * copy-keys - keys of a slot are copied to another primary of a Redis Cluster, a few at a time, while the source keeps
 * them (Redis Cluster specification, "resharding": MIGRATE)
 *
 * Guarantees: a key is on the target's disk when this says so; a key that has ended meanwhile is passed over.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'

/** More than a slot gets while its names are asked for. */
const NEW_KEYS_MAX = 10_000
/** Names whose sizes are asked for at once. */
const SIZED_AT_ONCE = 100
const TRIES_MAX = 5
const TRY_AGAIN_MS = 500
/**
 * Keys of one command. Each command costs the target's disk a write, and holds both primaries up for as long as what it
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

/** Between which nodes keys are copied, and how. */
export interface CopyWay {
  readonly source: MoveEnd
  readonly target: MoveEnd
  /** As the nodes want it; '' for none. */
  readonly user: string
  readonly password: string
  /**
   * A target that is silent holds the source up for this long at most, ms: less than `cluster-node-timeout`, or the
   * source is taken for dead in the middle of its move.
   */
  readonly giveMsMax: number
  /** Throws where another order may have taken over. */
  mustHold(): void
}

/** Names of all keys of a slot at a node. */
export async function keysOf(client: Redis, slot: number): Promise<Buffer[]> {
  const count = Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
  if (count === 0) return []
  return (await client.callBuffer('CLUSTER', 'GETKEYSINSLOT', slot, count + NEW_KEYS_MAX)) as Buffer[]
}

/** Who hears of keys that are copied. */
export interface CopyHears {
  /** These are about to be copied. */
  begins?(names: readonly Buffer[]): void
  /** So many have been. */
  copied?(count: number): Promise<void>
}

/** Copies them over what the target has under these names. Out: how many. Throws Error, a sentence. */
export async function copyKeys(copy: CopyWay, names: readonly Buffer[], hears: CopyHears = {}): Promise<number> {
  let copied = 0
  for (let from = 0; from < names.length; from += SIZED_AT_ONCE)
    for (const batch of await batchesOf(copy.source.client, names.slice(from, from + SIZED_AT_ONCE))) {
      copy.mustHold()
      hears.begins?.(batch)
      await migrate(copy, ['COPY', 'REPLACE'], batch)
      copied += batch.length
      await hears.copied?.(copied)
    }
  return copied
}

/** What all keys of a slot take of the memory of a node, bytes. */
export async function bytesOf(client: Redis, slot: number): Promise<number> {
  const names = await keysOf(client, slot)
  let bytes = 0
  for (let from = 0; from < names.length; from += SIZED_AT_ONCE)
    for (const size of await sizesOf(client, names.slice(from, from + SIZED_AT_ONCE))) bytes += size
  return bytes
}

/** What each key takes, bytes; 0 for one that has ended. */
async function sizesOf(client: Redis, names: readonly Buffer[]): Promise<number[]> {
  const sizes = await Promise.all(names.map((name) => client.call('MEMORY', 'USAGE', name)))
  return sizes.map((size) => Number(size ?? 0))
}

/** Divides keys into what goes with one command, in their order. */
async function batchesOf(client: Redis, names: readonly Buffer[]): Promise<Buffer[][]> {
  const sizes = await sizesOf(client, names)
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

/** Has the source send keys to the target, in one step of both. */
export async function migrate(
  { source, target, user, password, giveMsMax }: CopyWay,
  how: readonly ('COPY' | 'REPLACE')[],
  names: readonly Buffer[],
): Promise<void> {
  const colon = target.name.lastIndexOf(':')
  const [host, port] = [target.name.slice(0, colon), target.name.slice(colon + 1)]
  const auth = password === '' ? [] : user === '' ? ['AUTH', password] : ['AUTH2', user, password]
  const args = [host, port, '', 0, giveMsMax, ...how, ...auth, 'KEYS', ...names]
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
