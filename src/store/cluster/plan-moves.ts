/** plan-moves - which shards go where, so that every Redis of a cluster has as many as the others; pure */
import { SHARDS } from '../../../cluster/id.ts'
import { COMMON_SLOT, SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'

const SLOT_LAST = 16_383

/** A primary and its shards. */
export interface Holder {
  readonly name: string
  readonly shards: readonly number[]
}

/** Shards that go from one primary to another. */
export interface PlannedMove {
  readonly shards: readonly number[]
  readonly from: string
  readonly to: string
}

/**
 * The fewest moves after which no primary has two shards more than another. Takes the possible holders, and those to
 * empty. Throws Error if no holder is left for the shards.
 */
export function planMoves(holders: readonly Holder[], leaving: ReadonlySet<string> = new Set()): PlannedMove[] {
  const staying = holders.filter(({ name }) => !leaving.has(name))
  if (staying.length === 0) throw new Error('No Redis is left for the shards: at least one must stay')
  const all = holders.reduce((sum, { shards }) => sum + shards.length, 0)
  const least = Math.floor(all / staying.length)
  // The primary with the most shards keeps one more.
  const ranked = staying.toSorted((a, b) => b.shards.length - a.shards.length || (a.name < b.name ? -1 : 1))
  const wanted = new Map(ranked.map(({ name }, rank) => [name, least + (rank < all % staying.length ? 1 : 0)]))
  const given = holders.flatMap(({ name, shards }) =>
    shards.slice(wanted.get(name) ?? 0).map((shard) => ({ shard, from: name })),
  )
  const moves = new Map<string, { shards: number[]; from: string; to: string }>()
  for (const { name, shards } of staying) {
    const lacking = (wanted.get(name) ?? 0) - shards.length
    for (const { shard, from } of lacking > 0 ? given.splice(0, lacking) : []) {
      const key = `${from} ${name}`
      const move = moves.get(key) ?? { shards: [], from, to: name }
      move.shards.push(shard)
      moves.set(key, move)
    }
  }
  return [...moves.values()]
}

/** Ranges of slots for a new cluster of 1 to 256 primaries, with the shards spread evenly. */
export function planRanges(
  primaries: number,
): { readonly first: number; readonly last: number; readonly shards: number }[] {
  const inOrder = SHARD_SLOTS.toSorted((a, b) => a - b)
  const ends = Array.from({ length: primaries }, (_, n) => Math.round(((n + 1) * SHARDS) / primaries))
  return ends.map((end, n) => {
    const begin = ends[n - 1] ?? 0
    return {
      first: n === 0 ? 0 : (inOrder[begin] as number),
      last: end === SHARDS ? SLOT_LAST : (inOrder[end] as number) - 1,
      shards: end - begin,
    }
  })
}

/** Whether a range holds what belongs to no shard. */
export function holdsCommon({ first, last }: { readonly first: number; readonly last: number }): boolean {
  return COMMON_SLOT >= first && COMMON_SLOT <= last
}
