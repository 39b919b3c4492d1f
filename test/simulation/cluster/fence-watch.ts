/**
 * fence-watch - checks that a fenced shard does not change, on whatever node it is
 *
 * From the first fence to its end, through all faults of nodes and orders, the node that has the slot has every key
 * with the same value. Volatile keys, keys that expire by themselves and the fence itself are left out.
 */
import { copyKey, mailboxKey, metaKey } from '../../../cluster/keyspace.ts'
import type { Observer } from '../observer.ts'
import type { SimStore } from '../sim-store.ts'
import type { SimNode } from './sim-node.ts'

/** Keys that a sentence names. */
const NAMED_MAX = 3
/** The field of `meta` that holds the fence. */
const FENCE_FIELDS: ReadonlySet<string> = new Set(['owner', 'tok', 'freed', 'uncleared'])

/** Values by name. */
type Contents = ReadonlyMap<string, string>

export class FenceWatch {
  private readonly observer: Observer
  private readonly at: (shard: number) => SimNode
  private readonly fenced = new Map<number, Contents>()

  /** `at` returns the node that has a shard. */
  constructor(observer: Observer, at: (shard: number) => SimNode) {
    this.observer = observer
    this.at = at
  }

  /** A shard is fenced at a node, perhaps once more. */
  begins(node: SimNode, { shard, token }: { readonly shard: number; readonly token: string }): void {
    this.observer.sawFence(shard, token, false)
    if (this.fenced.has(shard)) return
    this.fenced.set(shard, contentsOf(node.base, shard))
    this.observer.mayUndo(shard, () => this.fenced.delete(shard))
  }

  /** Whether all fenced shards are on the right node. */
  look(): void {
    for (const [shard, before] of this.fenced) this.compare(this.at(shard), shard, before)
  }

  /** The fence of a shard ends at a node. */
  ends(node: SimNode, shard: number): void {
    const before = this.fenced.get(shard)
    if (before === undefined) return
    this.compare(node, shard, before)
    this.fenced.delete(shard)
    this.observer.mayUndo(shard, () => this.fenced.set(shard, before))
  }

  private compare({ base, name }: SimNode, shard: number, before: Contents): void {
    const now = contentsOf(base, shard)
    const names = [...new Set([...before.keys(), ...now.keys()])].filter((key) => before.get(key) !== now.get(key))
    if (names.length === 0) return
    const how = names.slice(0, NAMED_MAX).map((key) => `${key} ${howOf(before.get(key), now.get(key))}`)
    this.observer.violated(`Shard ${shard}: ${names.length} keys are not what was fenced at ${name}: ${how.join(', ')}`)
  }
}

function howOf(before: string | undefined, now: string | undefined): string {
  if (now === undefined) return 'missing'
  return before === undefined ? 'added' : 'changed'
}

function contentsOf(base: SimStore, shard: number): Contents {
  const contents = new Map<string, string>()
  const without = new Set([copyKey(shard), mailboxKey(shard)])
  for (const [name, kept] of base.copyOf(base.namesOf(shard))) {
    if (kept === undefined || kept.expiresAtMs !== 0 || without.has(name)) continue
    const { value } = kept
    const fields =
      value.kind === 'hash'
        ? [...value.fields].filter(([field]) => name !== metaKey(shard) || !FENCE_FIELDS.has(field))
        : []
    const sorted = value.kind === 'sorted' ? [...value.scores] : []
    contents.set(
      name,
      value.kind === 'stream' || value.kind === 'text'
        ? JSON.stringify(value)
        : JSON.stringify([...fields, ...sorted].sort()),
    )
  }
  return contents
}
