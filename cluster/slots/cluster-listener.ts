/**
 * cluster-listener - notifications for a worker in a Redis Cluster: bells of its shards, replies from every primary,
 * and workers that start, stop or release a shard
 *
 * A shard's bells are published in its own slot, so they reach its owner only. Replies are in one stream for each
 * primary, in the slot of a shard that it holds. Nothing depends on a bell.
 */
import { shardBellChannel, shardParcelChannel, toldKeyAt } from '../keyspace.ts'
import { BellReader } from '../mailbox/bell.ts'
import type { Listening, Receivers } from '../store.ts'
import type { ShardNode, ToldStream } from './shard-node.ts'

/** Where the shards are. */
export interface ShardPlaces {
  /** The shards that a primary holds. */
  shardsOf(name: string): readonly number[]
}

export class ClusterListener {
  readonly worker: string
  /** Shards that it took. */
  readonly taken = new Set<number>()
  private readonly ears: Receivers
  private readonly places: ShardPlaces
  private readonly told = new Map<string, { readonly told: ToldStream; key: string }>()
  private readonly readers = new Map<number, BellReader>()
  private released: { readonly node: ShardNode; readonly listening: Listening } | null = null

  constructor(worker: string, ears: Receivers, places: ShardPlaces) {
    this.worker = worker
    this.ears = ears
    this.places = places
  }

  /** Subscribes at the current holders of the shards. `common` is the primary of keys outside any shard. */
  arrange(nodes: ReadonlyMap<string, ShardNode>, common: ShardNode | null): void {
    for (const [name, { told }] of this.told) {
      if (nodes.has(name)) continue
      told.close()
      this.told.delete(name)
    }
    for (const [name, node] of nodes) {
      const [shard] = this.places.shardsOf(name)
      const key = shard === undefined ? null : toldKeyAt(shard, this.worker)
      const known = this.told.get(name)
      if (key === null) continue
      if (known !== undefined) known.key = key
      else this.told.set(name, this.tell(node, key))
    }
    if (common === null || common === this.released?.node) return
    this.released?.listening.close()
    this.released = { node: common, listening: common.listen(this.worker, this.ears) }
  }

  /** Begins to receive replies from a primary. Returns their stream; null if it holds no shard. */
  begin(name: string): string | null {
    const known = this.told.get(name)
    known?.told.begin()
    return known?.key ?? null
  }

  /** The channels of the shards among `shards` that it took. */
  channels(shards: readonly number[]): string[] {
    return shards
      .filter((shard) => this.taken.has(shard))
      .flatMap((shard) => [shardParcelChannel(shard), shardBellChannel(shard)])
  }

  /** A message published in the slot of a shard. */
  heard(channel: string, message: Buffer): void {
    const shard = Number(channel.slice(2, 5))
    if (!this.taken.has(shard)) return
    const reader = this.readers.get(shard) ?? new BellReader()
    this.readers.set(shard, reader)
    if (channel === shardParcelChannel(shard)) reader.parcel(message)
    else this.ears.bells(reader.bells(message.toString()))
  }

  /** The bells of a shard are received from now on: earlier ones were not. */
  held(channel: string): void {
    const shard = Number(channel.slice(2, 5))
    if (this.taken.has(shard) && channel === shardBellChannel(shard))
      this.ears.bells([{ shard, entry: null, before: '' }])
  }

  close(): void {
    for (const { told } of this.told.values()) told.close()
    this.released?.listening.close()
  }

  private tell(node: ShardNode, key: string): { readonly told: ToldStream; key: string } {
    const place = { key }
    const told = node.store.tell(
      this.worker,
      () => place.key,
      (text) => {
        if (!node.isGated) this.ears.replies(text)
        else void this.isKept(node).then((isKept) => isKept && this.ears.replies(text))
      },
    )
    return Object.assign(place, { told })
  }

  /**
   * Replies are passed on once replicas have the commits that published them. The replicas of a primary that has lost
   * a shard since then no longer have its commits.
   */
  private async isKept(node: ShardNode): Promise<boolean> {
    const before = this.places.shardsOf(node.name)
    if (!(await node.kept())) return false
    const now = new Set(this.places.shardsOf(node.name))
    return before.every((shard) => now.has(shard))
  }
}
