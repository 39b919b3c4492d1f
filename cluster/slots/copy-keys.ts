/**
 * copy-keys - keys of a slot are copied to another primary of a Redis Cluster, a few at a time, while the source keeps
 * them
 *
 * MIGRATE is not used, because a source that was frozen or disconnected in the middle of one sends the rest when it
 * comes back, and overwrites newer values at the target. Here every byte goes over a connection of the order, which
 * knows that everything was answered. The next order ends these connections before it begins.
 *
 * Guarantees: a key is on the target's disk when this returns; keys that expired in the meantime are skipped.
 */
import type { Redis } from 'ioredis'
import { asking } from './asking.ts'

/** More than a slot gets while its names are asked for. */
const NEW_KEYS_MAX = 10_000
/** Names whose sizes are asked for at once. */
const SIZED_AT_ONCE = 500
/**
 * Keys copied at once. They cost the target's disk a write, and block each primary while they are packed and unpacked,
 * so a large key goes alone.
 */
const BATCH_KEYS_MAX = 200
const BATCH_BYTES_MAX = 1_048_576

/** ARGV: name, end in ms since the epoch (0: none) and payload of each key. All of them are one write of the file. */
export const RESTORE = `#!lua
for i = 1, #ARGV, 3 do redis.call('RESTORE', ARGV[i], ARGV[i + 1], ARGV[i + 2], 'REPLACE', 'ABSTTL') end
return 1
`

/** A primary with a connection to it. */
export interface MoveEnd {
  readonly id: string
  /** `host:port`. */
  readonly name: string
  readonly client: Redis
}

/** Between which nodes keys are copied. */
export interface CopyWay {
  readonly source: MoveEnd
  readonly target: MoveEnd
  /** Throws if another order may have taken over. */
  mustHold(): void
}

/** Receives the keys being copied. */
export interface CopyHears {
  /** These are about to be copied. */
  begins?(names: readonly Buffer[]): void
  /** Reports the number of keys copied. */
  copied?(count: number): Promise<void>
}

/** Names of all keys of a slot at a node. */
export async function readKeys(client: Redis, slot: number): Promise<Buffer[]> {
  const count = Number(await client.call('CLUSTER', 'COUNTKEYSINSLOT', slot))
  if (count === 0) return []
  return (await client.callBuffer('CLUSTER', 'GETKEYSINSLOT', slot, count + NEW_KEYS_MAX)) as Buffer[]
}

/** Copies keys, replacing those of the same names at the target. Returns their number. Throws Error with a sentence. */
export async function copyKeys(copy: CopyWay, names: readonly Buffer[], hears: CopyHears = {}): Promise<number> {
  const { source, target } = copy
  let copied = 0
  for (let from = 0; from < names.length; from += SIZED_AT_ONCE) {
    const batches = await groupIntoBatches(source.client, names.slice(from, from + SIZED_AT_ONCE))
    const dump = (batch: readonly Buffer[] | undefined): Promise<Packed[]> | null => {
      if (batch === undefined) return null
      copy.mustHold()
      hears.begins?.(batch)
      const packed = dumpAll(source, batch)
      // It is waited for when its turn comes.
      packed.catch(() => undefined)
      return packed
    }
    let next = dump(batches[0])
    for (const [place, batch] of batches.entries()) {
      const packed = (await next) ?? []
      next = dump(batches[place + 1])
      await restoreAll(target, packed)
      copied += batch.length
      await hears.copied?.(copied)
    }
  }
  return copied
}

/** Memory of all keys of a slot at a node, bytes. */
export async function measureBytes(client: Redis, slot: number): Promise<number> {
  const names = await readKeys(client, slot)
  let bytes = 0
  for (let from = 0; from < names.length; from += SIZED_AT_ONCE)
    for (const size of await readSizes(client, names.slice(from, from + SIZED_AT_ONCE))) bytes += size
  return bytes
}

/** Memory of each key, bytes; 0 for one that has expired. */
async function readSizes(client: Redis, names: readonly Buffer[]): Promise<number[]> {
  const sizes = await Promise.all(names.map((name) => client.call('MEMORY', 'USAGE', name)))
  return sizes.map((size) => Number(size ?? 0))
}

/** Divides keys into groups that are in flight together, in their order. */
async function groupIntoBatches(client: Redis, names: readonly Buffer[]): Promise<Buffer[][]> {
  const sizes = await readSizes(client, names)
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

/** A key as its node packs it, and when it ends, ms since the epoch; 0: never. */
type Packed = readonly [name: Buffer, endsAtMs: number, payload: Buffer]

/** Keys that have expired in the meantime are left out. */
async function dumpAll({ client, name: node }: MoveEnd, names: readonly Buffer[]): Promise<Packed[]> {
  const found = await Promise.all(
    names.map(async (name): Promise<Packed[]> => {
      const [payload, endsAtMs] = await Promise.all([client.callBuffer('DUMP', name), client.call('PEXPIRETIME', name)])
      return payload === null ? [] : [[name, Math.max(0, Number(endsAtMs)), payload as Buffer]]
    }),
  ).catch((error: Error) => {
    throw new Error(`Cannot read a key from ${node}: ${error.message}`)
  })
  return found.flat()
}

async function restoreAll({ client, name: node }: MoveEnd, packed: readonly Packed[]): Promise<void> {
  if (packed.length === 0) return
  const args = packed.flatMap(([name, endsAtMs, payload]) => [name, String(endsAtMs), payload])
  await asking(client, [['EVAL', RESTORE, '0', ...args]]).catch((error: Error) => {
    throw new Error(`Cannot write a key to ${node}: ${error.message}`)
  })
}
